"""Programs on several real ranks: ``quadpy run`` as a subprocess, on mpi4py and the MPI that pip installs."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

LIMIT = 120
"""Seconds after which a program that hangs is ended; each takes a few."""


def run_program(folder, text, size, *arguments, options=(), timeout=LIMIT, input=None, **environment):  # noqa: A002 - subprocess's name
    """Run the program ``text`` on ``size`` ranks; returns the completed process, with its output as text."""
    program = Path(folder) / "program.py"
    program.write_text(textwrap.dedent(text), encoding="utf-8")
    support = str(Path(__file__).parent)
    paths = os.pathsep.join(filter(None, [support, os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "quadpy", "run", "-n", str(size), *options, str(program), *map(str, arguments)],
        capture_output=True,
        input=input,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "QUADPY_NUM_THREADS": "1", **environment},
    )


def lines_of(text, rank):
    """The lines of one rank in the output of all."""
    label = f"[{rank}] "
    return [line.removeprefix(label) for line in text.splitlines() if line.startswith(label)]
