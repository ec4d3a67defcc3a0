"""Marks: places of the source, and what its names stand for, in kernels that Python runs for a debugger."""

from __future__ import annotations

from typing import TypeAlias

from quadpy.core.light import dataclass
from quadpy.ir.expressions import Expr
from quadpy.ir.node import Pure

__all__ = [
    "ArraySeen", "Breakpoint", "Enter", "Exit", "Line", "Mark", "Names", "ObjectSeen", "Seen", "StructSeen", "VectorSeen",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class VectorSeen:
    """A vector or matrix, as a debugger shows it."""

    shape: tuple[int, ...]
    elems: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class StructSeen:
    """A struct, as a debugger shows it."""

    members: tuple[tuple[str, Seen], ...]


@dataclass(frozen=True, slots=True)
class ArraySeen:
    """An array, as a debugger shows it."""

    name: str


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """A value known at compile time."""

    value: object


Seen: TypeAlias = Expr | VectorSeen | StructSeen | ArraySeen | ObjectSeen
"""The meaning of a name in the source; for a variable, its current value."""


@dataclass(frozen=True, slots=True)
class Mark(Pure):
    """A place of the source, for debuggers.

    Marks are there only in a trace with ``Options.lines``, which Python runs: no pass sees them.
    """


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """Here begins the statement of the source at ``span``."""


@dataclass(frozen=True, slots=True)
class Names(Mark):
    """From here on, names of the source stand for something else.  No traversal sees their values: marks use nothing."""

    bound: tuple[tuple[str, Seen], ...]


@dataclass(frozen=True, slots=True)
class Enter(Mark):
    """Here begins the body of an inlined function called ``name``, whose definition is at ``span``."""

    name: str


@dataclass(frozen=True, slots=True)
class Exit(Mark):
    """The end of the inlined function that was entered last, in the same block."""


@dataclass(frozen=True, slots=True)
class Breakpoint(Mark):
    """A debugger stops here."""
