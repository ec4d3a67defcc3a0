"""Reductions and scans made of exchanges between lanes: in tiles of a wave, in segments, and by functions of the user's.

Their shape is that of the operations on whole waves (``ir.waves``): neighbours first, so that the bits do not depend on how
many lanes a wave has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import i32, u64
from quadpy.core.records import Shape
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import binary, select
from quadpy.ir.nodes import AtomicOp, WaveOp
from quadpy.ir.waves import first_of_scan
from quadpy.lang.context import Trace
from quadpy.lang.lanes import lane_of, whole_waves
from quadpy.lang.scalars import to_condition
from quadpy.lang.subgroup import OPERATIONS, by_component, combinable, wave
from quadpy.lang.values import Record, Value, Vec, elems_of, shape_text, shaped

Rule: TypeAlias = Callable[..., Any]
Numbers: TypeAlias = ir.Expr | Vec | Record
Combine: TypeAlias = Callable[[Numbers, Numbers], Numbers]
"""The values of lower lanes and those of higher ones become one; both have one type, and so has the result."""

_ROW: Final = 16
"""Lanes in which scans double distances."""


def has_bit(number: ir.Expr, bit: int) -> ir.Expr:
    """Whether a lane's or a wave's number has this bit."""
    return (number & bit).ne(0)


def exchange(t: Trace, op: WaveOp, value: Numbers, number: ir.Expr | int, span: Span) -> Numbers:
    """The value of another lane, one scalar after the other."""
    other = ir.Const(number, i32, span=span) if isinstance(number, int) else number
    return shaped(shape_of(value), [wave(t, op, (e, other), span) for e in elems_of(value)])


def choose(t: Trace, cond: ir.Expr, a: Numbers, b: Numbers) -> Numbers:
    """``a`` where ``cond`` holds, else ``b``."""
    cond = t.build.let(cond)
    pairs = zip(elems_of(a), elems_of(b), strict=True)
    return shaped(shape_of(a), [t.build.let(select(cond, x, y)) for x, y in pairs])


def shape_of(value: Numbers) -> Shape:
    return value.shape if isinstance(value, (Vec, Record)) else ()


def tree(t: Trace, value: Numbers, count: int, combine: Combine, span: Span) -> Numbers:
    """In every lane, the combined values of the ``count`` lanes of its tile, or of the first ``count`` lanes of the wave."""
    lane, distance = lane_of(t, span), 1
    while distance < count:
        other, is_upper = exchange(t, WaveOp.XOR, value, distance, span), has_bit(lane, distance)
        both = combine(choose(t, is_upper, other, value), choose(t, is_upper, value, other))
        if count % (2 * distance):  # the last one may have no neighbour
            start = lane & -2 * distance
            both = choose(t, start + distance < count, both, value)
        value, distance = both, 2 * distance
    return value


def scan(t: Trace, value: Numbers, count: int, combine: Combine, span: Span) -> Numbers:
    """The combined values of the lanes of a tile of ``count`` up to this one."""
    lane, distance = lane_of(t, span), 1
    while distance < count:
        if distance < _ROW:
            below = exchange(t, WaveOp.UP, value, distance, span)
            within = lane & min(count, _ROW) - 1
            is_above: ir.Expr = within >= distance
        else:
            last = (lane | distance - 1) & ~distance
            below, is_above = exchange(t, WaveOp.SHUFFLE, value, last, span), has_bit(lane, distance)
        value = choose(t, is_above, combine(below, value), value)
        distance *= 2
    return value


def _by_operation(t: Trace, how: AtomicOp) -> Combine:
    def combine(a: Numbers, b: Numbers) -> Numbers:
        assert not isinstance(a, (Vec, Record))
        assert not isinstance(b, (Vec, Record))
        return t.build.let(binary(ir.COMBINES[how], a, b))

    return combine


def lanes_of_tile(t: Trace, log2_size: Value, span: Span) -> int:
    """The lanes of a tile."""
    most = whole_waves(t, span).bit_length() - 1
    if not isinstance(log2_size, int) or not 0 <= log2_size <= most:
        given = log2_size if isinstance(log2_size, int) else shape_text(log2_size)
        t.fail_type(f"log2_size must be an integer from 0 to {most} that is known at compile time, not {given}", span,
                    f"tiles of 2**log2_size lanes lie in waves of {2**most}")  # fmt: skip
    return 1 << int(log2_size)


def _tiled(make: Callable[[Trace, Span, ir.Expr, AtomicOp, int], Value], how: AtomicOp) -> Rule:
    """``make`` for each component of a value, in tiles."""

    def run(t: Trace, span: Span, value: Value, log2_size: Value) -> Value:
        size = lanes_of_tile(t, log2_size, span)

        def one(t: Trace, span: Span, each: ir.Expr) -> Value:
            own, number = combinable(t, how, each, span)
            return make(t, span, number, own, size)

        return by_component(one)(t, span, value)

    return run


def _reduced(t: Trace, span: Span, value: ir.Expr, how: AtomicOp, size: int) -> Value:
    return tree(t, value, size, _by_operation(t, how), span)


def _scanned(t: Trace, span: Span, value: ir.Expr, how: AtomicOp, size: int) -> Value:
    return scan(t, value, size, _by_operation(t, how), span)


def _scanned_before(t: Trace, span: Span, value: ir.Expr, how: AtomicOp, size: int) -> Value:
    before = exchange(t, WaveOp.UP, scan(t, value, size, _by_operation(t, how), span), 1, span)
    is_first = (lane_of(t, span) & size - 1).eq(0)
    return choose(t, is_first, ir.Const(first_of_scan(how, value.type), value.type, span=span), before)


def _steps_to_head(t: Trace, head: Value, size: int, span: Span) -> ir.Expr:
    """How many lanes the segment's first lane is below this one; a tile begins a segment."""
    lane = lane_of(t, span)
    heads = wave(t, WaveOp.BALLOT, (t.build.let(to_condition(t, head, span)),), span)
    start = lane & -size
    bit = ir.Const(1, u64, span=span) << ir.Cast(start, u64, span=span)
    heads = heads | bit
    shift = ir.Const(63, i32, span=span) - lane
    upto = heads << ir.Cast(shift, u64, span=span)
    return t.build.let(ir.Intrinsic("clz", (upto,), i32, span=span))


def _segmented(t: Trace, span: Span, value: Value, head: Value, how: AtomicOp, size: int) -> Value:
    """Each lane has the combined values of its segment's lanes up to it."""
    steps = _steps_to_head(t, head, size, span)

    def one(t: Trace, span: Span, each: ir.Expr) -> Value:
        own, number = combinable(t, how, each, span)
        combine = _by_operation(t, own)
        total: Numbers = number
        distance = 1
        while distance < size:
            below = exchange(t, WaveOp.UP, total, distance, span)
            total = choose(t, steps >= distance, combine(below, total), total)
            distance *= 2
        return total

    return by_component(one)(t, span, value)


def _segments_of_waves(how: AtomicOp) -> Rule:
    return lambda t, span, value, head: _segmented(t, span, value, head, how, whole_waves(t, span))


def _segments_of_tiles(how: AtomicOp) -> Rule:
    def run(t: Trace, span: Span, value: Value, head: Value, log2_size: Value) -> Value:
        return _segmented(t, span, value, head, how, lanes_of_tile(t, log2_size, span))

    return run


TILE_RULES: Final[dict[str, Rule]] = {
    **{f"subgroup.{prefix}_{name}_tiled": _tiled(_reduced, op)
       for name, op in OPERATIONS.items() for prefix in ("reduce", "reduce_all")},
    **{f"subgroup.inclusive_{name}_tiled": _tiled(_scanned, op) for name, op in OPERATIONS.items()},
    **{f"subgroup.exclusive_{name}_tiled": _tiled(_scanned_before, op) for name, op in OPERATIONS.items()},
    **{f"subgroup.segmented_reduce_{name}": _segments_of_waves(op) for name, op in OPERATIONS.items()},
    **{f"subgroup.segmented_reduce_{name}_tiled": _segments_of_tiles(op) for name, op in OPERATIONS.items()},
}  # fmt: skip
