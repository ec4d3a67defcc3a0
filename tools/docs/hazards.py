"""The programs of the guide to hazards, and what the checker says of each."""

from __future__ import annotations

import functools
import runpy
import tempfile
import textwrap
import warnings
from pathlib import Path

import quadpy as qp
from quadpy.runtime.device.current import Config, current_config, set_config
from tools.docs import DOCS

PROGRAMS = DOCS / "hazards"
"""Each says in a comment what is missing: ``# fixed by:`` a line, or ``# fixed to:`` what the next line must be."""


def print_hazard(name: str) -> str:
    """The program ``name`` and its report."""
    text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    shown = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("# fixed "))
    return f'```python title="{name}.py" linenums="1"\n{shown}\n```\n\n```text\n{report_of(shown, name)}\n```'


@functools.cache  # a process is warned once of a race inside a kernel
def report_of(program: str, name: str) -> str:
    """What the checker says when ``program`` runs on the CPU; empty if it says nothing."""
    before = current_config()
    set_config(Config())
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.py"
            file.write_text(program, encoding="utf-8")
            return _said(file).replace(f"{folder}/", "")
    finally:
        set_config(before)


def _said(file: Path) -> str:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with qp.hazards.check():
                runpy.run_path(str(file))
        except qp.HazardError as error:
            return f"HazardError: {error}"
    return "\n".join(f"{warning.category.__name__}: {warning.message}" for warning in warned)


def fixed(name: str) -> str:
    """The program ``name`` with what is missing."""
    found: list[str] = []
    instead = False
    for line in (PROGRAMS / f"{name}.py").read_text(encoding="utf-8").splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if line.startswith((f"{indent}# fixed by: ", f"{indent}# fixed to: ")):
            instead = line.startswith(f"{indent}# fixed to: ")
            found.append(indent + line.partition(": ")[2])
        elif instead:
            instead = False
        else:
            found.append(line)
    return textwrap.dedent("\n".join(found)) + "\n"
