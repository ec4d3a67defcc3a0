"""Reductions and scans of a block by a function of the user's, which need only be associative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.core.source import Span
from quadpy.ir.build import maximum
from quadpy.ir.nodes import WaveOp
from quadpy.lang.block_operations import checked_block, results_of_waves, waves_of
from quadpy.lang.context import Trace
from quadpy.lang.lane_trees import Combine, Numbers, choose, exchange, has_bit, scan, shape_of, tree
from quadpy.lang.lanes import lane_of, wave_of, whole_waves
from quadpy.lang.scalars import cast, to_scalar
from quadpy.lang.structs import scalars_for
from quadpy.lang.values import Record, Value, Vec, elems_of, shape_text, shaped
from quadpy.lang.vectors import make_vector, map_vec

Rule: TypeAlias = Callable[..., Any]


def _numbers(t: Trace, value: Value, dtype: Value, span: Span) -> Numbers:
    """What the function combines: a scalar, a vector, or a struct."""
    if isinstance(value, (Vec, list, tuple)):
        value = make_vector(t, value, span)
    elif not isinstance(value, Record):
        value = to_scalar(t, value, span)
    if dtype is not None:
        scalar = t.scalar_type(dtype)
        if not isinstance(scalar, Scalar) or isinstance(value, Record):
            t.fail_type(f"dtype must be a scalar type, for numbers and vectors, not {shape_text(dtype)}", span)
        value = (
            map_vec(t, lambda e: cast(t, e, scalar, span), value)
            if isinstance(value, Vec)
            else cast(t, value, scalar, span)
        )
    return shaped(shape_of(value), [t.build.let(e) for e in elems_of(value)])


def _combining(t: Trace, op: Value, like: Numbers, span: Span) -> Combine:
    """``op`` of two values that are like ``like``, and so is its result."""
    if not callable(op):
        t.fail_type(f"op must be a function that combines two values, not {shape_text(op)}", span,
                    "such as a @qp.func, a lambda, min or max")  # fmt: skip
    types = [e.type for e in elems_of(like)]
    shape = shape_of(like)

    def combine(a: Numbers, b: Numbers) -> Numbers:
        found = scalars_for(t, t.call(op, [a, b], {}, span), shape, types, span)
        return shaped(shape, [t.build.let(e) for e in found])

    return combine


def _of_waves(t: Trace, value: Numbers, lane: int, span: Span) -> Numbers:
    """In lane k, the value of ``lane`` of wave k."""
    return shaped(shape_of(value), [results_of_waves(t, e, lane, None, span) for e in elems_of(value)])


def _reduce(
    t: Trace, span: Span, value: Value, block_dim: Value = None, op: Value = None, dtype: Value = None
) -> Value:
    checked_block(t, block_dim, span)
    own = _numbers(t, value, dtype, span)
    combine = _combining(t, op, own, span)
    total = tree(t, own, whole_waves(t, span), combine, span)
    if waves_of(t) > 1:
        total = tree(t, _of_waves(t, total, 0, span), waves_of(t), combine, span)
    shared = [t.build.let(e) for e in elems_of(exchange(t, WaveOp.BROADCAST, total, 0, span))]
    return shaped(shape_of(total), shared)


def _upto(t: Trace, span: Span, own: Numbers, combine: Combine) -> Numbers:
    """The combined values of the block's iterations up to this one: the wave's own, then the lower waves, nearest first."""
    size, number = whole_waves(t, span), wave_of(t, span)
    upto = scan(t, own, size, combine, span)
    if waves_of(t) == 1:
        return upto
    totals, distance = _of_waves(t, upto, size - 1, span), 1
    while distance < waves_of(t):
        other = number ^ distance
        below = exchange(t, WaveOp.BROADCAST, totals, other, span)
        upto = choose(t, has_bit(number, distance), combine(below, upto), upto)
        neighbour = exchange(t, WaveOp.XOR, totals, distance, span)
        is_upper = has_bit(lane_of(t, span), distance)
        totals = combine(choose(t, is_upper, neighbour, totals), choose(t, is_upper, totals, neighbour))
        distance *= 2
    return upto


def _inclusive(
    t: Trace, span: Span, value: Value, block_dim: Value = None, op: Value = None, dtype: Value = None
) -> Value:
    checked_block(t, block_dim, span)
    own = _numbers(t, value, dtype, span)
    return _upto(t, span, own, _combining(t, op, own, span))


def _exclusive(
    t: Trace, span: Span, value: Value, block_dim: Value = None, op: Value = None, identity: Value = None,
    dtype: Value = None,
) -> Value:  # fmt: skip
    checked_block(t, block_dim, span)
    own = _numbers(t, value, dtype, span)
    shape, types = shape_of(own), [e.type for e in elems_of(own)]
    if identity is None:
        t.fail_type("an exclusive scan needs its identity, which the first iteration gets", span, "such as identity=0")
    first: Numbers = shaped(shape, [t.build.let(e) for e in scalars_for(t, identity, shape, types, span)])
    upto = _upto(t, span, own, _combining(t, op, own, span))
    before = exchange(t, WaveOp.UP, upto, 1, span)
    if waves_of(t) > 1:
        number = wave_of(t, span)
        below = number - 1
        below = maximum(below, 0)
        last = exchange(t, WaveOp.BROADCAST, _of_waves(t, upto, whole_waves(t, span) - 1, span), below, span)
        is_first = number.eq(0)
        first = choose(t, is_first, first, last)
    return choose(t, lane_of(t, span).eq(0), first, before)


FUNCTION_RULES: Final[dict[str, Rule]] = {
    "block.reduce": _reduce,
    "block.reduce_all": _reduce,
    "block.inclusive_scan": _inclusive,
    "block.exclusive_scan": _exclusive,
}
