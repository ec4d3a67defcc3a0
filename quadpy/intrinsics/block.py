"""What the iterations of a block do together: ``qp.simt.block``."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Lowering, Row, Traced

__all__ = ["GROUPS"]

_TRACED: Final[Lowering] = Traced()

GROUPS: Final = {
    "Blocks of iterations": (
        Row("block.SharedArray", "shape, dtype", "An array of each block's own.  ``shape`` is an int or a tuple, known at "
            "compile time; ``dtype`` is a scalar or vector type.  Elements that nobody has written hold any value.", _TRACED,
            effects=Effect.ALLOCATES, per_block=True),
        Row("block.sync", "", "All iterations of a block come here before one goes on, and see what the others wrote before.",
            _TRACED, effects=Effect.ORDERS | Effect.CONVERGES, per_block=True),
        Row("block.mem_fence", "", "The block sees what this iteration wrote before it sees what it writes after.", _TRACED,
            effects=Effect.ORDERS, per_block=True),
        Row("block.thread_idx", "", "The number of this iteration in its block, as i32.", _TRACED, per_block=True),
        Row("block.block_idx", "", "The number of this iteration's block, as i32.", _TRACED, per_block=True),
        Row("block.block_dim", "", "How many iterations a block has; known at compile time.", _TRACED, per_block=True),
        Row("block.global_thread_idx", "", "The number of this iteration in the loop, as i32.", _TRACED, per_block=True),
    )
}  # fmt: skip
