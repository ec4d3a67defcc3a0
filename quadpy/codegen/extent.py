"""How many iterations a loop has, as a formula that the host evaluates at each launch.  Owns: ``extent_of``, ``tiled_extent``.

A formula is data (it travels in the manifest): a number, ``["value", k]`` for the k-th value of the argument block, or
an operation, ``[name, bits, signed, operand, …]``, whose result wraps as the kernel's own arithmetic does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quadpy.artifact import AbiLayout, Formula, Part
from quadpy.ir import nodes as ir

__all__ = ["COLUMN", "LINE", "LONG_ROW", "ROW_UNIT", "extent_of", "tiled_extent"]

LINE: Final = 4
"""Iterations of a thread in a loop of one axis that ``lower.gpu_tiles`` writes,"""
COLUMN: Final = 6
"""and in one of several: of neighbours on the last axis but one."""
ROW_UNIT: Final = 64
"""There, rows of LONG_ROW iterations on begin at numbers of threads that are multiples of this: the widest wave's."""
LONG_ROW: Final = 16 * ROW_UNIT
"""Of such a row an eighth, 2 x ROW_UNIT, is the most that threads with nothing to do add."""

_OPERATIONS: Final = {
    ir.BinOp.ADD: "add", ir.BinOp.SUB: "sub", ir.BinOp.MUL: "mul", ir.BinOp.FLOORDIV: "floordiv", ir.BinOp.MOD: "mod",
    ir.BinOp.MIN: "min", ir.BinOp.MAX: "max", ir.BinOp.AND: "and",
}  # fmt: skip


def extent_of(task: ir.ParallelTask, layout: AbiLayout) -> Formula | None:
    """The number of iterations; None where it depends on memory, or on arithmetic that formulas lack."""
    places = {(value.param, value.part, value.axis): k for k, value in enumerate(layout.values)}
    try:
        axes = [["count", *(_formula(e, places) for e in (a.start, a.stop, a.step))] for a in task.axes]
    except _NotHere:
        return None
    return ["product", *axes]


def tiled_extent(task: ir.ParallelTask, layout: AbiLayout) -> Formula | None:
    """The number of threads that do several iterations each, with some that have none to do."""
    whole = extent_of(task, layout)
    if not isinstance(whole, list):
        return None
    counts = whole[1:]
    cut = max(0, len(counts) - 2)
    size = LINE if len(counts) == 1 else COLUMN
    counts[cut] = ["floordiv", 64, True, ["add", 64, True, counts[cut], size - 1], size]
    if len(counts) > 1:
        idle = ["min", 64, True, 2 * ROW_UNIT, ["floordiv", 64, True, counts[-1], LONG_ROW // (2 * ROW_UNIT)]]
        counts[-1] = ["add", 64, True, counts[-1], idle]
    return ["product", *counts]


class _NotHere(Exception):
    """The host cannot evaluate this."""


def _formula(e: ir.Expr, places: Mapping[tuple[str, Part, int], int]) -> Formula:
    match e:
        case ir.Const(value=value):
            return int(value)
        case ir.ParamRead(name=name, type=t) if not t.is_float:
            return ["value", places[name, "scalar", 0]]
        case ir.ShapeOf(array=array, axis=axis):
            return ["value", places[array, "extent", axis]]
        case ir.Cast(operand=operand, type=t) if not t.is_float and not operand.type.is_float and t.bits > 1:
            return ["wrap", t.bits, t.is_signed, _formula(operand, places)]
        case ir.Unary(op=ir.UnOp.NEG, operand=operand, type=t) if not t.is_float:
            return ["sub", t.bits, t.is_signed, 0, _formula(operand, places)]
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t) if op in _OPERATIONS and not t.is_float:
            return [_OPERATIONS[op], t.bits, t.is_signed, _formula(lhs, places), _formula(rhs, places)]
        case _:
            raise _NotHere
