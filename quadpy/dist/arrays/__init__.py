"""Arrays with an element for each cell of a grid: each rank has its own block, with a halo around it."""

from __future__ import annotations

from quadpy.dist.arrays.array import DistributedArray
from quadpy.dist.arrays.field import DistributedField
from quadpy.dist.arrays.memory import allocated

__all__ = ["DistributedArray", "DistributedField", "allocated"]
