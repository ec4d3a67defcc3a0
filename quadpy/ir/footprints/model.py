"""A footprint: what one access of a task touches of an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quadpy.ir.expressions import Access, AtomicOp
from quadpy.source import Span

__all__ = ["Box", "Footprint", "IndexBox"]

IndexBox: TypeAlias = None
"""The box of elements as formulas; None for the whole array."""


@dataclass(frozen=True, slots=True)
class Box:
    """The elements that a footprint covers at one launch, within the bounds of the array.

    axes    the indices along each axis, as a ``range`` with a positive step; None for the whole array
    exact   every element of the box is touched; else some may not be
    always  no data decides whether the access takes place
    """

    axes: tuple[range, ...] | None
    exact: bool
    always: bool


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one access of a task touches of an array.

    array       the name of the kernel's parameter
    access      READ, WRITE or ATOMIC: a reduction reads and writes its place, without an atomic
    operation   of an atomic access
    components  the scalars of an element that are touched, by their numbers; None for all of them
    box         the elements; None for the whole array
    exact       whether a launch may be told that every element of its box is touched
    always      whether a launch may be told that the access takes place whatever the data
    location    where the access is in the kernel; None where that is unknown
    """

    array: str
    access: Access
    operation: AtomicOp | None
    components: tuple[int, ...] | None
    box: IndexBox
    exact: bool
    always: bool
    location: Span | None
