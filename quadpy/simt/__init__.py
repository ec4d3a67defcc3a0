"""``qp.simt``: operations that the iterations of a loop perform together, in blocks and in waves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.core.completion import public_names
from quadpy.core.importing import import_late
from quadpy.simt import block, grid, subgroup, warp

__all__ = ["Tile", "Tile16x16", "Tile32x32", "block", "grid", "subgroup", "warp"]

_LATE: Final = ("Tile", "Tile16x16", "Tile32x32")
"""Most programs have no tiles."""

if TYPE_CHECKING:
    from quadpy.simt.tiles import Tile as Tile, Tile16x16 as Tile16x16, Tile32x32 as Tile32x32
else:
    __dir__, _unknown = public_names(__name__)

    def __getattr__(name: str) -> object:
        if name not in _LATE:
            _unknown(name)
        value = globals()[name] = getattr(import_late("quadpy.simt.tiles"), name)
        return value
