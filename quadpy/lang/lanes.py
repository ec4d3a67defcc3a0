"""The numbers of lanes and waves in a trace, and sets of lanes: what each lane knows without the others."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import i32, u1, u64
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.comparisons import compare
from quadpy.lang.context import Trace
from quadpy.lang.scalars import cast, to_scalar
from quadpy.lang.values import Value, is_number

Rule: TypeAlias = Callable[..., Any]


def wave_size(t: Trace) -> int:
    """The lanes of a wave: the target's, but those of a block of 16 or 32 that is smaller, whose other lanes are idle."""
    small = t.loop is not None and t.loop.block_dim in (16, 32)
    return min(t.loop_around.block_dim, t.options.wave_size) if small else t.options.wave_size


def whole_waves(t: Trace, span: Span) -> int:
    """The lanes of a wave; a block must consist of whole waves."""
    size, loop = wave_size(t), t.loop_around
    if loop.block_dim % size:
        t.fail_type(
            f"a block of {loop.block_dim} iterations does not consist of whole waves: these have {size} lanes", span,
            f"write qp.loop_config(block_dim={-(-loop.block_dim // size) * size}) above the loop",
        )  # fmt: skip
    return size


def lane_of(t: Trace, span: Span) -> ir.Expr:
    """The number of the lane."""
    return ir.ThreadIndex(span=span) & wave_size(t) - 1


def wave_of(t: Trace, span: Span) -> ir.Expr:
    """The number of the wave in its block."""
    return ir.ThreadIndex(span=span) >> _log2(t)


def _log2(t: Trace) -> int:
    return wave_size(t).bit_length() - 1


def _mask(*, below: bool, own: bool) -> Rule:
    """The lanes below or above one, and that lane itself."""

    def run(t: Trace, span: Span, lane: Value = None) -> Value:
        number = lane_of(t, span) if lane is None else lane_number(t, lane, span)
        bit = bits(1, span) << cast(t, number, u64, span)
        before = bit - 1
        upto = before | bit
        if below:
            return upto if own else before
        everyone = bits((1 << wave_size(t)) - 1, span)
        return (before if own else upto) ^ everyone

    return run


def _own_bit(t: Trace, span: Span, lane: Value = None) -> Value:
    number = lane_of(t, span) if lane is None else lane_number(t, lane, span)
    return bits(1, span) << cast(t, number, u64, span)


def bits(value: int, span: Span) -> ir.Expr:
    return ir.Const(value, u64, span=span)


def lane_number(t: Trace, value: Value, span: Span) -> ir.Expr:
    """A lane, a distance or a mask, as i32: a constant must be one of the wave's."""
    size = wave_size(t)
    if is_number(value) and not (isinstance(value, int) and 0 <= value < size):
        t.fail_type(f"lanes, distances and masks must be integers from 0 to {size - 1} here, not {value!r}", span,
                    f"waves have {size} lanes: see subgroup.group_size()")  # fmt: skip
    if is_number(value):
        return ir.Const(int(value), i32, span=span)
    expr = to_scalar(t, value, span)
    if not expr.type.is_integral or expr.type == u1:
        t.fail_type(f"lanes, distances and masks must be integers, not {expr.type}", span)
    return cast(t, expr, i32, span)


LANE_RULES: Final[dict[str, Rule]] = {
    "subgroup.group_size": lambda t, span: wave_size(t),
    "subgroup.log2_group_size": lambda t, span: _log2(t),
    "subgroup.invocation_id": lane_of,
    "subgroup.subgroup_id": wave_of,
    "subgroup.num_subgroups": lambda t, span: t.loop_around.block_dim // whole_waves(t, span),
    "subgroup.elect": lambda t, span: compare(t, ast.Eq, lane_of(t, span), 0, span),
    "subgroup.lanemask_eq": _own_bit,
    "subgroup.lanemask_lt": _mask(below=True, own=False),
    "subgroup.lanemask_le": _mask(below=True, own=True),
    "subgroup.lanemask_gt": _mask(below=False, own=False),
    "subgroup.lanemask_ge": _mask(below=False, own=True),
}
