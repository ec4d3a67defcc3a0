"""Positions of words in shadow memory, and numbers of iterations, as expressions of the IR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from quadpy.core.dtypes import Scalar, i64, u64
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, binary, bits, converted, select
from quadpy.ir.types import Array
from quadpy.ir.walk import map_children

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
        at = At(self.count.span)
        position: ir.Expr = at.const(0, i64)
        for part, extent in zip(index, self.extents, strict=True):
            position = _binary(ir.BinOp.ADD, _binary(ir.BinOp.MUL, position, extent), _wide(part))
        position = _binary(ir.BinOp.MUL, position, at.const(WORDS * self.components, i64))
        return _binary(ir.BinOp.ADD, position, at.const(WORDS * component, i64))


def words_of(name: str, array: Array | None, index: Scalar, span: Span) -> Words:
    """The words of the array ``name``, or of a slot, which has no type; ``index`` is the kernel's type of extents."""
    at = At(span)
    if array is None:
        return Words((), 1, at.const(WORDS, i64))
    if array.shape is not None:
        total = WORDS * array.components * math.prod(array.shape)
        return Words(tuple(at.const(n, i64) for n in array.shape), array.components, at.const(total, i64))
    extents = tuple(_wide(at.extent(name, axis, index)) for axis in range(array.ndim))
    start: ir.Expr = at.const(WORDS * array.components, i64)
    return Words(extents, array.components, reduce(lambda a, b: _binary(ir.BinOp.MUL, a, b), extents, start))


def number_of_iteration(task: ir.ParallelTask) -> tuple[ir.Expr, list[ir.Stmt]]:
    """A unique number, from 1 on, of an iteration of ``task``, and the loads that it needs."""
    loads, axes = _bounds(task)
    total: ir.Expr = At(task.span).const(0, i64)
    for axis in axes:
        passed: ir.Expr = _wide(At(axis.span).read(axis.var)) - axis.start
        passed = passed if _is_one(axis.step) else passed // axis.step
        total = _binary(ir.BinOp.ADD, _binary(ir.BinOp.MUL, total, _count(axis)), passed)
    return bits(_binary(ir.BinOp.ADD, total, At(task.span).const(1, i64)), u64), loads


def other_iteration(task: ir.ParallelTask, number: ir.Expr) -> list[ir.Expr]:
    """The loop's variables in the iteration that ``number_of_iteration`` gives ``number``."""
    _, axes = _bounds(task)
    left: ir.Expr = bits(number, i64) - 1
    found: list[ir.Expr] = []
    for axis in reversed(axes):
        passed = left % _count(axis)
        found.append(_binary(ir.BinOp.ADD, axis.start, _binary(ir.BinOp.MUL, passed, axis.step)))
        left //= _count(axis)
    return found[::-1]


def _bounds(task: ir.ParallelTask) -> tuple[list[ir.Stmt], list[ir.Axis]]:
    """The axes of ``task`` with 64-bit bounds, and loads of the slots that these need."""
    loads: dict[int, ir.Load] = {}

    def visit(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.SlotRead):
            var = ir.Var(f"$slot{node.number}", node.type)
            loads.setdefault(node.number, At(node.span).load(var, node.place))
            return At(node.span).read(var)
        return map_children(node, visit)

    axes = [map_children(axis, visit) for axis in task.axes]
    wide = [replace(a, start=_wide(a.start), stop=_wide(a.stop), step=_wide(a.step)) for a in axes]
    return list(loads.values()), wide


def _count(axis: ir.Axis) -> ir.Expr:
    """The number of iterations along an axis with 64-bit bounds, if there are any."""
    length = axis.stop - axis.start
    if _is_one(axis.step):
        return length
    last = length + select(axis.step < 0, At(axis.span).const(1, i64), -1)
    return last // axis.step + 1


def _is_one(step: ir.Expr) -> bool:
    return isinstance(step, ir.Const) and step.value == 1


def _wide(value: ir.Expr) -> ir.Expr:
    return At(value.span).const(value.value, i64) if isinstance(value, ir.Const) else converted(value, i64)


def _binary(op: ir.BinOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    if op is ir.BinOp.ADD and isinstance(a, ir.Const) and not a.value:
        return b
    if op is ir.BinOp.MUL and isinstance(a, ir.Const) and a.value == 0:
        return a
    if op is ir.BinOp.ADD and isinstance(b, ir.Const) and not b.value:
        return a
    return binary(op, a, b)
