"""Types of the IR beyond machine numbers."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from quadpy.dtypes import Scalar

__all__ = ["Array", "Space"]


class Space(enum.Enum):
    """Where memory lives; a target maps each to one of its address spaces."""

    GLOBAL = "global"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Array:
    """``ndim`` axes of elements in ``space``; an element is a scalar, vector or matrix of ``elem``.

    ``element`` is the element's own shape: ``()``, ``(n,)`` or ``(n, m)``.  ``shape`` is None where the
    extents are run-time values, as in an ndarray; a field has them here.  ``strides`` counts scalars:
    one entry an axis, then one for the components of an element, taken in row-major order.  None means
    C order with the components innermost; ``strided`` means that the axis strides are run-time values
    and the components are contiguous.  ``aligned`` says that the memory begins at a multiple of 16 bytes,
    ``aligned_rows`` that each row of the last axis does.
    """

    elem: Scalar
    ndim: int
    element: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    strided: bool = False
    space: Space = Space.GLOBAL
    aligned: bool = False
    aligned_rows: bool = False

    @property
    def components(self) -> int:
        """How many scalars one element has."""
        count = 1
        for extent in self.element:
            count *= extent
        return count

    def __repr__(self) -> str:
        elem = self.elem.name + "".join(f"x{n}" for n in self.element)
        extents = ", ".join(map(str, self.shape)) if self.shape is not None else ", ".join("?" * self.ndim)
        tail = f", strides={list(self.strides)}" if self.strides is not None else ""
        tail += ", strided" if self.strided else ""
        tail += ", aligned rows" if self.aligned_rows else ", aligned" if self.aligned else ""
        tail += f", {self.space.value}" if self.space is not Space.GLOBAL else ""
        return f"{elem}[{extents}{tail}]"
