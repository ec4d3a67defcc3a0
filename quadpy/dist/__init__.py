"""Several GPUs and hosts: ranks, distributed grids and arrays, halos, reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.dist.arrays import DistributedArray, DistributedField
from quadpy.dist.captured import CapturedStep, capture
from quadpy.dist.explain import explain
from quadpy.dist.grid import Grid
from quadpy.dist.world import World, world

__all__ = ["CapturedStep", "DistributedArray", "DistributedField", "Grid", "World", "capture", "explain", "world"]

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
