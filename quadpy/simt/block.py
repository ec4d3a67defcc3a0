"""``qp.simt.block``: the iterations of a parallel loop in blocks, with shared arrays and barriers.

The iterations, in order, are cut into blocks of ``qp.loop_config(block_dim=…)``, 256 where that is not said.  A block
runs at one place, on a GPU as one thread block: its iterations may share arrays and wait for each other.

A loop with a barrier runs whole blocks only: a number of iterations that is no multiple of ``block_dim`` is an
ArgumentError at the call.  Round the range up, and guard what must not happen twice or out of bounds with an ``if``.
Imports: ``lang`` only.
"""

from __future__ import annotations

from quadpy.lang.builtins import Builtin

__all__ = ["SharedArray", "block_dim", "block_idx", "global_thread_idx", "mem_fence", "sync", "thread_idx"]

SharedArray = Builtin(
    "block.SharedArray",
    "SharedArray(shape, dtype): an array of each block's own.  ``shape`` is an int or a tuple, known at compile time; "
    "``dtype`` a scalar or vector type.  What nobody wrote yet is some value of the type.",
)
sync = Builtin(
    "block.sync",
    "sync(): all iterations of a block come here before one goes on, and see what the others wrote before.",
)
mem_fence = Builtin(
    "block.mem_fence", "mem_fence(): the block sees what this iteration wrote before it sees what it writes after."
)
thread_idx = Builtin("block.thread_idx", "thread_idx(): the number of this iteration in its block, as i32.")
block_idx = Builtin("block.block_idx", "block_idx(): the number of this iteration's block, as i32.")
block_dim = Builtin("block.block_dim", "block_dim(): how many iterations a block has; known at compile time.")
global_thread_idx = Builtin(
    "block.global_thread_idx", "global_thread_idx(): the number of this iteration in the loop, as i32."
)
