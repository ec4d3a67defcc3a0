"""Examples of the reference: functions ``example_NAME`` in the modules of the folder ``docs/_examples``.

The page shows the body of a function below the entry of its name.  Other names in the body have a link to it.
"""

from __future__ import annotations

import ast
import functools
import textwrap
from typing import Final

from tools.docs import DOCS, public

FOLDER: Final = DOCS / "_examples"
FIRST: Final = "example_"


@functools.cache
def _bodies() -> dict[str, tuple[str, ast.FunctionDef]]:
    """The text and the tree of each example, by the name that it is for."""
    found = {}
    for file in sorted(FOLDER.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        lines, tree = text.splitlines(), ast.parse(text)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith(FIRST):
                first = node.body[0]
                start = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
                body = textwrap.dedent("\n".join(lines[start - 1 : node.end_lineno]))
                found[name_of(file.stem, node.name)] = body, node
    return found


def name_of(module: str, function: str) -> str:
    """``qp.graph.capture`` for ``example_capture`` in ``graph.py``; modules that begin with ``qp`` have names of ``qp``."""
    prefix = "" if module.startswith("qp_") else module.replace("__", ".") + "."
    return f"qp.{prefix}{function.removeprefix(FIRST)}"


def source_of(name: str) -> str | None:
    """The example of a name itself."""
    found = _bodies().get(name)
    return found[0] if found else None


def home_of(name: str) -> str | None:
    """The name in whose example this one is used."""
    return _homes().get(name)


@functools.cache
def _homes() -> dict[str, str]:
    homes: dict[str, str] = {}
    for home, (_, tree) in _bodies().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (name := ast.unparse(node)).startswith("qp."):
                homes.setdefault(public.other_names().get(name, name), home)
                homes.setdefault(name, home)
    return homes


def all_names() -> list[str]:
    return list(_bodies())


def said(name: str) -> list[str] | None:
    """What an example says that it prints: the comments of its calls of ``print``; None if it has none of these."""
    lines = [line for line in _bodies()[name][0].splitlines() if line.lstrip().startswith("print(")]
    return [comment for line in lines if (comment := line.partition("  # ")[2])] if lines else None
