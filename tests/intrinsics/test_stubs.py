"""The stubs by which type checkers and editors know the builtins are those that the rows give."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import quadpy as qp
from quadpy.intrinsics import namespace

ROOT = Path(qp.__file__).parent
STUBS = {"": ROOT / "intrinsics/top.pyi", "block": ROOT / "simt/block.pyi"}
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


def stub(prefix: str) -> str:
    builtins = namespace(prefix)
    rows = [(name, parameters(builtin.row.parameters), builtin.row.doc) for name, builtin in builtins.items()]
    lines = [f'def {name}({typed}) -> Any: """{doc}"""\n' for name, typed, doc in rows]
    return f"{HEAD}__all__ = {list(builtins)!r}\n\n".replace("'", '"') + "".join(lines)


@pytest.mark.parametrize("prefix", STUBS)
def test_the_stub_is_made_from_the_rows(prefix, golden):
    replace(golden, folder=STUBS[prefix].parent).check(STUBS[prefix].name, stub(prefix))


@pytest.mark.parametrize(("module", "prefix"), [(qp, ""), (qp.simt.block, "block")], ids=["qp", "qp.simt.block"])
def test_the_module_has_the_names_of_its_stub(module, prefix):
    assert {name: getattr(module, name) for name in namespace(prefix)} == namespace(prefix)
    assert set(namespace(prefix)) <= set(module.__all__)


def test_help_shows_the_signature_and_the_documentation():
    code = "import quadpy as qp; help(qp.atan2); help(qp.simt.block.sync)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "atan2(y, x)" in shown
    assert "angle of the point" in shown
    assert "block.sync()" in shown
