"""A footprint: the part of an array that one access of a task touches."""

from __future__ import annotations

from typing import NamedTuple

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir.expressions import AtomicOp
from quadpy.ir.index.numbers import FALSE, Number
from quadpy.ir.node import Access


class Box(NamedTuple):
    """The elements that a footprint covers at one launch, within the bounds of the array.

    axes    the indices along each axis, as a ``range`` with a positive step; None for the whole array
    exact   every element of the box is touched; otherwise some may not be
    always  no data decides whether the access takes place
    """

    axes: tuple[range, ...] | None
    exact: bool
    always: bool


@dataclass(frozen=True, slots=True)
class Indices:
    """Along one axis: ``low`` to ``last``, those that are multiples of ``step`` away from ``origin``."""

    low: Number
    last: Number
    step: Number
    origin: Number


@dataclass(frozen=True, slots=True)
class BoxFormula:
    """The box of a footprint as formulas.

    holds    whether the other formulas do: otherwise the kernel's arithmetic wraps, and the box is the whole array
    present  whether the access takes place at all
    exact, always  as in ``Box``
    """

    axes: tuple[Indices, ...]
    holds: Number
    present: Number
    exact: Number
    always: Number


@dataclass(frozen=True, slots=True)
class Footprint:
    """The part of an array that one access of a task touches.

    array       the name of the kernel's parameter
    access      READ, WRITE or ATOMIC: ``x[i] += v``, which is one step only in its launch, reads and writes
    operation   of an atomic access
    components  the scalars of an element that are touched, by their numbers, in order; None for all of them
    box         the elements; None for the whole array
    location    where the access is in the kernel; None if that is unknown
    """

    array: str
    access: Access
    operation: AtomicOp | None
    components: tuple[int, ...] | None
    box: BoxFormula | None
    location: Span | None

    @property
    def exact(self) -> bool:
        """Whether a launch may touch every element of the box."""
        return self.box is not None and self.box.exact != FALSE

    @property
    def always(self) -> bool:
        """Whether at some launch no data decides whether the access takes place."""
        return self.box is not None and self.box.always != FALSE
