"""The stubs by which type checkers and editors know the builtins are those that the rows give."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import quadpy as qp
from quadpy.intrinsics import namespace, numbers

ROOT = Path(qp.__file__).parent
TOP, BLOCK, SUBGROUP, GRID, WARP = (namespace(prefix) for prefix in ("", "block", "subgroup", "grid", "warp"))
NUMBERS = {name: TOP[name] for name in numbers.__all__}
STUBS = {
    "intrinsics/numbers.pyi": NUMBERS,
    "intrinsics/top.pyi": TOP,
    "simt/block.pyi": BLOCK,
    "simt/subgroup.pyi": SUBGROUP,
}
HEAD = """# Made from the rows of quadpy.intrinsics: pytest tests/intrinsics --update-golden
# fmt: off
from typing import Any

"""


def parameters(text: str) -> str:
    """Typed; that there is a default is all that a type checker asks."""
    typed = []
    for part in filter(None, text.split(", ")):
        name, equals, _ = part.partition("=")
        typed.append(name if name == "*" else f"{name}: Any" + " = ..." * bool(equals))
    return ", ".join(typed)


def stub(file: str) -> str:
    """What ``file`` declares; the names of ``numbers`` come from its own stub."""
    shared = file == "intrinsics/top.pyi"
    declared = {name: builtin.row for name, builtin in STUBS[file].items() if not (shared and name in NUMBERS)}
    lines = [f'def {name}({parameters(row.parameters)}) -> Any: """{row.doc}"""\n' for name, row in declared.items()]
    head = HEAD + "from quadpy.intrinsics.numbers import *\n\n" * shared
    return f"{head}__all__ = {list(STUBS[file])!r}\n\n".replace("'", '"') + "".join(lines)


@pytest.mark.parametrize("file", STUBS)
def test_the_stub_is_made_from_the_rows(file, golden):
    path = ROOT / file
    replace(golden, folder=path.parent).check(path.name, stub(file))


@pytest.mark.parametrize(
    ("module", "builtins"),
    [
        (qp, TOP),
        (qp.math, NUMBERS),
        (qp.simt.block, BLOCK),
        (qp.simt.subgroup, SUBGROUP),
        (qp.simt.grid, GRID),
        (qp.simt.warp, WARP),
    ],
    ids=["qp", "qp.math", "qp.simt.block", "qp.simt.subgroup", "qp.simt.grid", "qp.simt.warp"],
)
def test_the_module_has_the_names_of_its_stub(module, builtins):
    assert {name: getattr(module, name) for name in builtins} == builtins
    assert set(builtins) <= set(module.__all__)


def test_help_shows_the_signature_and_the_documentation():
    code = "import quadpy as qp; help(qp.atan2); help(qp.simt.block.sync)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "atan2(y, x)" in shown
    assert "angle of the point" in shown
    assert "block.sync()" in shown
