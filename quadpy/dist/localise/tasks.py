"""From a kernel over a grid to kernels over the part of one rank.

Each task becomes a separate kernel, in which

- the extents of distributed arrays are parameters, since the arrays that it gets are those of the rank,
- a loop over the grid runs from the larger of its start and ``low`` to the smaller of its end and ``high``,
- an index into a distributed array is global; the first index of its local array is subtracted from it,
- variables that a task passes to the next are elements of small arrays, and so is the number of the call by which random
  numbers are drawn: a call has several launches, and each number of ranks has others,
- a loop that accumulates writes what each iteration adds into an array,
- under ``debug=True``, the arrays that are not proved free of races are watched, in the memory of the rank.

Nothing here depends on a rank: the same code runs on all of them.

It finds along which axes of the grid a loop runs, where, and what its iterations accumulate; and it refuses what kernels
may not do with distributed arrays, as far as their code alone shows.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quadpy.core.artifact import HIDDEN
from quadpy.core.dtypes import u64
from quadpy.dist.localise.indices import Indices
from quadpy.dist.localise.model import (
    CELLS,
    LAUNCH,
    LAUNCHES,
    PARAMETERS,
    Geometry,
    LocalKernel,
    LocalTask,
    Reduced,
    field_name,
    identity,
    origin_name,
    parameter,
    partial_name,
    slot_array,
)
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, converted, maximum, minimum
from quadpy.ir.expressions import slot_name
from quadpy.ir.footprints import with_numbers
from quadpy.ir.passes.atomics import demote_atomics
from quadpy.ir.passes.watch_races import watched_in, with_watches
from quadpy.ir.touches import changed_in, name_of
from quadpy.ir.types import array_of
from quadpy.ir.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quadpy.core.dtypes import Scalar
    from quadpy.core.source import Span


def localised(kernel: ir.Kernel, arrays: Sequence[str], geometry: Geometry) -> LocalKernel:
    """The parts of ``kernel``, whose ``arrays`` are distributed.

    Raises:
        KernelSyntaxError: a task does something that ranks cannot do together, with its line.
    """
    require_tasks_in_order(kernel)
    return _Localiser(kernel, arrays, geometry).kernel_parts()


class _Localiser:
    def __init__(self, kernel: ir.Kernel, arrays: Sequence[str], geometry: Geometry) -> None:
        self.kernel, self.arrays, self.geometry = kernel, frozenset(arrays), geometry
        self.fields = {name: field_name(name) for name in arrays if name.startswith(HIDDEN)}
        self.indices = Indices({name: self.fields.get(name, name) for name in arrays}, geometry, kernel.index)
        self.slots: dict[int, Scalar] = {}
        for node in walk(kernel):
            if isinstance(node, ir.Slot):
                self.slots[node.number] = node.type
        self.draws = any(param.name == LAUNCH for param in kernel.params)

    def kernel_parts(self) -> LocalKernel:
        tasks = tuple(self.task(task, number) for number, task in enumerate(self.kernel.tasks))
        slots = tuple((slot_array(number), type) for number, type in self.slots.items())
        return LocalKernel(tasks, slots, self.draws)

    def task(self, task: ir.Task, number: int) -> LocalTask:
        touched = (node for node in walk(task) if isinstance(node, ir.Element) and node.array in self.arrays)
        first = next(touched, None)
        require_loop(self.kernel, task, first)
        found = (
            LocalTask(self.alone(self.indices.localised(task), number), task.span)
            if first is None or isinstance(task, ir.SerialTask)
            else self.loop(task, number)
        )
        return replace(found, kernel=self.watched(found.kernel, task))

    def watched(self, local: ir.Kernel, task: ir.Task) -> ir.Kernel:
        """``local`` with the checks for races that ``task`` needs: the proofs are about global indices."""
        slots = {slot_name(n): slot_array(n) for n in self.slots}
        names = [{**slots, **self.fields}.get(name, name) for name in watched_in(task, self.kernel)]
        return with_watches(local, [names], self.indices.reported)

    def loop(self, task: ir.ParallelTask, number: int) -> LocalTask:
        axes = axes_of(task, self.arrays.__contains__, self.geometry.ndim)
        bounds = tuple(
            axis if along is None else limited(axis, along, self.indices)
            for axis, along in zip(task.axes, axes, strict=True)
        )
        reduced = tuple(
            Reduced(each.op, each.var.type, partial_name(k), f"total.{k}") for k, each in enumerate(task.reductions)
        )
        if reduced and (None in axes or len(axes) != self.geometry.ndim):
            raise KernelSyntaxError(
                "a loop that accumulates over ranks must run over all axes of the grid, and no others", task.span,
                hint="write an inner loop for the rest",
            )  # fmt: skip
        body = accumulating(task, axes, reduced, self.indices) if reduced else task.body
        plain = replace(task, axes=bounds, body=body, reductions=(), privates=())
        partials = tuple(array_parameter(each.partial, each.type, self.geometry.ndim, task.span) for each in reduced)
        kernel = self.alone(self.indices.localised(plain), number, partials)
        analysed = self.with_extents(marked(plain, axes, self.indices))
        found = LocalTask(kernel, task.span, analysed, axes, reduced)
        return self.finished(found, task, number) if reduced else found

    def with_extents(self, task: ir.ParallelTask) -> ir.ParallelTask:
        """``task`` with the numbers that the extents of its arrays are, so that formulas are short."""
        (found,) = with_numbers(replace(self.kernel, tasks=(task,)), self.geometry.extents).tasks
        assert isinstance(found, ir.ParallelTask)
        return found

    # ------------------------------------------------------------------- totals

    def finished(self, found: LocalTask, task: ir.ParallelTask, number: int) -> LocalTask:
        """``found`` with the kernel that updates the places of the reductions by their totals."""
        stmts = [
            stmt
            for k, (each, own) in enumerate(zip(found.reduced, task.reductions, strict=True))
            for stmt in self.update(each, own, k)
        ]
        serial = ir.SerialTask(f"{task.name}_finish", ir.Block(tuple(stmts), span=task.span), span=task.span)
        totals = tuple(array_parameter(each.total, each.type, 1, task.span) for each in found.reduced)
        made = demote_atomics(self.alone(self.indices.localised(serial), number, totals))
        places = [each.place.array for each in task.reductions if isinstance(each.place, ir.Element)]
        return replace(
            found, finish=replace(made, name=f"{made.name}_finish", results=(), slots=0),
            finished=self.arrays.intersection(places),
        )  # fmt: skip

    def update(self, reduced: Reduced, reduction: ir.Reduction, number: int) -> tuple[ir.Stmt, ...]:
        """``place op= total``; an element of a distributed array on the rank that owns it."""
        span, place, total = reduction.span, reduction.place, ir.Var(f"total.{number}", reduced.type)
        zero, value = ir.Const(0, self.kernel.index, span=span), ir.VarRead(total, span=span)
        stmts: tuple[ir.Stmt, ...] = (
            ir.Load(total, ir.Element(reduced.total, (zero,), 0, reduced.type, span=span), span=span),
            ir.Atomic(reduced.op, place, value, in_launch=reduction.in_launch, span=span),
        )
        if isinstance(place, ir.Element) and place.array in self.arrays:
            for condition in self.indices.is_own(place):
                stmts = (ir.If(condition, ir.Block(stmts, span=span), ir.Block((), span=span), span=span),)
        return stmts

    # ------------------------------------------------------------------- kernels

    def alone(self, task: ir.Task, number: int, more: Sequence[ir.ArrayParam] = ()) -> ir.Kernel:
        """A kernel of one task.  Added parameters come after the user's parameters, and before the hidden ones."""
        kernel, last = self.kernel, number == len(self.kernel.tasks) - 1
        slots = [
            array_parameter(slot_array(n), t, 1, kernel.span, kernel.called(slot_name(n)))
            for n, t in self.slots.items()
        ]
        if self.draws:
            slots.append(array_parameter(LAUNCHES, u64, 1, kernel.span))
        axes = range(self.geometry.ndim)
        names = [parameter(name, axis) for name in PARAMETERS for axis in axes]
        names += [origin_name(array, axis) for array in sorted(self.arrays) for axis in axes]
        numbers = [ir.ScalarParam(name, kernel.index, span=kernel.span) for name in names]
        own = [param for param in kernel.params if not param.name.startswith(HIDDEN)]
        own += [self.passed(param) for param in kernel.params if param.name in self.fields]
        hidden = [p for p in kernel.params if p.name.startswith(HIDDEN) and p.name not in (*self.fields, LAUNCH)]
        results = kernel.results if last else ()
        return replace(
            kernel, name=f"{kernel.name}_{number}", params=(*own, *slots, *more, *numbers, *hidden),
            tasks=(task,), slots=len(results), results=results, flow=(),
        )  # fmt: skip

    def passed(self, param: ir.Param) -> ir.ArrayParam:
        """The array that a launch passes for the rank's part of a distributed field."""
        assert isinstance(param, ir.ArrayParam)
        type = array_of(param.type.elem, param.type.ndim, param.type.element)
        return ir.ArrayParam(self.fields[param.name], type, called=param.called, span=param.span)


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


_OF_BLOCKS: Final = "blocks and waves of a loop over a distributed grid differ between ranks"
_WITHOUT_BLOCKS: Final = "write the loop without shared arrays, and let iterations read what they need from the grid"


def require_tasks_in_order(kernel: ir.Kernel) -> None:
    """Refuses parallel sections, checkpoints and loops over tasks.

    Raises:
        KernelSyntaxError: as all of this module.
    """
    if kernel.flow or any(task.gate for task in kernel.tasks):
        raise KernelSyntaxError(
            f"{kernel.name}: kernels with parallel sections, checkpoints or loops over tasks cannot take distributed arrays",
            kernel.span, hint="make a kernel of each task, and call them in a Python loop; qp.dist.capture makes graphs of them",
        )  # fmt: skip


def require_loop(kernel: ir.Kernel, task: ir.Task, touched: ir.Element | None) -> None:
    """Refuses ``task`` if it is not a loop that ranks can divide; ``touched`` is what it does with a distributed array."""
    if any(isinstance(node, ir.SlotRead) for node in walk(task)):
        raise KernelSyntaxError(
            "the bounds of a loop that the kernel computes may differ between ranks", task.span,
            hint="pass them as arguments",
        )  # fmt: skip
    if touched is None:
        return
    if isinstance(task, ir.SerialTask):
        raise KernelSyntaxError(
            f"{kernel.called(touched.array)} is distributed, and this is not in a loop over the grid", touched.span,
            hint="loop over the array at the top level of the kernel, with a condition on the indices if only one cell is meant",
        )  # fmt: skip
    if task.shared:
        raise KernelSyntaxError(_OF_BLOCKS, task.span, hint=_WITHOUT_BLOCKS)
    for node in walk(task.body):
        if not ir.MEETINGS.isdisjoint(node.ORDERS) or isinstance(node, (ir.ThreadIndex, ir.BlockIndex)):
            raise KernelSyntaxError(_OF_BLOCKS, node.span, hint=_WITHOUT_BLOCKS)
        for place in changed_in(node) if node.WRITES else ():
            if isinstance(place, ir.Element):
                continue
            name = kernel.called(name_of(place))
            raise KernelSyntaxError(
                f"{name} is set in iterations of a loop over a distributed grid, so each rank would have its own {name}",
                node.span, hint=f"accumulate, for example with {name} += …, qp.atomic_min({name}, …) or qp.atomic_max({name}, …), whose result is not used",
            )  # fmt: skip


def lets(task: ir.Task) -> dict[ir.Var, ir.Expr]:
    """The values of variables that are bound once."""
    return {node.var: node.value for node in walk(task) if isinstance(node, ir.Let)}


def resolved(e: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """``e``, or the value of the variable that it reads."""
    for _ in itertools.repeat(None):
        if isinstance(e, ir.VarRead) and e.var in values:
            e = values[e.var]
        elif isinstance(e, ir.Cast) and not e.type.is_float and not e.operand.type.is_float and e.type.bits >= 32:
            e = e.operand
        else:
            break
    return e


def array_parameter(name: str, type: Scalar, ndim: int, span: Span, called: str = "") -> ir.ArrayParam:
    return ir.ArrayParam(name, array_of(type, ndim), called=called, span=span)
