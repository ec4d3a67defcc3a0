"""How many iterations a loop has, as a formula that the host evaluates at each launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.core.artifact import AbiLayout, Part
from quadpy.core.formula import BlockValue, Formula, Operation
from quadpy.ir import nodes as ir

ROW_UNIT: Final = 64
"""In coarsened loops of several axes, rows of LONG_ROW or more iterations begin at multiples of this (a wave)."""
LONG_ROW: Final = 16 * ROW_UNIT
"""An eighth of such a row, 2 x ROW_UNIT, is the most that idle threads add."""

_OPERATIONS: Final = {
    ir.BinOp.ADD: "add", ir.BinOp.SUB: "sub", ir.BinOp.MUL: "mul", ir.BinOp.FLOORDIV: "floordiv", ir.BinOp.MOD: "mod",
    ir.BinOp.MIN: "min", ir.BinOp.MAX: "max", ir.BinOp.AND: "and",
}  # fmt: skip


def extent_of(task: ir.ParallelTask, layout: AbiLayout) -> Formula | None:
    """The number of iterations; None if it depends on memory, or on arithmetic that formulas lack."""
    values = {(value.param, value.part, value.axis): k for k, value in enumerate(layout.values)}
    try:
        bounds = [tuple(_formula(e, values) for e in (axis.start, axis.stop, axis.step)) for axis in task.axes]
    except NotOnHost:
        return None
    return Operation("product", tuple(Operation("count", each) for each in bounds))


def integer_of(e: ir.Expr, layout: AbiLayout) -> Formula:
    """``e``, which must be computed from arguments and extents by operations that formulas support."""
    return _formula(e, {(value.param, value.part, value.axis): k for k, value in enumerate(layout.values)})


def coarsened_extent(task: ir.ParallelTask, layout: AbiLayout, axis: int, size: int) -> Formula | None:
    """The number of threads that run ``size`` iterations each along ``axis``, idle ones included."""
    whole = extent_of(task, layout)
    if not isinstance(whole, Operation):
        return None
    counts = list(whole.operands)
    counts[axis] = _long("floordiv", _long("add", counts[axis], size - 1), size)
    if len(counts) > 1:
        idle = _long("min", 2 * ROW_UNIT, _long("floordiv", counts[-1], LONG_ROW // (2 * ROW_UNIT)))
        counts[-1] = _long("add", counts[-1], idle)
    return Operation("product", tuple(counts))


def _long(name: str, *operands: Formula) -> Operation:
    return Operation(name, operands, 64)


class NotOnHost(Exception):
    """The host cannot evaluate this."""


def _formula(e: ir.Expr, values: Mapping[tuple[str, Part, int], int]) -> Formula:
    match e:
        case ir.Const(value=value):
            return int(value)
        case ir.ParamRead(name=name, type=t) if not t.is_float:
            return BlockValue(values[name, "scalar", 0])
        case ir.ShapeOf(array=array, axis=axis):
            return BlockValue(values[array, "extent", axis])
        case ir.Cast(operand=operand, type=t) if not t.is_float and not operand.type.is_float and t.bits > 1:
            return Operation("wrap", (_formula(operand, values),), t.bits, t.is_signed)
        case ir.Unary(op=ir.UnOp.NEG, operand=operand, type=t) if not t.is_float:
            return Operation("sub", (0, _formula(operand, values)), t.bits, t.is_signed)
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t) if op in _OPERATIONS and not t.is_float:
            return Operation(_OPERATIONS[op], (_formula(lhs, values), _formula(rhs, values)), t.bits, t.is_signed)
        case _:
            raise NotOnHost
