"""What an expression of a kernel can be while it is compiled.  Imports: ``ir`` and leaves only.

A scalar that exists at run time is an IR expression.  Vectors and arrays are the classes below.  All else
is a Python object of compile time: numbers, tuples, types, functions, modules, and the user's own objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from quadpy.dtypes import Scalar
from quadpy.ir.nodes import Expr, Node
from quadpy.ir.types import Array

__all__ = [
    "ArrayRef", "BoundMethod", "ElementRef", "Value", "Vec", "holds_runtime", "is_direct", "is_number", "is_runtime",
    "parts_of", "shape_text",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Vec:
    """A vector ``(n,)`` or matrix ``(n, m)``: its scalars, row-major, all of one type."""

    shape: tuple[int, ...]
    elems: tuple[Expr, ...]

    @property
    def type(self) -> Scalar:
        return self.elems[0].type

    def row(self, i: int) -> Vec:
        """Row ``i`` of a matrix."""
        m = self.shape[1]
        return Vec((m,), self.elems[i * m : (i + 1) * m])


@dataclass(frozen=True, slots=True)
class ArrayRef:
    """An array parameter or field; ``offset`` is what a field subtracts from each index."""

    name: str
    type: Array
    offset: tuple[int, ...] = ()
    writable: bool = True


@dataclass(frozen=True, slots=True)
class ElementRef:
    """An element of an array, not yet read: ``component`` is None for the whole element, or the scalars meant of it."""

    array: ArrayRef
    index: tuple[Expr, ...]
    component: Any = None


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """``receiver.name`` before it is called, for receivers that are no Python objects."""

    receiver: Vec | ArrayRef
    name: str


Value: TypeAlias = Any
"""An ``Expr``, a ``Vec``, an ``ArrayRef``, a ``BoundMethod``, or any Python object of compile time."""


def is_runtime(value: Value) -> TypeGuard[Expr]:
    """True for a scalar of run time."""
    return isinstance(value, Node)


def is_direct(value: Value) -> bool:
    """True for what the compiler has an object of its own for: no function of Python's may see that."""
    return isinstance(value, (Node, Vec, ArrayRef, ElementRef, BoundMethod))


def holds_runtime(value: Value) -> bool:
    """True for such a value, and for a container with one in it."""
    waiting: list[Value] = [value]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if is_direct(item):
            return True
        if id(item) not in seen:  # what is in many places is looked at once
            seen.add(id(item))
            waiting += parts_of(item)
    return False


def parts_of(value: Value) -> Sequence[Value]:
    """What a container holds; of all else, nothing."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    parts = getattr(type(value), "__quadpy_parts__", None)
    if parts is not None:
        return [parts(value)]
    return list(value) if isinstance(value, (tuple, list, set, frozenset)) else []


def is_number(value: Value) -> TypeGuard[float]:
    """True for a Python number, which is a literal of the kernel."""
    return isinstance(value, (int, float))


def shape_text(value: Value) -> str:
    """The type of a value, for messages."""
    if is_runtime(value):
        return str(value.type)
    if isinstance(value, Vec):
        return f"{value.type} {'x'.join(map(str, value.shape))}"
    if isinstance(value, ArrayRef):
        return f"array {value.type!r}"
    if isinstance(value, (tuple, list)) and holds_runtime(value):
        inner = ", ".join(shape_text(item) if holds_runtime(item) else repr(item) for item in value)
        return f"tuple ({inner})" if isinstance(value, tuple) else f"list [{inner}]"
    return f"method {value.name}" if isinstance(value, BoundMethod) else type(value).__name__
