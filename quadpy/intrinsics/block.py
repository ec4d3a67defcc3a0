"""Operations that the iterations of a block perform together: ``qp.simt.block``."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Lowering, Row, Traced

__all__ = ["GROUPS", "OPERATIONS"]

_TRACED: Final[Lowering] = Traced()
_MEETS: Final = Effect.ORDERS | Effect.CONVERGES
OPERATIONS: Final = {
    "add": "sum", "mul": "product", "min": "least", "max": "greatest", "and": "bitwise and", "or": "bitwise or",
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
    "reduce(value, block_dim=None, op=None, dtype=None)": "The values of the whole block, numbers, vectors or structs, combined by ``op``, an associative function of two; in every iteration.",
    "reduce_all(value, block_dim=None, op=None, dtype=None)": "Another name of ``reduce``.",
    "inclusive_scan(value, block_dim=None, op=None, dtype=None)": "The values of the block's iterations up to this one, combined by ``op``.",
    "exclusive_scan(value, block_dim=None, op=None, identity=None, dtype=None)": "The values of the block's iterations before this one, combined by ``op``; in the first iteration ``identity``.",
}  # fmt: skip


def _by_function(signature: str, doc: str) -> Row:
    name, _, parameters = signature.removesuffix(")").partition("(")
    return Row(f"block.{name}", parameters, doc, _TRACED, effects=_MEETS, per_block=True)


def _vote(name: str, doc: str) -> Row:
    return Row(f"block.{name}", "cond", doc, _TRACED, effects=_MEETS, per_block=True)


GROUPS: Final = {
    "Blocks of iterations": (
        Row("block.SharedArray", "shape, dtype", "An array that belongs to the block.  ``shape`` is an int or a tuple, known at "
            "compile time; ``dtype`` is a scalar or vector type.  Elements that were not written have arbitrary values.", _TRACED,
            effects=Effect.ALLOCATES, per_block=True),
        Row("block.sync", "", "Waits until all iterations of the block arrive; each then sees what the others wrote before.",
            _TRACED, effects=_MEETS, per_block=True),
        Row("block.mem_fence", "", "The block sees this iteration's earlier writes before its later ones.", _TRACED,
            effects=Effect.ORDERS, per_block=True),
        Row("block.mem_sync", "", "Another name of ``mem_fence``.", _TRACED, effects=Effect.ORDERS, per_block=True),
        Row("block.thread_idx", "", "The number of this iteration in its block, as i32.", _TRACED, per_block=True),
        Row("block.block_idx", "", "The number of this iteration's block, as i32.", _TRACED, per_block=True),
        Row("block.block_dim", "", "The number of iterations of a block; known at compile time.", _TRACED, per_block=True),
        Row("block.global_thread_idx", "", "The number of this iteration in the loop, as i32.", _TRACED, per_block=True),
    ),
    "Reductions, scans and votes of a block": (
        *_combined("reduce", "The {} of the values of the whole block, in every iteration."),
        *_combined("reduce_all", "The {} of the values of the whole block, in every iteration."),
        *_combined("inclusive", "The {} of the values of the block's iterations up to this one."),
        *_combined("exclusive", "The {} of the values of the block's iterations before this one."),
        *(_by_function(signature, doc) for signature, doc in _BY_FUNCTION.items()),
        _vote("sync_count_nonzero", "As ``sync``; the number of iterations of the block in which ``cond`` holds."),
        _vote("sync_count", "Another name of ``sync_count_nonzero``."),
        _vote("sync_any_nonzero", "As ``sync``; whether ``cond`` holds in any iteration of the block."),
        _vote("sync_all_nonzero", "As ``sync``; whether ``cond`` holds in all iterations of the block."),
    ),
    "Fences of the device": (
        Row("grid.mem_fence", "", "The whole device sees this iteration's earlier writes before its later ones.",
            _TRACED, effects=Effect.ORDERS, per_block=True),
        Row("grid.memfence", "", "Another name of ``mem_fence``.", _TRACED, effects=Effect.ORDERS, per_block=True),
    ),
}  # fmt: skip
