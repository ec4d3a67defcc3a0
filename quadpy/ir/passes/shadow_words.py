"""Positions of words in shadow memory, and numbers of iterations, as expressions of the IR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from quadpy.dtypes import Scalar, i64, u1, u64
from quadpy.ir import nodes as ir
from quadpy.ir.types import Array
from quadpy.ir.walk import map_children
from quadpy.light import dataclass
from quadpy.source import Span

WORDS: Final = 3
"""Words of shadow memory for each scalar of an element."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one array: ``extents`` are those of its axes, None for a slot; ``count`` says how many there are."""

    extents: tuple[ir.Expr, ...]
    components: int
    count: ir.Expr

    def at(self, index: Sequence[ir.Expr], component: int) -> ir.Expr:
        """Where the words of an element's scalar begin, from the first of the array."""
        span = self.count.span
        position: ir.Expr = _number(0, span)
        for part, extent in zip(index, self.extents, strict=True):
            position = _binary(ir.BinOp.ADD, _binary(ir.BinOp.MUL, position, extent), _wide(part))
        position = _binary(ir.BinOp.MUL, position, _number(WORDS * self.components, span))
        return _binary(ir.BinOp.ADD, position, _number(WORDS * component, span))


def words_of(name: str, array: Array | None, index: Scalar, span: Span) -> Words:
    """The words of the array ``name``, or of a slot, which has no type; ``index`` is the kernel's type of extents."""
    if array is None:
        return Words((), 1, _number(WORDS, span))
    if array.shape is not None:
        total = WORDS * array.components * math.prod(array.shape)
        return Words(tuple(_number(extent, span) for extent in array.shape), array.components, _number(total, span))
    extents = tuple(_wide(ir.ShapeOf(name, axis, index, span=span)) for axis in range(array.ndim))
    start: ir.Expr = _number(WORDS * array.components, span)
    return Words(extents, array.components, reduce(lambda a, b: _binary(ir.BinOp.MUL, a, b), extents, start))


def number_of_iteration(task: ir.ParallelTask) -> tuple[ir.Expr, list[ir.Stmt]]:
    """A unique number, from 1 on, of an iteration of ``task``, and the loads that it needs."""
    loads, axes = _bounds(task)
    total: ir.Expr = _number(0, task.span)
    for axis in axes:
        passed = _binary(ir.BinOp.SUB, _wide(ir.VarRead(axis.var, span=axis.span)), axis.start)
        passed = _binary(ir.BinOp.FLOORDIV, passed, axis.step) if not _is_one(axis.step) else passed
        total = _binary(ir.BinOp.ADD, _binary(ir.BinOp.MUL, total, _count(axis)), passed)
    return ir.BitCast(_binary(ir.BinOp.ADD, total, _number(1, task.span)), u64, span=task.span), loads


def other_iteration(task: ir.ParallelTask, number: ir.Expr) -> list[ir.Expr]:
    """The loop's variables in the iteration that ``number_of_iteration`` gives ``number``."""
    _, axes = _bounds(task)
    left = _binary(ir.BinOp.SUB, ir.BitCast(number, i64, span=task.span), _number(1, task.span))
    found: list[ir.Expr] = []
    for axis in reversed(axes):
        passed = _binary(ir.BinOp.MOD, left, _count(axis))
        found.append(_binary(ir.BinOp.ADD, axis.start, _binary(ir.BinOp.MUL, passed, axis.step)))
        left = _binary(ir.BinOp.FLOORDIV, left, _count(axis))
    return found[::-1]


def _bounds(task: ir.ParallelTask) -> tuple[list[ir.Stmt], list[ir.Axis]]:
    """The axes of ``task`` with 64-bit bounds, and loads of the slots that these need."""
    loads: dict[int, ir.Load] = {}

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.SlotRead):
            var = ir.Var(f"$slot{node.number}", node.type)
            place = ir.Slot(node.number, node.type, span=node.span)
            loads.setdefault(node.number, ir.Load(var, place, span=node.span))
            return ir.VarRead(var, span=node.span)
        return map_children(node, visit)

    axes = [map_children(axis, visit) for axis in task.axes]
    wide = [replace(a, start=_wide(a.start), stop=_wide(a.stop), step=_wide(a.step)) for a in axes]
    return list(loads.values()), wide


def _count(axis: ir.Axis) -> ir.Expr:
    """The number of iterations along an axis with 64-bit bounds, if there are any."""
    length = _binary(ir.BinOp.SUB, axis.stop, axis.start)
    if _is_one(axis.step):
        return length
    span, one = axis.span, _number(1, axis.span)
    down = ir.Compare(ir.CmpOp.LT, axis.step, _number(0, span), u1, span=span)
    last = _binary(ir.BinOp.ADD, length, ir.Select(down, one, _number(-1, span), i64, span=span))
    return _binary(ir.BinOp.ADD, _binary(ir.BinOp.FLOORDIV, last, axis.step), one)


def _is_one(step: ir.Expr) -> bool:
    return isinstance(step, ir.Const) and step.value == 1


def _number(value: int, span: Span) -> ir.Const:
    return ir.Const(value, i64, span=span)


def _wide(value: ir.Expr) -> ir.Expr:
    if isinstance(value, ir.Const):
        return _number(int(value.value), value.span)
    return value if value.type == i64 else ir.Cast(value, i64, span=value.span)


def _binary(op: ir.BinOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    if op is ir.BinOp.ADD and isinstance(a, ir.Const) and not a.value:
        return b
    if op is ir.BinOp.MUL and isinstance(a, ir.Const) and a.value == 0:
        return a
    if op is ir.BinOp.ADD and isinstance(b, ir.Const) and not b.value:
        return a
    return ir.Binary(op, a, b, i64, span=a.span)
