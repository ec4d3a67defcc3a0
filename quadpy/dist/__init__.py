"""Several GPUs and hosts: ranks, distributed grids and arrays, halos, reductions."""

from __future__ import annotations

from quadpy.dist.arrays import DistributedArray, DistributedField
from quadpy.dist.explain import explain
from quadpy.dist.grid import Grid
from quadpy.dist.world import World, world

__all__ = ["DistributedArray", "DistributedField", "Grid", "World", "explain", "world"]
