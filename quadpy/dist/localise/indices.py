"""A task over the arrays of one rank: global indices become indices of its part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from quadpy.core.dtypes import Scalar, u64
from quadpy.core.source import Span
from quadpy.dist.localise.model import LAUNCH, LAUNCHES, Geometry, origin_name, parameter, slot_array
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, converted, select
from quadpy.ir.walk import map_children, walk


@dataclass(frozen=True, slots=True)
class Indices:
    """For a kernel whose extents have the type ``index``.  ``locals`` has the local array of each distributed one."""

    locals: Mapping[str, str]
    geometry: Geometry
    index: Scalar

    def localised(self, task: ir.Task) -> ir.Task:
        """``task`` over the arrays of the rank; variables that cross tasks are elements of small arrays."""

        def visit(each: ir.Node) -> ir.Node:
            changed = map_children(each, visit)
            match changed:
                case ir.ShapeOf(array=array, axis=axis, type=type) if array in self.locals:
                    more = dict(self.geometry.shapes)[array][axis] - self.geometry.shape[axis]
                    extent = self.number("n", axis, type, changed.span)
                    return extent + more if more else extent
                case ir.Element(array=array, index=index) if array in self.locals:
                    local = tuple(self._local(array, k, e) for k, e in enumerate(index))
                    return replace(changed, array=self.locals[array], index=local)
                case ir.Slot(number=number, type=type):
                    at = At(changed.span)
                    return at.element(slot_array(number), [at.const(0, self.index)], type)
                case _:
                    return changed

        found = visit(task)
        assert isinstance(found, (ir.SerialTask, ir.ParallelTask))
        return self._drawing(found)

    def _drawing(self, task: ir.Task) -> ir.Task:
        """``task`` with the number of the call where it has that of the launch."""
        if not any(isinstance(node, ir.ParamRead) and node.name == LAUNCH for node in walk(task)):
            return task
        at, number = At(task.span), ir.Var("launch.", u64)
        load = at.load(number, at.element(LAUNCHES, [at.const(0, self.index)], u64))

        def visit(each: ir.Node) -> ir.Node:
            is_launch = isinstance(each, ir.ParamRead) and each.name == LAUNCH
            return at.read(number) if is_launch else map_children(each, visit)

        body = visit(task.body)
        assert isinstance(body, ir.Block)
        return replace(task, body=replace(body, stmts=(load, *body.stmts)))

    def _local(self, array: str, axis: int, index: ir.Expr) -> ir.Expr:
        """An index minus that of the first local element; if the axis wraps, plus a period if that leads inside."""
        if not self.geometry.split[axis]:
            return index
        here, type = At(index.span), self.index
        at = converted(index, type) - here.param(origin_name(array, axis), type)
        if not self.geometry.periodic[axis]:
            return at
        n, extent = self.number("n", axis, type, here.span), here.extent(self.locals[array], axis, type)
        return select(at < 0, at + n, select(at >= extent, at - n, at))

    def reported(self, local: str, index: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """The global index of an element of the array ``local``; other arrays keep theirs."""
        array = next((array for array, name in self.locals.items() if name == local), None)
        return index if array is None else tuple(self._global(array, axis, e) for axis, e in enumerate(index))

    def _global(self, array: str, axis: int, index: ir.Expr) -> ir.Expr:
        if not self.geometry.split[axis]:
            return index
        at = converted(index, self.index) + At(index.span).param(origin_name(array, axis), self.index)
        return at % self.number("n", axis, self.index, index.span) if self.geometry.periodic[axis] else at

    def is_own(self, place: ir.Element) -> list[ir.Expr]:
        """Conditions under which the rank has the cell of ``place``: it is at least ``low`` and less than ``high``."""
        conditions: list[ir.Expr] = []
        for axis, index in enumerate(place.index):
            low, high = (self.number(name, axis, self.index, index.span) for name in ("low", "high"))
            at = converted(index, self.index)
            conditions += at >= low, at < high
        return conditions

    def number(self, name: str, axis: int, type: Scalar, span: Span) -> ir.Expr:
        """A parameter of the grid."""
        return converted(At(span).param(parameter(name, axis), self.index), type)
