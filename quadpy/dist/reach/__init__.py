"""How far loops over a grid read around the cells of a rank, and where each rank runs them."""

from __future__ import annotations

from quadpy.dist.reach.loops import LoopReach
from quadpy.dist.reach.model import Reaches

__all__ = ["LoopReach", "Reaches"]
