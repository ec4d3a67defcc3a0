"""A loop as its footprints are found: with global indices, which go on beyond the ends of axes that wrap."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeGuard

from quadpy.dist.localise.model import Geometry
from quadpy.dist.terms import const, lets, resolved
from quadpy.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children

__all__ = ["Analysis"]

_MOST_WAYS: Final = 16


class Analysis:
    """Makes ``e % n`` along an axis that wraps plain ``e``, and each way of ``a if c else b`` a read under its condition.

    Where a variable holds such an index, others beside it hold ``e``, ``c``, ``a`` and ``b``, bound at the same place: what
    these read may change before the index is used.
    """

    def __init__(self, task: ir.ParallelTask, is_distributed: Callable[[str], bool], geometry: Geometry) -> None:
        self._task, self._is_distributed, self._geometry = task, is_distributed, geometry
        self._values = lets(task)
        self._beside: dict[ir.Var, ir.Expr] = {}
        self._numbers = itertools.count()

    def task(self) -> ir.ParallelTask:
        """The task as it is analysed."""
        found = self._visited(self._task)
        assert isinstance(found, ir.ParallelTask)
        return found

    # ------------------------------------------------------------------- statements

    def _visited(self, node: ir.Node) -> ir.Node:
        match node:
            case ir.Block(stmts=stmts):
                return replace(node, stmts=tuple(each for stmt in stmts for each in self._statements(stmt)))
            case ir.Element(array=array) if self._is_distributed(array):
                return self._unwrapped(self._held_place(node))
            case _:
                return map_children(node, self._visited)

    def _statements(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """What stands for ``stmt``."""
        match stmt:
            case ir.Let(var=var, value=value) if _is_index(value.type):
                held, bound = self._held(value), list[ir.Stmt]()
                if _is_choice(held) or _is_remainder(held):
                    self._beside[var] = self._bound(held, bound)
                return [*bound, stmt]
            case ir.Load(var=var, place=ir.Element(array=array) as place) if self._is_distributed(array):
                return self._read(var, self._held_place(place), _MOST_WAYS)
            case _:
                return [map_children(stmt, self._visited)]

    def _read(self, var: ir.Var, place: ir.Element, most: int) -> list[ir.Stmt]:
        """A read for each way that an index along a divided axis may go, but at most so many."""
        span = place.span
        for axis, e in enumerate(place.index):
            if not (self._geometry.split[axis] and isinstance(e, ir.Select) and most > 1):
                continue
            chosen, ways = self._variable(var.type), list[ir.Block]()
            for way in (e.then, e.orelse):
                part, index = self._variable(var.type), (*place.index[:axis], way, *place.index[axis + 1 :])
                read = self._read(part, replace(place, index=index), most // 2)
                ways.append(ir.Block((*read, ir.Assign(chosen, ir.VarRead(part, span=span), span=span)), span=span))
            start = ir.Assign(chosen, const(0, var.type, span), span=span)
            choice = ir.If(e.cond, ways[0], ways[1], span=span)
            return [start, choice, ir.Let(var, ir.VarRead(chosen, span=span), span=span)]
        return [ir.Load(var, self._unwrapped(place), span=span)]

    # ------------------------------------------------------------------- indices

    def _held_place(self, place: ir.Element) -> ir.Element:
        return replace(place, index=tuple(map(self._held, place.index)))

    def _held(self, e: ir.Expr) -> ir.Expr:
        """``e``, or what is beside the variable that it reads."""
        match e:
            case ir.VarRead(var=var):
                return self._beside.get(var, e)
            case ir.Cast(operand=operand) if _is_index(e.type) and _is_index(operand.type):
                held = self._held(operand)
                return held if _is_choice(held) or _is_remainder(held) else e
            case ir.Select(then=then, orelse=orelse):
                return replace(e, then=self._held(then), orelse=self._held(orelse))
            case _:
                return e

    def _bound(self, e: ir.Expr, bound: list[ir.Stmt]) -> ir.Expr:
        """``e`` of variables that hold its parts, whose ``Let`` are added to ``bound``."""
        match e:
            case ir.Select(cond=cond, then=then, orelse=orelse):
                return replace(
                    e, cond=self._variable_for(cond, bound), then=self._bound(then, bound), orelse=self._bound(orelse, bound)
                )  # fmt: skip
            case ir.Binary(op=ir.BinOp.MOD, lhs=lhs):
                return replace(e, lhs=self._variable_for(lhs, bound))
            case _:
                return self._variable_for(e, bound)

    def _variable_for(self, e: ir.Expr, bound: list[ir.Stmt]) -> ir.Expr:
        if isinstance(e, ir.Const) or (isinstance(e, ir.VarRead) and e.var in self._values):
            return e
        var = self._variable(e.type)
        bound.append(ir.Let(var, e, span=e.span))
        return ir.VarRead(var, span=e.span)

    def _variable(self, type: Scalar) -> ir.Var:
        return ir.Var(f"way.{next(self._numbers)}", type)

    def _unwrapped(self, place: ir.Element) -> ir.Element:
        """``place`` with indices beyond the ends of the grid where ``e % n`` led back into it."""
        index = tuple(
            e.lhs if self._geometry.wraps(axis) and _is_remainder(e) and self._is_extent(e.rhs, axis) else e
            for axis, e in enumerate(place.index)
        )
        return replace(place, index=index)

    def _is_extent(self, e: ir.Expr, axis: int) -> bool:
        """Whether ``e`` is the extent of the grid along ``axis``."""
        match resolved(e, self._values):
            case ir.ShapeOf(array=array, axis=of):
                return self._is_distributed(array) and of == axis
            case ir.Const(value=value):
                return value == self._geometry.shape[axis]
            case _:
                return False


def _is_index(type: Scalar) -> bool:
    return not type.is_float and type.bits >= 32


def _is_choice(e: ir.Expr) -> TypeGuard[ir.Select]:
    return isinstance(e, ir.Select)


def _is_remainder(e: ir.Expr) -> TypeGuard[ir.Binary]:
    return isinstance(e, ir.Binary) and e.op is ir.BinOp.MOD
