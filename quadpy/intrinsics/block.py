"""Operations that the iterations of a block perform together: ``qp.simt.block``."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Lowering, Row, Traced

__all__ = ["GROUPS", "OPERATIONS"]

_TRACED: Final[Lowering] = Traced()
_MEETS: Final = Effect.ORDERS | Effect.CONVERGES
OPERATIONS: Final = {
    "add": "sum", "mul": "product", "min": "minimum", "max": "maximum", "and": "bitwise and", "or": "bitwise or",
    "xor": "bitwise exclusive or",
}  # fmt: skip
"""The operations by which reductions and scans combine values."""


def _combined(kind: str, doc: str) -> tuple[Row, ...]:
    """A reduction or scan of a block by each operation."""
    return tuple(
        Row(
            f"block.{kind}_{op}",
            "value, block_dim=None, dtype=None",
            doc.format(name),
            _TRACED,
            effects=_MEETS,
            per_block=True,
        )
        for op, name in OPERATIONS.items()
    )


_BY_FUNCTION: Final = {
    "reduce(value, block_dim=None, op=None, dtype=None)": "Combines the values of all iterations of the block by ``op``, an associative function of two values, and returns the result in every iteration. The values are numbers, vectors or structs.",
    "reduce_all(value, block_dim=None, op=None, dtype=None)": "Another name for ``reduce``.",
    "inclusive_scan(value, block_dim=None, op=None, dtype=None)": "Combines the values of the block's iterations up to and including this one by ``op``.",
    "exclusive_scan(value, block_dim=None, op=None, identity=None, dtype=None)": "Combines the values of the block's iterations before this one by ``op``; in the first iteration, the result is ``identity``.",
}  # fmt: skip


def _by_function(signature: str, doc: str) -> Row:
    name, _, parameters = signature.removesuffix(")").partition("(")
    return Row(f"block.{name}", parameters, doc, _TRACED, effects=_MEETS, per_block=True)


def _vote(name: str, doc: str) -> Row:
    return Row(f"block.{name}", "cond", doc, _TRACED, effects=_MEETS, per_block=True)


GROUPS: Final = {
    "Blocks of iterations": (
        Row("block.SharedArray", "shape, dtype", "An array that belongs to the block.  ``shape`` is an int or a tuple, known at "
            "compile time; ``dtype`` is a scalar or vector type.  Elements that have not been written have arbitrary values.", _TRACED,
            effects=Effect.ALLOCATES, per_block=True),
        Row("block.sync", "", "Waits for all iterations of the block; each then sees what the others wrote before.",
            _TRACED, effects=_MEETS, per_block=True),
        Row("block.mem_fence", "", "Makes the earlier writes of this iteration visible to the block before its later ones.", _TRACED,
            effects=Effect.ORDERS, per_block=True),
        Row("block.mem_sync", "", "Another name for ``mem_fence``.", _TRACED, effects=Effect.ORDERS, per_block=True),
        Row("block.thread_idx", "", "The number of this iteration in its block, as i32.", _TRACED, per_block=True),
        Row("block.block_idx", "", "The number of this iteration's block, as i32.", _TRACED, per_block=True),
        Row("block.block_dim", "", "The number of iterations in a block; known at compile time.", _TRACED, per_block=True),
        Row("block.global_thread_idx", "", "The number of this iteration in the loop, as i32.", _TRACED, per_block=True),
    ),
    "Reductions, scans and votes of a block": (
        *_combined("reduce", "The {} of the values of all iterations of the block, returned in every iteration."),
        *_combined("reduce_all", "The {} of the values of all iterations of the block, returned in every iteration."),
        *_combined("inclusive", "The {} of the values of the block's iterations up to and including this one."),
        *_combined("exclusive", "The {} of the values of the block's iterations before this one; the identity of the operation in the first."),
        *(_by_function(signature, doc) for signature, doc in _BY_FUNCTION.items()),
        Row("block.radix_rank_match_atomic_or", "key, block_dim, radix_bits, bit_start, num_bits, bins, excl_prefix",
            "The place of this iteration's ``key`` when the block sorts by the ``num_bits`` bits from ``bit_start``; equal digits keep their order. ``bins`` and "
            "``excl_prefix``, shared arrays of ``1 << radix_bits`` i32, get the number of keys of each digit and of smaller ones. ``block_dim`` is ``1 << radix_bits``.",
            _TRACED, effects=Effect.CONVERGES, per_block=True),
        _vote("sync_count_nonzero", "Like ``sync``; returns the number of iterations of the block in which ``cond`` is true."),
        _vote("sync_count", "Another name for ``sync_count_nonzero``."),
        _vote("sync_any_nonzero", "Like ``sync``; returns whether ``cond`` is true in any iteration of the block."),
        _vote("sync_all_nonzero", "Like ``sync``; returns whether ``cond`` is true in all iterations of the block."),
    ),
    "Fences of the device": (
        Row("grid.mem_fence", "", "Makes the earlier writes of this iteration visible to the whole device before its later ones.",
            _TRACED, effects=Effect.ORDERS, per_block=True),
        Row("grid.memfence", "", "Another name for ``mem_fence``.", _TRACED, effects=Effect.ORDERS, per_block=True),
    ),
}  # fmt: skip
