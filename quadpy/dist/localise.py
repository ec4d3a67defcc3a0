"""From a kernel over a grid to kernels over the part of one rank.

Each task becomes a kernel of its own, in which

- the extents of distributed arrays are parameters, since the arrays that it gets are those of the rank,
- a loop over the grid runs from the greater of its start and ``low`` to the lesser of its end and ``high``,
- an index into a distributed array is global; what its local array begins with is subtracted from it,
- variables that a task leaves for the next are elements of little arrays,
- a loop that accumulates writes what each iteration adds into an array.

Nothing here depends on a rank: the same code runs on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quadpy.artifact import HIDDEN
from quadpy.dist.terms import array_parameter, binary, compare, const, lets, resolved
from quadpy.dtypes import Scalar
from quadpy.errors import KernelSyntaxError
from quadpy.interpreter.numbers import identity as plain_identity
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children, walk
from quadpy.source import Span

__all__ = ["Geometry", "LocalKernel", "LocalTask", "PARAMETERS", "Reduced", "identity", "localised", "parameter"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """What code depends on of a grid: its shape, which axes have several blocks, and which of these are periodic."""

    shape: tuple[int, ...]
    split: tuple[bool, ...]
    periodic: tuple[bool, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduction of a loop: ``op`` over numbers of ``type``; iterations write theirs to ``partial``, ``total`` is combined."""

    op: ir.AtomicOp
    type: Scalar
    partial: str
    total: str


@dataclass(frozen=True, slots=True)
class LocalTask:
    """A task as a kernel of its own.

    kernel    what each rank runs
    analysed  for a loop over the grid, the task with global indices, by which its footprints are found; else None
    axes      for each axis of the loop the axis of the grid that it runs along; None for one that runs whole on every rank
    reduced   the reductions of the loop
    finish    the kernel that puts their totals where the program wants them; None where there is none
    """

    kernel: ir.Kernel
    span: Span
    analysed: ir.ParallelTask | None = None
    axes: tuple[int | None, ...] = ()
    reduced: tuple[Reduced, ...] = ()
    finish: ir.Kernel | None = None


@dataclass(frozen=True, slots=True)
class LocalKernel:
    """All tasks of a kernel, in order; ``slots`` are the arrays of one element for variables that cross tasks."""

    tasks: tuple[LocalTask, ...]
    slots: tuple[tuple[str, Scalar], ...]


def parameter(name: str, axis: int) -> str:
    """The name of a parameter of the grid: ``n``, the extent; ``low``, ``high``, where loops run; ``first``, the own block's."""
    return f"grid.{name}{axis}"


CELLS: Final = "partial.cells"
"""An array in analysed loops, of which each iteration writes an element."""
PARAMETERS: Final = ("n", "low", "high", "first")


def localised(kernel: ir.Kernel, arrays: Sequence[str], geometry: Geometry) -> LocalKernel:
    """The parts of ``kernel``, in which ``arrays`` are distributed.

    Raises:
        KernelSyntaxError: a task does something that ranks cannot do together, with its line.
    """
    if kernel.flow:
        raise KernelSyntaxError(
            f"{kernel.name}: kernels with parallel sections or loops over tasks cannot take distributed arrays",
            kernel.span, hint="make a kernel of each task",
        )  # fmt: skip
    if any(param.name in ("$seed", "$launch") for param in kernel.params):
        raise KernelSyntaxError(
            f"{kernel.name}: random numbers would depend on the number of ranks", kernel.span,
            hint="make them from the global indices and a seed",
        )  # fmt: skip
    return _Localiser(kernel, arrays, geometry).kernel_parts()


class _Localiser:
    def __init__(self, kernel: ir.Kernel, arrays: Sequence[str], geometry: Geometry) -> None:
        self.kernel, self.arrays, self.geometry = kernel, frozenset(arrays), geometry
        self.fields = {name: _field(name) for name in arrays if name.startswith(HIDDEN)}
        self.slots: dict[int, Scalar] = {}
        for node in walk(kernel):
            if isinstance(node, ir.Slot):
                self.slots[node.number] = node.type

    def kernel_parts(self) -> LocalKernel:
        tasks = tuple(self.task(task, number) for number, task in enumerate(self.kernel.tasks))
        return LocalKernel(tasks, tuple((_slot(number), type) for number, type in self.slots.items()))

    # ------------------------------------------------------------------- tasks

    def task(self, task: ir.Task, number: int) -> LocalTask:
        touched = [node for node in walk(task) if isinstance(node, ir.Element) and node.array in self.arrays]
        for node in walk(task):
            if isinstance(node, ir.SlotRead):
                raise KernelSyntaxError(
                    "the bounds of a loop that the kernel computes may differ between ranks", task.span,
                    hint="pass them as arguments",
                )  # fmt: skip
        if not touched:
            return LocalTask(self.alone(self.local(task), number), task.span)
        if isinstance(task, ir.SerialTask):
            raise KernelSyntaxError(
                f"{self.label(touched[0].array)} is distributed, and this is not in a loop over the grid", touched[0].span,
                hint="loop over the array, with a condition on the indices if only one cell is meant",
            )  # fmt: skip
        return self.loop(task, number)

    def loop(self, task: ir.ParallelTask, number: int) -> LocalTask:
        if (
            task.shared
            or task.block_dim
            or any(isinstance(node, (ir.ThreadIndex, ir.BlockIndex, ir.Wave)) for node in walk(task))
        ):
            raise KernelSyntaxError(
                "blocks and waves of a loop over a distributed grid differ between ranks", task.span
            )
        axes = self.mapping(task)
        limited = tuple(
            axis if along is None else self.limited(axis, along) for axis, along in zip(task.axes, axes, strict=True)
        )
        reduced = tuple(
            Reduced(each.op, each.var.type, f"partial.{k}", f"total.{k}") for k, each in enumerate(task.reductions)
        )
        if reduced and (None in axes or len(axes) != self.geometry.ndim):
            raise KernelSyntaxError(
                "a loop that accumulates over ranks must run over all axes of the grid, and no others", task.span
            )
        body = self.accumulating(task, axes, reduced) if reduced else task.body
        plain = replace(task, axes=limited, body=body, reductions=(), privates=())
        partials = tuple(array_parameter(each.partial, each.type, self.geometry.ndim, task.span) for each in reduced)
        kernel = self.alone(self.local(plain), number, partials)
        finish = self.finishing(task, number, reduced) if reduced else None
        return LocalTask(kernel, task.span, self.analysed(self.marked(plain, axes)), axes, reduced, finish)

    def alone(self, task: ir.Task, number: int, more: Sequence[ir.ArrayParam] = ()) -> ir.Kernel:
        """A kernel of one task.  What is not a parameter of the user's comes after those, and before the hidden ones."""
        kernel, last = self.kernel, number == len(self.kernel.tasks) - 1
        slots = [array_parameter(_slot(n), t, 1, kernel.span) for n, t in self.slots.items()]
        numbers = [
            ir.ScalarParam(parameter(name, axis), kernel.index, span=kernel.span)
            for name in PARAMETERS
            for axis in range(self.geometry.ndim)
        ]
        origins = [
            ir.ScalarParam(_origin(array, axis), kernel.index, span=kernel.span)
            for array in sorted(self.arrays)
            for axis in range(self.geometry.ndim)
        ]
        own = [param for param in kernel.params if not param.name.startswith(HIDDEN)]
        own += [self.passed(param) for param in kernel.params if param.name in self.fields]
        hidden = [p for p in kernel.params if p.name.startswith(HIDDEN) and p.name not in self.fields]
        results = kernel.results if last else ()
        return replace(
            kernel, name=f"{kernel.name}_{number}", params=(*own, *slots, *more, *numbers, *origins, *hidden),
            tasks=(task,), slots=len(results), results=results, flow=(),
        )  # fmt: skip

    def passed(self, param: ir.Param) -> ir.ArrayParam:
        """The array that a launch passes for a distributed field, of which the rank has a part."""
        assert isinstance(param, ir.ArrayParam)
        return array_parameter(
            self.fields[param.name], param.type.elem, param.type.ndim, param.span, param.type.element
        )

    def finishing(self, task: ir.ParallelTask, number: int, reduced: Sequence[Reduced]) -> ir.Kernel:
        """The kernel that updates the places of the reductions by their totals."""
        stmts: list[ir.Stmt] = []
        for each, (k, reduction) in zip(reduced, enumerate(task.reductions), strict=True):
            span, type = reduction.span, each.type
            old, total = ir.Var(f"old.{k}", type), ir.Var(f"total.{k}.value", type)
            zero = ir.Const(0, self.kernel.index, span=span)
            stmts.append(ir.Load(old, reduction.place, span=span))
            stmts.append(ir.Load(total, ir.Element(each.total, (zero,), 0, type, span=span), span=span))
            new = ir.Binary(
                ir.COMBINES[each.op], ir.VarRead(old, span=span), ir.VarRead(total, span=span), type, span=span
            )
            stmts.append(ir.Store(reduction.place, new, span=span))
        serial = ir.SerialTask(f"{task.name}_finish", ir.Block(tuple(stmts), span=task.span), span=task.span)
        totals = tuple(array_parameter(each.total, each.type, 1, task.span) for each in reduced)
        made = self.alone(self.local(serial), number, totals)
        return replace(made, name=f"{made.name}_finish", results=(), slots=0)

    def label(self, array: str) -> str:
        """How messages call it."""
        return "a field" if array in self.fields else array

    # ------------------------------------------------------------------- loops

    def mapping(self, task: ir.ParallelTask) -> tuple[int | None, ...]:
        """The axis of the grid that each axis of the loop runs along."""
        found: dict[ir.Var, int] = {}
        stores = [node.place for node in walk(task) if isinstance(node, (ir.Store, ir.Atomic))]
        places = [place for place in stores if isinstance(place, ir.Element) and place.array in self.arrays]
        if not places:  # it only reads
            places = [node for node in walk(task) if isinstance(node, ir.Element) and node.array in self.arrays]
        values = lets(task)
        for place in places:
            for axis, index in enumerate(place.index):
                plain = resolved(index, values)
                if isinstance(plain, ir.VarRead):
                    found.setdefault(plain.var, axis)
        axes = tuple(found.get(axis.var) for axis in task.axes)
        if any(axis is not None for axis in axes) and len(set(axes) - {None}) == sum(axis is not None for axis in axes):
            return axes
        if len(task.axes) == self.geometry.ndim:
            return tuple(range(self.geometry.ndim))
        raise KernelSyntaxError(
            "which rank runs an iteration of this loop is not known", task.span,
            hint="loop over the array, or use the loop's variables as indices of what it writes",
        )  # fmt: skip

    def limited(self, axis: ir.Axis, along: int) -> ir.Axis:
        """``axis`` from ``low`` on, below ``high``; one that no rank shares with another stays as it is."""
        span, type = axis.span, axis.var.type
        low, high = (self.number(name, along, type, span) for name in ("low", "high"))
        if not (isinstance(axis.step, ir.Const) and axis.step.value >= 1):
            raise KernelSyntaxError("a loop over a distributed grid takes a step that is a positive constant", span)
        if not self.geometry.split[along]:
            return axis
        start = binary(ir.BinOp.MAX, axis.start, low)
        if axis.step.value > 1:  # the first of its numbers that is not below ``low``
            above = binary(ir.BinOp.SUB, start, axis.start)
            rounded = binary(ir.BinOp.ADD, above, const(int(axis.step.value) - 1, type, span))
            steps = binary(ir.BinOp.FLOORDIV, rounded, axis.step)
            start = binary(ir.BinOp.ADD, axis.start, binary(ir.BinOp.MUL, steps, axis.step))
        return replace(axis, start=start, stop=binary(ir.BinOp.MIN, axis.stop, high))

    def accumulating(self, task: ir.ParallelTask, axes: Sequence[int | None], reduced: Sequence[Reduced]) -> ir.Block:
        """The body of ``task``, which writes what it accumulates into arrays: it runs as a loop of one turn, so that a
        ``continue`` comes to the end of it.
        """
        span, index = task.span, self.kernel.index
        zero, one = const(0, index, span), const(1, index, span)
        start = [ir.Assign(each.var, _identity(each, span), span=span) for each in task.reductions]
        once = ir.For(ir.Var("once.", index), zero, one, one, task.body, span=span)
        by_axis = {axis: loop.var for axis, loop in zip(axes, task.axes, strict=True)}
        at = tuple(
            binary(
                ir.BinOp.SUB,
                self.converted(ir.VarRead(by_axis[axis], span=span)),
                self.number("first", axis, index, span),
            )
            for axis in range(self.geometry.ndim)
        )
        stores = [
            ir.Store(ir.Element(each.partial, at, 0, each.type, span=span), ir.VarRead(own.var, span=span), span=span)
            for each, own in zip(reduced, task.reductions, strict=True)
        ]
        return ir.Block((*start, once, *stores), span=span)

    # ------------------------------------------------------------------- expressions

    def local(self, node: ir.Task) -> ir.Task:
        """``node`` over the arrays of the rank."""

        def visit(each: ir.Node) -> ir.Node:
            changed = map_children(each, visit)
            match changed:
                case ir.ShapeOf(array=array, axis=axis, type=type) if array in self.arrays:
                    return self.number("n", axis, type, changed.span)
                case ir.Element(array=array, index=index) if array in self.arrays:
                    local = tuple(self.local_index(array, k, e) for k, e in enumerate(index))
                    return replace(changed, array=self.fields.get(array, array), index=local)
                case ir.Slot(number=number, type=type):
                    return ir.Element(
                        _slot(number), (const(0, self.kernel.index, changed.span),), 0, type, span=changed.span
                    )
                case _:
                    return changed

        found = visit(node)
        assert isinstance(found, (ir.SerialTask, ir.ParallelTask))
        return found

    def local_index(self, array: str, axis: int, index: ir.Expr) -> ir.Expr:
        if not self.geometry.split[axis]:
            return index
        span, type = index.span, self.kernel.index
        origin = ir.ParamRead(_origin(array, axis), type, span=span)
        at = binary(ir.BinOp.SUB, self.converted(index), origin)
        if not self.geometry.periodic[axis]:
            return at
        n, extent = self.number("n", axis, type, span), ir.ShapeOf(self.fields.get(array, array), axis, type, span=span)
        below = compare(ir.CmpOp.LT, at, const(0, type, span))
        above = compare(ir.CmpOp.GE, at, extent)
        down = ir.Select(above, binary(ir.BinOp.SUB, at, n), at, type, span=span)
        return ir.Select(below, binary(ir.BinOp.ADD, at, n), down, type, span=span)

    def converted(self, index: ir.Expr) -> ir.Expr:
        return index if index.type == self.kernel.index else ir.Cast(index, self.kernel.index, span=index.span)

    def number(self, name: str, axis: int, type: Scalar, span: Span) -> ir.Expr:
        read = ir.ParamRead(parameter(name, axis), self.kernel.index, span=span)
        return read if type == self.kernel.index else ir.Cast(read, type, span=span)

    def marked(self, task: ir.ParallelTask, axes: Sequence[int | None]) -> ir.ParallelTask:
        """``task``, which writes an element of ``CELLS`` in each iteration: its footprint says where the loop runs."""
        span, index, by_axis = task.span, self.kernel.index, dict(zip(axes, task.axes, strict=True))
        at = tuple(
            binary(ir.BinOp.SUB, self.converted(ir.VarRead(by_axis[axis].var, span=span)), self.number("first", axis, index, span))
            if axis in by_axis else const(0, index, span)
            for axis in range(self.geometry.ndim)
        )  # fmt: skip
        store = ir.Store(ir.Element(CELLS, at, 0, index, span=span), const(0, index, span), span=span)
        return replace(task, body=replace(task.body, stmts=(store, *task.body.stmts)))

    def analysed(self, task: ir.ParallelTask) -> ir.ParallelTask:
        """``task`` with global indices; those of periodic axes are as they were before ``% n``."""
        values = lets(task)

        def visit(each: ir.Node) -> ir.Node:
            changed = map_children(each, visit)
            if isinstance(changed, ir.Element) and changed.array in self.arrays:
                return replace(changed, index=tuple(self.unwrapped(k, e, values) for k, e in enumerate(changed.index)))
            return changed

        found = visit(task)
        assert isinstance(found, ir.ParallelTask)
        return found

    def unwrapped(self, axis: int, index: ir.Expr, values: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
        if not (self.geometry.periodic[axis] and self.geometry.split[axis]):
            return index
        plain = resolved(index, values)
        if (
            isinstance(plain, ir.Binary)
            and plain.op is ir.BinOp.MOD
            and self.is_extent(resolved(plain.rhs, values), axis)
        ):
            return plain.lhs
        return index

    def is_extent(self, e: ir.Expr, axis: int) -> bool:
        """Whether ``e`` is the extent of the grid along ``axis``."""
        match e:
            case ir.ShapeOf(array=array, axis=of):
                return array in self.arrays and of == axis
            case ir.Const(value=value):
                return value == self.geometry.shape[axis]
            case _:
                return False


def _slot(number: int) -> str:
    return f"slot.{number}"


def _origin(array: str, axis: int) -> str:
    return f"origin.{array.removeprefix(HIDDEN)}.{axis}"


def _field(name: str) -> str:
    return f"field.{name.removeprefix(HIDDEN)}"


def identity(op: ir.AtomicOp, type: Scalar) -> int | float:
    """What ``op`` leaves as it is."""
    value = plain_identity(op.value, type)
    return float(value) if type.is_float else int(value)


def _identity(reduction: ir.Reduction, span: Span) -> ir.Const:
    return ir.Const(identity(reduction.op, reduction.var.type), reduction.var.type, span=span)
