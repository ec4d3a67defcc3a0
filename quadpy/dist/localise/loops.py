"""Loops over a grid: along which of its axes they run, where, and what their iterations accumulate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from quadpy.core.source import Span
from quadpy.dist.localise.indices import Indices
from quadpy.dist.localise.model import CELLS, Reduced, identity
from quadpy.dist.terms import lets, resolved
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, converted, maximum, minimum
from quadpy.ir.touches import changed_in
from quadpy.ir.walk import walk


def axes_of(task: ir.ParallelTask, is_distributed: Callable[[str], bool], ndim: int) -> tuple[int | None, ...]:
    """The axis of the grid that each axis of the loop runs along; None for one that runs whole on every rank.

    Raises:
        KernelSyntaxError: the axis is not known.
    """
    found: dict[ir.Var, int] = {}
    places = [place for place in changed_in(task.body) if isinstance(place, ir.Element) and is_distributed(place.array)]
    if not places:  # it only reads
        places = [node for node in walk(task) if isinstance(node, ir.Element) and is_distributed(node.array)]
    values = lets(task)
    for place in places:
        for axis, index in enumerate(place.index):
            plain = resolved(index, values)
            if isinstance(plain, ir.VarRead):
                found.setdefault(plain.var, axis)
    axes = tuple(found.get(axis.var) for axis in task.axes)
    if any(axis is not None for axis in axes) and len(set(axes) - {None}) == sum(axis is not None for axis in axes):
        return axes
    if len(task.axes) == ndim:
        return tuple(range(ndim))
    raise KernelSyntaxError(
        "it is not known which rank runs an iteration of this loop", task.span,
        hint="loop over the array, or use the loop's variables as indices of what it writes",
    )  # fmt: skip


def limited(axis: ir.Axis, along: int, indices: Indices) -> ir.Axis:
    """``axis`` from ``low`` up to ``high``; an axis that is not divided among ranks stays as it is."""
    span, type = axis.span, axis.var.type
    low, high = (indices.number(name, along, type, span) for name in ("low", "high"))
    if not (isinstance(axis.step, ir.Const) and axis.step.value >= 1):
        raise KernelSyntaxError("the step of a loop over a distributed grid must be a positive constant", span)
    if not indices.geometry.split[along]:
        return axis
    start = maximum(axis.start, low)
    if axis.step.value > 1:  # the first of its numbers that is not below ``low``
        steps = (start - axis.start + (int(axis.step.value) - 1)) // axis.step
        start = axis.start + steps * axis.step
    return replace(axis, start=start, stop=minimum(axis.stop, high))


def accumulating(
    task: ir.ParallelTask, axes: Sequence[int | None], reduced: Sequence[Reduced], indices: Indices
) -> ir.Block:
    """The body of ``task``, which writes what it accumulates into arrays.

    It runs as a loop of one iteration, so that a ``continue`` goes to its end.
    """
    at, index = At(task.span), indices.index
    start = [at.assign(each.var, _identity(each, at.span)) for each in task.reductions]
    zero, one = (at.const(n, index) for n in (0, 1))
    once = ir.For(ir.Var("once.", index), zero, one, one, task.body, span=at.span)
    cell = _cell(task, axes, indices)
    stores = [
        at.store(at.element(each.partial, cell, each.type), at.read(own.var))
        for each, own in zip(reduced, task.reductions, strict=True)
    ]
    return at.block([*start, once, *stores])


def marked(task: ir.ParallelTask, axes: Sequence[int | None], indices: Indices) -> ir.ParallelTask:
    """``task``, which writes an element of ``CELLS`` in each iteration: its footprint says where the loop runs."""
    at = At(task.span)
    store = at.store(at.element(CELLS, _cell(task, axes, indices), indices.index), at.const(0, indices.index))
    return replace(task, body=replace(task.body, stmts=(store, *task.body.stmts)))


def _cell(task: ir.ParallelTask, axes: Sequence[int | None], indices: Indices) -> tuple[ir.Expr, ...]:
    """The cell of an iteration, counted from the first cell of the rank's block."""
    span, by_axis = task.span, dict(zip(axes, task.axes, strict=True))

    def at(axis: int) -> ir.Expr:
        if axis not in by_axis:
            return At(span).const(0, indices.index)
        own = converted(ir.VarRead(by_axis[axis].var, span=span), indices.index)
        return own - indices.number("first", axis, indices.index, span)

    return tuple(map(at, range(indices.geometry.ndim)))


def _identity(reduction: ir.Reduction, span: Span) -> ir.Const:
    return ir.Const(identity(reduction.op, reduction.var.type), reduction.var.type, span=span)
