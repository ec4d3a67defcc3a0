"""Partial results of loops, in the order that compiled kernels have: see ``codegen.reduction`` and ``codegen.plans.privatise``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np

from quadpy.codegen.plans.privatise import COPY_COST, LARGE_COPIES, LINE, MOST_BYTES, MOST_COPIES, MOST_TOGETHER
from quadpy.codegen.reduction import ACCUMULATORS, MOST_CHUNKS, STRANDS, chunk_size, merge_op
from quadpy.core.dtypes import Scalar, bf16, u1
from quadpy.interpreter.numbers import TYPES, bf16_of_bits, bits_of_bf16, identity
from quadpy.ir.nodes import AtomicOp

Numbers: TypeAlias = np.ndarray[Any, Any]

_MOST_ITERATIONS: Final = 1 << 40
_MOST_COST: Final = 1 << 20


def combined(op: AtomicOp, a: Numbers, b: Numbers, t: Scalar) -> Numbers:
    """``a op b``, element by element."""
    made: Numbers
    match op:
        case AtomicOp.ADD | AtomicOp.SUB if t == u1:
            made = a ^ b
        case AtomicOp.ADD:
            made = a + b
        case AtomicOp.SUB:
            made = a - b
        case AtomicOp.MUL:
            made = a & b if t == u1 else a * b
        case AtomicOp.AND:
            made = a & b
        case AtomicOp.OR:
            made = a | b
        case AtomicOp.XOR:
            made = a ^ b
        case AtomicOp.MIN if not t.is_float:
            made = np.minimum(a, b)
        case AtomicOp.MAX if not t.is_float:
            made = np.maximum(a, b)
        case AtomicOp.MIN:
            made = np.where(a == b, np.where(np.signbit(a), a, b), np.fmin(a, b))
        case AtomicOp.MAX:
            made = np.where(a == b, np.where(np.signbit(a), b, a), np.fmax(a, b))
        case _:
            raise AssertionError(op)
    return np.vectorize(TYPES[bf16], otypes=[np.float32])(made) if t == bf16 and made.size else made


def merged(op: AtomicOp, t: Scalar, contributions: Sequence[Any]) -> Any:
    """The result of the iterations' ``contributions``, in the fixed shape of reductions."""
    op, n = merge_op(op), len(contributions)
    size = chunk_size(n)
    nothing = identity(op.value, t)
    values = np.full(-(-n // size) * size, nothing)
    values[:n] = contributions
    rows = values.reshape(-1, STRANDS, size // STRANDS // ACCUMULATORS, ACCUMULATORS)
    strands = np.full(rows[:, :, 0].shape, nothing)
    for row in range(rows.shape[2]):
        strands = combined(op, strands, rows[:, :, row], t)
    results = strands.reshape(len(rows), -1)
    while (half := results.shape[1] // 2) > 0:
        results = combined(op, results[:, :half], results[:, half:], t)
    return _merged_chunks(op, t, results[:, 0])


def _merged_chunks(op: AtomicOp, t: Scalar, chunks: Numbers) -> Any:
    half = MOST_CHUNKS // 2
    while len(chunks) > 1:
        kept, others = chunks[:half].copy(), chunks[half:]
        kept[: len(others)] = combined(op, kept[: len(others)], others, t)
        chunks, half = kept, half // 2
    return chunks[0]


def copies(
    iterations: Iterable[Any], n: int, cost: int, arrays: Sequence[tuple[AtomicOp, Scalar, Sequence[Numbers]]]
) -> Iterator[tuple[Any, ...]]:
    """Chunks of the iterations, each with the arrays that it updates: copies, which are merged at the end in their order.

    An array is given as one array for each scalar of its elements.
    """
    iterations, elements = iter(iterations), [sum(part.size for part in parts) for _, _, parts in arrays]
    sizes = [-(-many * t.nbytes // LINE) * LINE for many, (_, t, _) in zip(elements, arrays, strict=True)]
    nbytes = sum(sizes)
    worth = min(n, _MOST_ITERATIONS) * min(cost, _MOST_COST) // ((1 + sum(elements)) * COPY_COST)
    most = MOST_COPIES if nbytes <= MOST_BYTES else LARGE_COPIES
    many = max(1, min(worth, most, MOST_TOGETHER // max(nbytes, 1)))
    chunk = max(1, -(-n // (1 << many.bit_length() - 1)))
    count = max(1, -(-n // chunk))
    whole = [part for _, _, parts in arrays for part in parts]
    if count == 1:
        yield iterations, *whole
        return
    made = []
    for _ in range(count):
        fresh = [
            np.full(part.shape, _stored(identity(merge_op(op).value, t), t))
            for op, t, parts in arrays
            for part in parts
        ]
        made.append(fresh)
        yield islice(iterations, chunk), *fresh
    kinds = [(op, t) for op, t, parts in arrays for _ in parts]
    for fresh in made:
        for (op, t), part, own in zip(kinds, whole, fresh, strict=True):
            part[...] = _in_memory(combined(merge_op(op), _numbers(part, t), _numbers(own, t), t), t)


def _stored(value: Any, t: Scalar) -> Any:
    return bits_of_bf16(value) if t == bf16 else value


def _numbers(held: Numbers, t: Scalar) -> Numbers:
    return np.vectorize(bf16_of_bits, otypes=[np.float32])(held) if t == bf16 and held.size else held


def _in_memory(values: Numbers, t: Scalar) -> Numbers:
    return np.vectorize(bits_of_bf16, otypes=[np.uint16])(values) if t == bf16 and values.size else values


def count(*ranges: range) -> int:
    """The number of iterations of a loop over all of ``ranges``."""
    return math.prod(map(len, ranges))
