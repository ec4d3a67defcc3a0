"""``qp.simt.warp``: Taichi's names for operations of ``qp.simt.subgroup``, on every target.

Their masks must name all lanes of the wave: ``qp.u32(0xFFFFFFFF)`` where waves have 32 lanes.
"""

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.intrinsics import namespace

globals().update(namespace("warp"))
__all__ = list(namespace("warp"))

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
