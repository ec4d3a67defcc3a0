"""An element that only one iteration touches stays in a variable while a loop inside the iteration updates it.

``for j in range(n): y[i] += x[j]`` in a loop over ``i`` reads and writes ``y[i]`` once, and not ``n`` times.  The values
and their order are the same, and so are the bits.  LLVM does this by itself only if each turn of the loop stores.
The element is written after the loop only if the loop wrote it: other work may write it in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from quadpy.core.dtypes import u1
from quadpy.ir import nodes as ir
from quadpy.ir.build import At
from quadpy.ir.passes.atomics import private_arrays
from quadpy.ir.touches import name_of, touched_in
from quadpy.ir.types import Array, Space
from quadpy.ir.walk import map_children, walk


def hold_elements(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with variables in place of the elements that the loops of an iteration read and write."""
    if not kernel.noalias:
        return kernel
    arrays = kernel.array_types
    return replace(kernel, tasks=tuple(_held(task, arrays) for task in kernel.tasks))


def _held(task: ir.Task, arrays: dict[str, Array]) -> ir.Task:
    if not isinstance(task, ir.ParallelTask) or not any(
        isinstance(node, (ir.For, ir.While)) for node in walk(task.body)
    ):
        return task
    elements = [node for node in walk(task.body) if isinstance(node, ir.Element)]
    kept = {name_of(place) for node, place, _ in touched_in(task.body) if not isinstance(node, (ir.Load, ir.Store))}
    places, private = {place.array: place for place in elements}, private_arrays(task)
    own = {
        name
        for name, place in places.items()
        if name not in kept and name in private and _is_inside(task, place, arrays.get(name))
    }
    return replace(task, body=_Holder(own).block(task.body)) if own else task


def _is_inside(task: ir.ParallelTask, place: ir.Element, type: Array | None) -> bool:
    """Whether the element exists in each iteration, even if the program would not touch it."""
    if type is None or type.strided or type.space is not Space.GLOBAL:
        return False
    axes = {axis.var: axis for axis in task.axes}
    return all(
        isinstance(part, ir.VarRead) and part.var in axes and fits(axes[part.var], place.array, number, type)
        for number, part in enumerate(place.index)
    )


def fits(axis: ir.Axis | ir.For, array: str, number: int, type: Array) -> bool:
    """Whether the values of ``axis``, or of a loop's counter, are indices of the array's axis with that number."""
    starts = isinstance(axis.start, ir.Const) and axis.start.value >= 0
    rises = isinstance(axis.step, ir.Const) and axis.step.value > 0
    match axis.stop:
        case ir.Const(value=stop):
            ends = type.shape is not None and stop <= type.shape[number]
        case ir.ShapeOf(array=other, axis=extent):
            ends = (other, extent) == (array, number)
        case _:
            ends = False
    return starts and rises and ends


class Held(NamedTuple):
    """The variable in place of an element, and whether the loop has written it."""

    var: ir.Var
    written: ir.Var


class _Holder:
    """Rewrites the outermost loops of an iteration; it has one element of each array in ``own``."""

    def __init__(self, own: set[str]) -> None:
        self.own, self.numbers = own, count(1)

    def block(self, block: ir.Block) -> ir.Block:
        return At(block.span).block(new for stmt in block.stmts for new in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, (ir.For, ir.While)):
            yield from self.loop(stmt)
        else:
            yield map_children(stmt, lambda child: self.block(child) if isinstance(child, ir.Block) else child)

    def loop(self, loop: ir.For | ir.While) -> Iterator[ir.Stmt]:
        held = {place: self.variables(place) for place in self.updated(loop)} if _ends_at_its_end(loop) else {}
        at = At(loop.span)
        for place, (var, written) in held.items():
            now = ir.Var(f"{var.name}.old", place.type)
            yield from (at.load(now, place), at.assign(var, at.read(now)), at.assign(written, at.const(False, u1)))
        yield map_children(loop, lambda child: _with_variables(child, held)) if held else loop
        for place, (var, written) in held.items():
            yield at.when(at.read(written), [at.store(place, at.read(var))])

    def updated(self, loop: ir.For | ir.While) -> Iterable[ir.Element]:
        """The elements that the loop both reads and writes."""
        read = {node.place for node in walk(loop) if isinstance(node, ir.Load)}
        written = dict.fromkeys(node.place for node in walk(loop) if isinstance(node, ir.Store))
        return [
            place for place in written if isinstance(place, ir.Element) and place in read and place.array in self.own
        ]

    def variables(self, place: ir.Element) -> Held:
        name = f"{place.array}$held{next(self.numbers)}"
        return Held(ir.Var(name, place.type), ir.Var(f"{name}.written", u1))


def _ends_at_its_end(loop: ir.For | ir.While) -> bool:
    """Whether all exits of the loop lead to the statement after it."""
    inside = {node.label for node in walk(loop) if isinstance(node, ir.LabelledBlock)}
    return all(node.label in inside for node in walk(loop) if isinstance(node, ir.Leave))


def _with_variables(node: ir.Node, held: dict[ir.Element, Held]) -> ir.Node:
    if isinstance(node, ir.Block):
        return replace(node, stmts=tuple(new for stmt in node.stmts for new in _in_block(stmt, held)))
    return map_children(node, lambda child: _with_variables(child, held))


def _in_block(stmt: ir.Stmt, held: dict[ir.Element, Held]) -> Iterator[ir.Stmt]:
    at = At(stmt.span)
    match stmt:
        case ir.Load(var=var, place=ir.Element() as place) if place in held:
            yield at.let(var, at.read(held[place].var))
        case ir.Store(place=ir.Element() as place, value=value) if place in held:
            yield at.assign(held[place].var, value)
            yield at.assign(held[place].written, at.const(True, u1))
        case _:
            yield map_children(stmt, lambda child: _with_variables(child, held))
