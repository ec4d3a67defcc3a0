"""What type checkers know: every public name, arrays and numbers as annotations, and the parameters of kernels."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import quadpy as qp

ROOT = Path(qp.__file__).parent
TYPED = ast.parse((ROOT / "typed.pyi").read_text("utf-8"))
STARS = {"aliases", "errors", "intrinsics.top"}
HEAD = "# Made from quadpy/__init__.py and quadpy/typed.pyi: pytest tests/packaging --update-golden\n# fmt: off\n"


def names_of(module: ast.Module, value: str) -> list[str]:
    (found,) = [
        node.value for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == value
    ]  # fmt: skip
    return ast.literal_eval(found)


def sources() -> dict[str, str]:
    """The module of each public name, as ``quadpy/__init__.py`` imports it."""
    where = {}
    for node in ast.parse((ROOT / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            where |= {name.name: node.module for name in node.names if name.name in qp.__all__}
    for module in STARS:
        public = __import__(f"quadpy.{module}", fromlist=["__all__"]).__all__
        where |= dict.fromkeys(public, f"quadpy.{module}")
    for module, names in qp._LATE.items():
        where |= dict.fromkeys(names.split(), f"quadpy.{module}")
    where |= dict.fromkeys(names_of(TYPED, "__all__"), "quadpy.typed")
    late = (
        "ad",
        "algorithms",
        "dist",
        "hazards",
        "linalg",
        "profiler",
        "tools",
        "torch",
        "view",
    )  # loaded at their first use
    where |= dict.fromkeys(late, "quadpy")
    return {name: where[name] for name in qp.__all__ if name != "__version_str__"}


def stub() -> str:
    where = sources()
    lines = [
        f"from {where[name]} import {name} as {name}\n" for name in sorted(where, key=lambda name: (where[name], name))
    ]
    public = "".join(f'    "{name}",\n' for name in sorted(qp.__all__))
    return HEAD + "".join(lines) + f"\n__version_str__: str\n__all__ = [\n{public}]\n"


def test_the_stub_has_every_public_name(golden):
    replace(golden, folder=ROOT).check("__init__.pyi", stub())
