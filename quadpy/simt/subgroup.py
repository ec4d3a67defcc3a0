"""``qp.simt.subgroup``: the lanes of a wave, which exchange values without memory.

The iterations of a block, in order, are divided into waves of 32 or 64 lanes, which the processor runs in lockstep.  All lanes
of a wave take part in its operations: such a loop runs whole blocks only, and a condition around an operation must be one
that all lanes of a wave agree on.
"""

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.intrinsics import namespace

globals().update(namespace("subgroup"))
__all__ = list(namespace("subgroup"))

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
