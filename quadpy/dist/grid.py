"""Grids: cells that are divided among ranks, and arrays over them."""

from __future__ import annotations

from quadpy.dist.arrays import DistributedArray, DistributedField
from quadpy.dist.division import Division
from quadpy.runtime.elements.types import DType


class Grid(Division):
    """Cells of a global shape, and arrays with an element for each cell; each rank owns one block of them."""

    def ndarray(self, dtype: DType) -> DistributedArray:
        """An array of zeros, which kernels take as a parameter; ``dtype`` is a scalar, vector or matrix type."""
        return DistributedArray.of(self, dtype)

    def field(self, dtype: DType, *, name: str = "") -> DistributedField:
        """A field of zeros, which kernels use by name; ``dtype`` as in ``ndarray``, ``name`` is shown in messages."""
        made = DistributedField.of(self, dtype)
        made.name = name
        return made
