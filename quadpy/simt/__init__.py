"""``qp.simt``: operations that the iterations of a loop perform together, in blocks and in waves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.simt import block, grid, subgroup, warp
from quadpy.simt.tiles import Tile, Tile16x16, Tile32x32

__all__ = ["Tile", "Tile16x16", "Tile32x32", "block", "grid", "subgroup", "warp"]

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
