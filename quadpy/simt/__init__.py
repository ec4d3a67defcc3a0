"""``qp.simt``: what the iterations of a loop do together, by blocks and by waves."""

from __future__ import annotations

from quadpy.simt import block, grid, subgroup, warp

__all__ = ["block", "grid", "subgroup", "warp"]
