"""Where fields are in memory: orders of axes, layouts of components, blocks."""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from quadpy.core.dtypes import Scalar
from quadpy.core.messages import shown
from quadpy.errors import ArgumentError
from quadpy.runtime.memory.blocked import Blocks
from quadpy.runtime.memory.placement import Memory

AXIS_NAMES: Final = "ijklmnopqrst"


class Layout(enum.Enum):
    """How the components of vectors and matrices are stored: together (AOS), or each in its own array (SOA)."""

    AOS = "aos"
    SOA = "soa"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ArgumentError(f"{shown(value)} is not a layout", hint="write qp.Layout.AOS or qp.Layout.SOA")


class Placement(NamedTuple):
    """Where a field is stored: ``start`` bytes into ``memory``, with ``strides`` in scalars.

    There is one stride per axis, and one more for the components of an element in row-major order.  With ``blocks``, there
    is one for each level of each axis.  With ``parts``, each component has a place of its own in ``memory``.
    """

    memory: Memory
    start: int
    strides: tuple[int, ...]
    blocks: Blocks = ()
    parts: tuple[Placement, ...] = ()


class StoredMember(NamedTuple):
    """The numbers of one type in an element, in bytes: the first at ``offset``, each other one ``stride`` after it.

    ``axes`` are the steps from element to element along each axis.
    """

    scalar: Scalar
    stride: int
    shape: tuple[int, ...]
    offset: int
    axes: tuple[int, ...]


def reach_of(members: Iterable[StoredMember], extents: tuple[int, ...]) -> int:
    """Bytes from the first number of an array of structs to the end of the last, including the bytes between them."""
    return max(
        member.offset + member.scalar.nbytes + (math.prod(member.shape) - 1) * member.stride
        + sum((n - 1) * step for n, step in zip(extents, member.axes, strict=True))
        for member in members
    )  # fmt: skip


class FieldTree(Protocol):
    """A tree of fields, which allocates their memory when the first of them needs it."""

    def bind(self) -> None:
        """Call ``put`` on every field of the tree."""


def require_layout(given: object) -> None:
    """Raise ArgumentError for anything but a Layout."""
    if not isinstance(given, Layout):
        raise ArgumentError(f"layout={shown(given)} is not a layout", hint="qp.Layout.AOS or qp.Layout.SOA")


def require_no_layout(order: object, offset: object, layout: Layout) -> None:
    """Raise ArgumentError for options that a field without a shape cannot have."""
    require_layout(layout)
    if order is not None or offset is not None or layout is not Layout.AOS:
        raise ArgumentError(
            "order, offset and layout need a shape", hint="pass shape=, or give them where the field is placed"
        )


def axis_strides(shape: tuple[int, ...], order: str | None) -> tuple[int, ...]:
    """The strides of a dense array of single numbers with the axes in this order."""
    return strides_of(shape, order_of(order, len(shape)), 1, Layout.AOS)[:-1]


def strides_of(shape: tuple[int, ...], order: list[int], components: int, layout: Layout) -> tuple[int, ...]:
    strides = [0] * len(shape)
    step = components if layout is Layout.AOS else 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return (*strides, 1 if layout is Layout.AOS else step)


def order_of(order: object, ndim: int) -> list[int]:
    names = AXIS_NAMES[:ndim]
    if order is None:
        return list(range(ndim))
    if not isinstance(order, str) or sorted(order) != sorted(names):
        raise ArgumentError(
            f"order={order!r} must name each of the {ndim} axes once", hint=f"for example {names[::-1]!r}"
        )
    return [names.index(letter) for letter in order]


def offset_of(offset: object, ndim: int) -> tuple[int, ...]:
    try:
        origin = integers_of(offset)
    except TypeError:
        origin = None
    if origin is None or len(origin) != ndim:
        raise ArgumentError(f"offset={offset!r} must be {ndim} integers, one per axis")
    return origin


def integers_of(given: Any) -> tuple[int, ...]:
    """An int, or a sequence or NumPy array of ints, as a tuple; TypeError for anything else."""
    is_sequence = isinstance(given, (tuple, list)) or getattr(given, "ndim", 0) == 1
    return tuple(map(operator.index, given if is_sequence else (given,)))


class Freed:
    """In place of the tree of a field whose memory was given back."""

    def __init__(self, what: str) -> None:
        self._what = what

    def bind(self) -> None:
        raise ArgumentError(
            f"{self._what} was destroyed: its memory was freed",
            hint="make another one, or destroy the tree of a FieldsBuilder only when its fields are no longer used",
        )
