"""The stubs by which type checkers and editors know the builtins are those that the rows give."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import quadpy as qp
from quadpy.intrinsics import namespace, numbers
from quadpy.intrinsics.rows import Row

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
TYPED_HEAD = (
    HEAD.replace("Any\n", "Any, TypeVar, overload\n")
    + """from quadpy.runtime.elements.values import Elements

_V = TypeVar("_V", bound=float | Elements)  # a number, a vector or a matrix
"""
)
COUNTS = {"popcnt", "clz", "ffs"}
EXTREMES = {"min", "max"}
GIVEN = {
    "cast": "x: Any, dtype: type[_T]) -> _T",
    "random": "dtype: type[_T]) -> _T",
    "randn": "dtype: type[_T]) -> _T",
    "static": "value: _T, /) -> _T",
    "zero": "x: _T) -> _T",
    "one": "x: _T) -> _T",
}
OTHERWISE = {
    "cast": "x: _E, dtype: Any) -> _E",
    "random": ") -> float",
    "randn": ") -> float",
    "static": "first: Any, second: Any, /, *more: Any) -> tuple[Any, ...]",
}
"""Builtins whose result has the type of an argument of any kind, or that an argument names."""


def parameters(text: str, values: str = "Any") -> str:
    """Typed; that there is a default is all that a type checker asks."""
    typed = []
    for part in filter(None, text.split(", ")):
        name, equals, _ = part.partition("=")
        kind = "Any" if name in {"cond", "dtype"} else values
        typed.append(name if name == "*" else f"{name}: {kind}" + " = ..." * bool(equals))
    return ", ".join(typed)


def declaration(name: str, row: Row) -> str:
    """The builtin as a type checker knows it: elementwise functions give what they take."""
    if name in EXTREMES:
        pairs = f"@overload\ndef {name}(x: _V, y: _V, /, *more: _V) -> _V: ...\n"
        return f'{pairs}@overload\ndef {name}(x: Elements, /) -> Any: """{row.doc}"""\n'
    if name in GIVEN:
        other = f"@overload\ndef {name}({OTHERWISE[name]}: ...\n@overload\n" if name in OTHERWISE else ""
        return f'{other}def {name}({GIVEN[name]}: """{row.doc}"""\n'
    if name in NUMBERS or name.startswith("atomic_"):
        result = "Any" if name in COUNTS else "_V"
        return f'def {name}({parameters(row.parameters, "_V")}) -> {result}: """{row.doc}"""\n'
    return f'def {name}({parameters(row.parameters)}) -> Any: """{row.doc}"""\n'


def stub(file: str) -> str:
    """What ``file`` declares; the names of ``numbers`` come from its own stub."""
    shared = file == "intrinsics/top.pyi"
    declared = {name: builtin.row for name, builtin in STUBS[file].items() if not (shared and name in NUMBERS)}
    lines = [declaration(name, row) for name, row in declared.items()]
    head = TYPED_HEAD if NUMBERS.items() <= STUBS[file].items() else HEAD
    if shared:
        head = head.replace("from quadpy.run", "from quadpy.intrinsics.numbers import *\nfrom quadpy.run")
        head += '_T = TypeVar("_T")\n_E = TypeVar("_E", bound=Elements)\n'
    return f"{head}\n__all__ = {list(STUBS[file])!r}\n\n".replace("'", '"') + "".join(lines)


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
