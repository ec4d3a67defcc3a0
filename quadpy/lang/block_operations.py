"""Operations over all iterations of a block: waves compute partial results, which are combined in shared memory.

The waves' results are combined as a balanced tree, and scans add the lower waves to a wave, nearest first.  Therefore, the bits
do not depend on the wave size: waves of 32 continue as the lanes of a wave of 64 do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import Scalar, i32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import binary, minimum, select
from quadpy.ir.nodes import AtomicOp, WaveOp
from quadpy.ir.types import Space, array_of
from quadpy.lang.context import Trace
from quadpy.lang.lanes import lane_of, wave_of, wave_size
from quadpy.lang.scalars import cast, to_condition
from quadpy.lang.subgroup import OPERATIONS, by_component, combinable, wave
from quadpy.lang.values import Value, shape_text

Rule: TypeAlias = Callable[..., Any]

_NEUTRAL: Final = {AtomicOp.ADD: 0, AtomicOp.MUL: 1, AtomicOp.XOR: 0}
"""The identities of the operations that are not idempotent; for floats, -0.0 under addition."""


def waves_of(t: Trace) -> int:
    """How many waves a block has."""
    return t.loop_around.block_dim // wave_size(t)


def results_of_waves(t: Trace, value: ir.Expr, from_lane: int, how: AtomicOp | None, span: Span) -> ir.Expr:
    """In each lane k, the ``value`` of lane ``from_lane`` of wave k; lanes beyond the waves have the identity."""
    count, lane = waves_of(t), lane_of(t, span)
    name, type_ = f"shared${t.shared_count}", array_of(value.type, 1, (), (count,), space=Space.SHARED)
    t.shared_count += 1
    t.loop_around.shared.append(ir.SharedArray(name, type_, span=span))
    t.build.emit(ir.Barrier(span=span))  # in a loop, all have read the values of the previous iteration
    own = ir.Element(name, (wave_of(t, span),), 0, value.type, span=span)
    t.build.branch(lane.eq(from_lane), [ir.Store(own, value, span=span)], [], span)
    t.build.emit(ir.Barrier(span=span))
    there = minimum(lane, count - 1)
    held = t.build.load(ir.Element(name, (there,), 0, value.type, span=span), span)
    if how not in _NEUTRAL:
        return held  # the last wave's result once more
    number: float = _NEUTRAL[how]
    neutral = ir.Const(-0.0 if value.type.is_float and not number else number, value.type, span=span)
    return t.build.let(select(lane < count, held, neutral))


def _merged(t: Trace, value: ir.Expr, how: AtomicOp, span: Span) -> ir.Expr:
    """The results ``value`` of all waves combined, which the whole block then has in common."""
    if waves_of(t) > 1:
        value = wave(t, WaveOp.REDUCE, (results_of_waves(t, value, 0, how, span),), span, how)
    return wave(t, WaveOp.COMMON, (value,), span)


def _reduce(operation: AtomicOp) -> Rule:
    def one(t: Trace, span: Span, value: ir.Expr) -> ir.Expr:
        how, value = combinable(t, operation, value, span)
        return _merged(t, wave(t, WaveOp.REDUCE, (value,), span, how), how, span)

    return _with_peers_parameters(one)


def _scan(operation: AtomicOp, op: WaveOp) -> Rule:
    def one(t: Trace, span: Span, value: ir.Expr) -> ir.Expr:
        how, value = combinable(t, operation, value, span)
        upto = wave(t, WaveOp.INCLUSIVE, (value,), span, how)
        before = wave(t, WaveOp.EXCLUSIVE, (value,), span, how) if op is WaveOp.EXCLUSIVE else upto
        if waves_of(t) == 1:
            return before
        totals = results_of_waves(t, upto, wave_size(t) - 1, how, span)
        for distance, below in _below(t, totals, how, span):
            before = _with_below(t, before, below, distance, how, op, span)
        return before

    return _with_peers_parameters(one)


def _below(t: Trace, totals: ir.Expr, how: AtomicOp, span: Span) -> Iterator[tuple[int, ir.Expr]]:
    """For each power of two, the value of the neighbouring group of that many waves."""
    distance, number = 1, wave_of(t, span)
    while distance < waves_of(t):
        yield distance, wave(t, WaveOp.BROADCAST, (totals, number ^ distance), span)
        distance *= 2
        if distance < waves_of(t):
            other = wave(t, WaveOp.XOR, (totals, ir.Const(distance // 2, i32, span=span)), span)
            totals = t.build.let(binary(ir.COMBINES[how], totals, other))


def _with_below(
    t: Trace, value: ir.Expr, below: ir.Expr, distance: int, how: AtomicOp, op: WaveOp, span: Span
) -> ir.Expr:
    """``value`` combined with ``below`` if the neighbour is below; a lane without a value takes ``below`` unchanged."""
    number = wave_of(t, span)
    both: ir.Expr = binary(ir.COMBINES[how], value, below)
    if op is WaveOp.EXCLUSIVE:
        first = lane_of(t, span).eq(0)
        nothing = (number & distance - 1).eq(0)
        both = select(first & nothing, below, both)
    is_above = (number & distance).ne(0)
    return t.build.let(select(is_above, both, value))


def checked_block(t: Trace, block_dim: Value, span: Span) -> None:
    """Refuses a block size that differs from the loop's."""
    size = t.loop_around.block_dim
    if block_dim is not None and block_dim != size:
        given = block_dim if isinstance(block_dim, int) else shape_text(block_dim)
        t.fail_type(f"the block has {size} iterations, not {given}", span,
                    "leave block_dim out, or pass the same value as qp.loop_config(block_dim=...)")  # fmt: skip


def _with_peers_parameters(one: Rule) -> Rule:
    """``one`` for scalars and for the components of vectors.

    Programs written for Quadrants repeat the block size and the type: both must match.
    """

    def run(t: Trace, span: Span, value: Value, block_dim: Value = None, dtype: Value = None) -> Value:
        checked_block(t, block_dim, span)
        if dtype is not None and not isinstance(dtype := t.scalar_type(dtype), Scalar):
            t.fail_type(f"a scalar type is needed, not {shape_text(dtype)}", span)
        if dtype is None:
            return by_component(one)(t, span, value)
        return by_component(lambda t, span, each: one(t, span, t.build.let(cast(t, each, dtype, span))))(t, span, value)

    return run


def _count(t: Trace, span: Span, cond: Value) -> ir.Expr:
    """In how many iterations of the block ``cond`` holds."""
    mask = wave(t, WaveOp.BALLOT, (t.build.let(to_condition(t, cond, span)),), span)
    return _merged(t, t.build.let(ir.Intrinsic("popcnt", (mask,), i32, span=span)), AtomicOp.ADD, span)


def _count_nonzero(t: Trace, span: Span, cond: Value) -> Value:
    return _count(t, span, cond)


def _any_nonzero(t: Trace, span: Span, cond: Value) -> Value:
    return _count(t, span, cond).ne(0)


def _all_nonzero(t: Trace, span: Span, cond: Value) -> Value:
    return _count(t, span, cond).eq(t.loop_around.block_dim)


BLOCK_RULES: Final[dict[str, Rule]] = {
    **{f"block.{prefix}_{name}": _reduce(op) for name, op in OPERATIONS.items() for prefix in ("reduce", "reduce_all")},
    **{f"block.inclusive_{name}": _scan(op, WaveOp.INCLUSIVE) for name, op in OPERATIONS.items()},
    **{f"block.exclusive_{name}": _scan(op, WaveOp.EXCLUSIVE) for name, op in OPERATIONS.items()},
    "block.sync_count_nonzero": _count_nonzero,
    "block.sync_count": _count_nonzero,
    "block.sync_any_nonzero": _any_nonzero,
    "block.sync_all_nonzero": _all_nonzero,
}
