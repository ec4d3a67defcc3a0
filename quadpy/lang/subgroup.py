"""How a trace handles ``qp.simt.subgroup``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import BY_NAME, Scalar, i32, u1, u32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp, WaveOp
from quadpy.ir.waves import wave_result
from quadpy.lang.checks import meet
from quadpy.lang.comparisons import compare
from quadpy.lang.context import Trace
from quadpy.lang.lanes import LANE_RULES, bits, lane_number, wave_size, whole_waves
from quadpy.lang.operators import binary, bit_cast, select
from quadpy.lang.scalars import cast, convert, to_condition, to_scalar
from quadpy.lang.values import Value, Vec, shape_text
from quadpy.lang.vectors import make_vector, map_vec

Rule: TypeAlias = Callable[..., Any]

_BITWISE: Final = (AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR)
_OF_TRUTHS: Final = {AtomicOp.MIN: AtomicOp.AND, AtomicOp.MAX: AtomicOp.OR}
OPERATIONS: Final = {
    op.value: op for op in (AtomicOp.ADD, AtomicOp.MUL, AtomicOp.MIN, AtomicOp.MAX, *_BITWISE)
}  # fmt: skip


def wave(t: Trace, op: WaveOp, args: tuple[ir.Expr, ...], span: Span, combine: AtomicOp | None = None) -> ir.Expr:
    """The result of ``op``, which all lanes of a wave execute together."""
    meet(t)
    size = whole_waves(t, span)
    type = wave_result(op, [arg.type for arg in args])
    assert isinstance(type, Scalar), f"{op} of {args}"
    var = t.build.var(op.value, type)
    t.build.emit(ir.Wave(op, size, args, var, combine, span=span))
    return ir.VarRead(var, span=span)


# ------------------------------------------------------------------- operations


def by_component(rule: Rule) -> Rule:
    """Extends ``rule``, whose first operand is a scalar, to vectors, component by component."""

    def run(t: Trace, span: Span, value: Value, *args: Value) -> Value:
        if isinstance(value, (Vec, list, tuple)):
            return map_vec(t, lambda each: rule(t, span, each, *args), make_vector(t, value, span))
        return rule(t, span, t.build.let(to_scalar(t, value, span)), *args)

    return run


def _move(op: WaveOp) -> Rule:
    def run(t: Trace, span: Span, value: ir.Expr, number: Value) -> Value:
        return wave(t, op, (value, lane_number(t, number, span)), span)

    return by_component(run)


def _shuffle(t: Trace, span: Span, value: Value, lane: Value) -> Value:
    return _move(WaveOp.SHUFFLE)(t, span, value, lane)


def _shuffle_up(t: Trace, span: Span, value: Value, distance: Value) -> Value:
    return _move(WaveOp.UP)(t, span, value, distance)


def _shuffle_down(t: Trace, span: Span, value: Value, distance: Value) -> Value:
    return _move(WaveOp.DOWN)(t, span, value, distance)


def _shuffle_xor(t: Trace, span: Span, value: Value, mask: Value) -> Value:
    return _move(WaveOp.XOR)(t, span, value, mask)


def _broadcast(t: Trace, span: Span, value: Value, lane: Value) -> Value:
    return _move(WaveOp.BROADCAST)(t, span, value, lane)


def _truth(t: Trace, cond: Value, span: Span) -> ir.Expr:
    return t.build.let(to_condition(t, cond, span))


def _vote(op: WaveOp) -> Rule:
    return lambda t, span, cond: wave(t, op, (_truth(t, cond, span),), span)


def _ballot_first_n(t: Trace, span: Span, cond: Value, n: Value) -> Value:
    if not (isinstance(n, int) and 0 < n <= 32):
        t.fail_type(
            f"n must be a number of lanes from 1 to 32 that is known at compile time, not {shape_text(n)}", span
        )
    low = binary(t, ast.BitAnd, _vote(WaveOp.BALLOT)(t, span, cond), bits((1 << n) - 1, span), span)
    return cast(t, low, u32, span)


def same_bits(t: Trace, value: ir.Expr, other: ir.Expr, span: Span) -> ir.Expr:
    """Whether two numbers of one type have the same bits."""
    word = BY_NAME[f"u{value.type.bits}"]
    own, theirs = (bit_cast(t, each, word, span) if each.type.is_float else each for each in (value, other))
    return to_scalar(t, compare(t, ast.Eq, own, theirs, span), span)


def _equal(t: Trace, value: ir.Expr, span: Span) -> ir.Expr:
    """Whether this lane's value has the same bits as lane 0's."""
    return same_bits(t, value, wave(t, WaveOp.BROADCAST, (value, ir.Const(0, i32, span=span)), span), span)


def _all_equal(t: Trace, span: Span, value: Value) -> Value:
    elems = make_vector(t, value, span).elems if isinstance(value, (Vec, list, tuple)) else (value,)
    found = [_equal(t, t.build.let(to_scalar(t, each, span)), span) for each in elems]
    same = found[0]
    for other in found[1:]:
        same = same & other
    return wave(t, WaveOp.ALL, (t.build.let(same),), span)


def _match_any(t: Trace, span: Span, value: Value) -> Value:
    return wave(t, WaveOp.MATCH, (t.build.let(_scalar(t, value, span)),), span)


def _match_all(t: Trace, span: Span, value: Value) -> Value:
    everyone = bits((1 << wave_size(t)) - 1, span)
    return select(t, _all_equal(t, span, value), everyone, bits(0, span), span)


def _scalar(t: Trace, value: Value, span: Span) -> ir.Expr:
    if isinstance(value, (Vec, list, tuple)):
        t.fail_type(f"a scalar is needed here, not {shape_text(value)}", span)
    return to_scalar(t, value, span)


def _combine(op: WaveOp, how: AtomicOp) -> Rule:
    def run(t: Trace, span: Span, value: Value) -> Value:
        def one(t: Trace, span: Span, each: ir.Expr) -> Value:
            own, number = combinable(t, how, each, span)
            return wave(t, op, (number,), span, own)

        return by_component(one)(t, span, value)

    return run


def combinable(t: Trace, how: AtomicOp, value: ir.Expr, span: Span) -> tuple[AtomicOp, ir.Expr]:
    """``how`` and ``value`` as the operators of numbers have them: sums of truths are integers, their minimum is *and*."""
    if how in _BITWISE and value.type.is_float:
        t.fail_type(f"{how.value} combines integers and truths, not {value.type}", span)
    if how in _BITWISE or value.type != u1:
        return how, value
    if how in _OF_TRUTHS:
        return _OF_TRUTHS[how], value
    return how, t.build.let(convert(t, value, t.defaults.ip, span))


def _sync(t: Trace, span: Span) -> None:
    t.build.emit(ir.Wave(WaveOp.SYNC, whole_waves(t, span), (), span=span))


SUBGROUP_RULES: Final[dict[str, Rule]] = {
    **LANE_RULES,
    "subgroup.shuffle": _shuffle,
    "subgroup.shuffle_up": _shuffle_up,
    "subgroup.shuffle_down": _shuffle_down,
    "subgroup.shuffle_xor": _shuffle_xor,
    "subgroup.broadcast": _broadcast,
    "subgroup.broadcast_first": lambda t, span, value: _broadcast(t, span, value, 0),
    "subgroup.sync": _sync,
    "subgroup.barrier": _sync,
    "subgroup.memory_barrier": lambda t, span: t.build.emit(ir.Fence(ir.Reach.WAVE, span=span)),
    "subgroup.mem_fence": lambda t, span: t.build.emit(ir.Fence(ir.Reach.WAVE, span=span)),
    "subgroup.ballot": _vote(WaveOp.BALLOT),
    "subgroup.ballot_full_subgroup": _vote(WaveOp.BALLOT),
    "subgroup.ballot_first_n": _ballot_first_n,
    "subgroup.all_true": _vote(WaveOp.ALL),
    "subgroup.any_true": _vote(WaveOp.ANY),
    "subgroup.all_equal": _all_equal,
    "subgroup.match_any": _match_any,
    "subgroup.match_all": _match_all,
    **{
        f"subgroup.{prefix}_{name}": _combine(WaveOp.REDUCE, op)
        for name, op in OPERATIONS.items()
        for prefix in ("reduce", "reduce_all")
    },
    **{f"subgroup.inclusive_{name}": _combine(WaveOp.INCLUSIVE, op) for name, op in OPERATIONS.items()},
    **{f"subgroup.exclusive_{name}": _combine(WaveOp.EXCLUSIVE, op) for name, op in OPERATIONS.items()},
}
