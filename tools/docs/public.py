"""Every public name of quadpy, and which page of the reference has its entry."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import quadpy
from quadpy.intrinsics import GROUPS, Builtin
from tools.docs import DOCS

REFERENCE: Final = DOCS / "reference"
MODULES: Final = (
    "", "types", "types.quant", "math", "simt", "simt.block", "simt.subgroup", "simt.grid", "simt.warp", "algorithms", "linalg", "graph", "hazards",
    "ad", "profiler", "view", "tools", "torch", "dist", "runtime",
)  # fmt: skip
"""What has public names; an object with several names has its entry by the first."""

_MARK = re.compile(r"<!-- print: (?P<printer>entries|constants|builtins)(?P<names>[\w .*\n]*) -->")


@functools.cache
def public() -> dict[str, Any]:
    """All public names, as users write them, with what they name; modules have pages, not entries."""
    found: dict[str, Any] = {}
    for module in MODULES:
        value = functools.reduce(getattr, module.split("."), quadpy) if module else quadpy
        prefix = f"qp.{module}." if module else "qp."
        for name in value.__all__:
            if not inspect.ismodule(named := getattr(value, name)):
                found[prefix + name] = named
    return found


def _is_constant(value: object) -> bool:
    return isinstance(value, (str, int, float, tuple))


@functools.cache
def other_names() -> dict[str, str]:
    """The names that are other names of objects, with the object's own name, or else the first one."""
    own: dict[int, str] = {}
    for name, value in public().items():
        if own.setdefault(id(value), name).rpartition(".")[2] != getattr(value, "__name__", None):
            own[id(value)] = name if name.rpartition(".")[2] == getattr(value, "__name__", None) else own[id(value)]
    return {
        name: own[id(value)] for name, value in public().items() if not _is_constant(value) and own[id(value)] != name
    }


def others_of(name: str) -> list[str]:
    return [other for other, first in other_names().items() if first == name]


@functools.cache
def pages() -> dict[str, str]:
    """The page that has the entry of each name, by the marks on the pages."""
    return {
        name: page.stem
        for page in sorted(REFERENCE.glob("*.md"))
        for mark in _MARK.finditer(page.read_text(encoding="utf-8"))
        for name in _on(mark["printer"], mark["names"].split())
    }


def _on(printer: str, words: list[str]) -> Iterator[str]:
    if printer == "builtins":
        return (name for names in builtins(*words).values() for name in names)
    return named(words)


def builtins(part: str) -> dict[str, list[str]]:
    """The names of the builtins of blocks and waves (``simt``) or of the others, by headings."""
    groups = {
        title: [f"qp.simt.{row.name}" if row.per_block else f"qp.{row.name}" for row in rows]
        for title, rows in GROUPS.items()
        if all(row.per_block for row in rows) == (part == "simt")
    }
    return {title: [name for name in names if name not in other_names()] for title, names in groups.items()}


def named(words: list[str]) -> Iterator[str]:
    """The names that the words of a mark stand for: ``qp.graph.*`` for all of a module that have an entry of their own."""
    for word in words:
        if word.endswith(".*"):
            prefix = word[:-1]
            yield from (
                name
                for name in public()
                if name.startswith(prefix)
                and "." not in name.removeprefix(prefix)
                and name not in other_names()
                and not isinstance(public()[name], Builtin)
            )
        else:
            yield word


def anchor(name: str) -> str:
    """The name as other projects link to it."""
    return f"quadpy.{name.removeprefix('qp.')}"


def target(name: str) -> str:
    """Where the entry of a name is, from another page of the reference."""
    first = other_names().get(name, name)
    return f"{pages()[first]}.md#{anchor(first)}"
