"""``qp.simt.block``: the iterations of a parallel loop in blocks, with shared arrays and barriers.

The iterations, in order, are divided into blocks of ``qp.loop_config(block_dim=…)``, or of 256.  A block runs in one place,
on a GPU as one thread block: its iterations may share arrays and wait for each other.

A loop with a barrier runs whole blocks only: a number of iterations that is not a multiple of ``block_dim`` is an
ArgumentError at the call.  Round the range up, and use an ``if`` to skip the work in the added iterations.
"""

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.intrinsics import namespace

globals().update(namespace("block"))
__all__ = list(namespace("block"))

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
