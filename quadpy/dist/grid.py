"""Grids: cells that are divided among ranks, and arrays over them."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.dist.arrays import DistributedArray, DistributedField
from quadpy.dist.division import Division
from quadpy.runtime.elements.types import DType


class Grid(Division):
    """Cells of a global shape, and arrays over them; each rank owns one block of the cells."""

    def ndarray(self, dtype: DType, *, staggered: bool | Sequence[bool] = False) -> DistributedArray:
        """An array of zeros, which kernels take as a parameter.

        Args:
            dtype: a scalar, vector or matrix type.
            staggered: for each axis, whether there is an element for each face between cells rather than for each cell:
                one more.  Face i is below cell i.  ``(True, False)`` has the faces across the first axis, and one
                value is for all axes: ``True`` has corners.

        Raises:
            ArgumentError: ``dtype`` is a struct, or a periodic axis is staggered, whose last face is its first.
        """
        return DistributedArray.of(self, dtype, staggered)

    def field(self, dtype: DType, *, staggered: bool | Sequence[bool] = False, name: str = "") -> DistributedField:
        """A field of zeros, which kernels use by name; arguments as of ``ndarray``, ``name`` is shown in messages."""
        made = DistributedField.of(self, dtype, staggered)
        made.name = name
        return made
