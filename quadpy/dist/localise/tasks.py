"""From a kernel over a grid to kernels over the part of one rank.

Each task becomes a separate kernel, in which

- the extents of distributed arrays are parameters, since the arrays that it gets are those of the rank,
- a loop over the grid runs from the larger of its start and ``low`` to the smaller of its end and ``high``,
- an index into a distributed array is global; the first index of its local array is subtracted from it,
- variables that a task passes to the next are elements of small arrays,
- a loop that accumulates writes what each iteration adds into an array,
- under ``debug=True``, the arrays that are not proved free of races are watched, in the memory of the rank.

Nothing here depends on a rank: the same code runs on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quadpy.core.artifact import HIDDEN
from quadpy.core.dtypes import Scalar
from quadpy.dist.localise.indices import Indices
from quadpy.dist.localise.loops import accumulating, axes_of, limited, marked
from quadpy.dist.localise.model import (
    PARAMETERS,
    Geometry,
    LocalKernel,
    LocalTask,
    Reduced,
    field_name,
    origin_name,
    parameter,
    partial_name,
    slot_array,
)
from quadpy.dist.localise.refusals import require_loop, require_tasks_in_order
from quadpy.dist.terms import array_parameter
from quadpy.errors import KernelSyntaxError
from quadpy.ir import nodes as ir
from quadpy.ir.expressions import slot_name
from quadpy.ir.footprints import with_numbers
from quadpy.ir.index.numbers import Given
from quadpy.ir.passes.atomics import demote_atomics
from quadpy.ir.passes.watch_races import watched_in, with_watches
from quadpy.ir.types import array_of
from quadpy.ir.walk import walk


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

    def kernel_parts(self) -> LocalKernel:
        tasks = tuple(self.task(task, number) for number, task in enumerate(self.kernel.tasks))
        return LocalKernel(tasks, tuple((slot_array(number), type) for number, type in self.slots.items()))

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
        """``task`` with the numbers that the extents of the grid are, so that formulas are short."""
        numbers = {
            Given(array, "extent", axis): n for array in self.arrays for axis, n in enumerate(self.geometry.shape)
        }
        (found,) = with_numbers(replace(self.kernel, tasks=(task,)), numbers).tasks
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
        axes = range(self.geometry.ndim)
        names = [parameter(name, axis) for name in PARAMETERS for axis in axes]
        names += [origin_name(array, axis) for array in sorted(self.arrays) for axis in axes]
        numbers = [ir.ScalarParam(name, kernel.index, span=kernel.span) for name in names]
        own = [param for param in kernel.params if not param.name.startswith(HIDDEN)]
        own += [self.passed(param) for param in kernel.params if param.name in self.fields]
        hidden = [p for p in kernel.params if p.name.startswith(HIDDEN) and p.name not in self.fields]
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
