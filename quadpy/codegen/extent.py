"""How many iterations a loop has, as a formula that the host evaluates at each launch.

A formula is data (it travels in the manifest): a number, ``["value", k]`` for the k-th value of the argument block, or
an operation, ``[name, bits, signed, operand, …]``, whose result wraps as the kernel's own arithmetic does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.artifact import AbiLayout, Formula, Part
from quadpy.ir import nodes as ir

__all__ = ["LONG_ROW", "ROW_UNIT", "coarsened_extent", "extent_of"]

ROW_UNIT: Final = 64
"""In coarsened loops of several axes, rows of LONG_ROW iterations or more begin at multiples of this: the widest wave's."""
LONG_ROW: Final = 16 * ROW_UNIT
"""An eighth of such a row, 2 x ROW_UNIT, is the most that idle threads add."""

_OPERATIONS: Final = {
    ir.BinOp.ADD: "add", ir.BinOp.SUB: "sub", ir.BinOp.MUL: "mul", ir.BinOp.FLOORDIV: "floordiv", ir.BinOp.MOD: "mod",
    ir.BinOp.MIN: "min", ir.BinOp.MAX: "max", ir.BinOp.AND: "and",
}  # fmt: skip


def extent_of(task: ir.ParallelTask, layout: AbiLayout) -> Formula | None:
    """The number of iterations; None where it depends on memory, or on arithmetic that formulas do not have."""
    values = {(value.param, value.part, value.axis): k for k, value in enumerate(layout.values)}
    try:
        axes = [["count", *(_formula(e, values) for e in (a.start, a.stop, a.step))] for a in task.axes]
    except _NotHere:
        return None
    return ["product", *axes]


def coarsened_extent(task: ir.ParallelTask, layout: AbiLayout, axis: int, size: int) -> Formula | None:
    """The number of threads that run ``size`` iterations each along ``axis``, idle ones included."""
    whole = extent_of(task, layout)
    if not isinstance(whole, list):
        return None
    counts = whole[1:]
    counts[axis] = ["floordiv", 64, True, ["add", 64, True, counts[axis], size - 1], size]
    if len(counts) > 1:
        idle = ["min", 64, True, 2 * ROW_UNIT, ["floordiv", 64, True, counts[-1], LONG_ROW // (2 * ROW_UNIT)]]
        counts[-1] = ["add", 64, True, counts[-1], idle]
    return ["product", *counts]


class _NotHere(Exception):
    """The host cannot evaluate this."""


def _formula(e: ir.Expr, values: Mapping[tuple[str, Part, int], int]) -> Formula:
    match e:
        case ir.Const(value=value):
            return int(value)
        case ir.ParamRead(name=name, type=t) if not t.is_float:
            return ["value", values[name, "scalar", 0]]
        case ir.ShapeOf(array=array, axis=axis):
            return ["value", values[array, "extent", axis]]
        case ir.Cast(operand=operand, type=t) if not t.is_float and not operand.type.is_float and t.bits > 1:
            return ["wrap", t.bits, t.is_signed, _formula(operand, values)]
        case ir.Unary(op=ir.UnOp.NEG, operand=operand, type=t) if not t.is_float:
            return ["sub", t.bits, t.is_signed, 0, _formula(operand, values)]
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t) if op in _OPERATIONS and not t.is_float:
            return [_OPERATIONS[op], t.bits, t.is_signed, _formula(lhs, values), _formula(rhs, values)]
        case _:
            raise _NotHere
