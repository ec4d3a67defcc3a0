"""One way to write IR: expressions with Python's operators (``ir.Term``), and statements at one place in the source.

``At`` holds the place that the nodes of a passage have in common::

    at = At(stmt.span)
    yield at.let(offset, at.read(i) * n + k)
    yield at.when(at.read(offset) < count, [at.store(place, value)])

Each function makes one node, and simplifies nothing; ``converted`` alone leaves out a cast that changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quadpy.core.dtypes import Scalar, i64, u64
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.expressions import as_operand

FAULT_PARAMS: Final = ("$fault", "$sites")
"""Hidden parameters of kernels with checks: the address of the record of faults, and the number of the first check."""


def binary(op: ir.BinOp, a: ir.Expr, b: ir.Expr | float) -> ir.Binary:
    """``a op b``, for an operation that is a value, or that Python has no operator for."""
    return ir.Binary(op, a, as_operand(b, a), a.type, span=a.span)


def minimum(a: ir.Expr, b: ir.Expr | float) -> ir.Binary:
    return binary(ir.BinOp.MIN, a, b)


def maximum(a: ir.Expr, b: ir.Expr | float) -> ir.Binary:
    return binary(ir.BinOp.MAX, a, b)


def unary(op: ir.UnOp, a: ir.Expr) -> ir.Unary:
    return ir.Unary(op, a, a.type, span=a.span)


def select(cond: ir.Expr, then: ir.Expr, orelse: ir.Expr | float) -> ir.Select:
    """``then`` where ``cond`` holds, else ``orelse``; both are evaluated."""
    return ir.Select(cond, then, as_operand(orelse, then), then.type, span=cond.span)


def cast(e: ir.Expr, type: Scalar) -> ir.Cast:
    return ir.Cast(e, type, span=e.span)


def converted(e: ir.Expr, type: Scalar) -> ir.Expr:
    """``e`` itself if it has this type, else cast to it."""
    return e if e.type == type else cast(e, type)


def bits(e: ir.Expr, type: Scalar) -> ir.BitCast:
    """The same bits as another type of the same width."""
    return ir.BitCast(e, type, span=e.span)


@dataclass(frozen=True, slots=True)
class At:
    """Makes constants, reads and statements, whose place in the source is ``span``."""

    span: Span

    def const(self, value: float, type: Scalar) -> ir.Const:
        """A number, which must fit ``type``."""
        return ir.Const(type(value), type, span=self.span)

    def read(self, var: ir.Var) -> ir.VarRead:
        return ir.VarRead(var, span=self.span)

    def param(self, name: str, type: Scalar) -> ir.ParamRead:
        return ir.ParamRead(name, type, span=self.span)

    def extent(self, array: str, axis: int, type: Scalar = i64) -> ir.ShapeOf:
        return ir.ShapeOf(array, axis, type, span=self.span)

    def element(self, array: str, index: Iterable[ir.Expr], type: Scalar, component: int = 0) -> ir.Element:
        return ir.Element(array, tuple(index), component, type, span=self.span)

    def let(self, var: ir.Var, value: ir.Expr) -> ir.Let:
        return ir.Let(var, value, span=self.span)

    def assign(self, var: ir.Var, value: ir.Expr) -> ir.Assign:
        return ir.Assign(var, value, span=self.span)

    def load(self, var: ir.Var, place: ir.Place) -> ir.Load:
        return ir.Load(var, place, span=self.span)

    def store(self, place: ir.Place, value: ir.Expr) -> ir.Store:
        return ir.Store(place, value, span=self.span)

    def update(self, op: ir.AtomicOp, place: ir.Place, value: ir.Expr, old: ir.Var | None = None) -> ir.Atomic:
        """An atomic operation; ``old`` becomes the value before it."""
        return ir.Atomic(op, place, value, old, span=self.span)

    def exchange(self, place: ir.Place, value: ir.Expr, expected: ir.Expr | int, old: ir.Var) -> ir.Atomic:
        """An atomic store of ``value`` if the place has what is ``expected``."""
        return ir.Atomic(ir.AtomicOp.CAS, place, value, old, as_operand(expected, value), span=self.span)

    def fault(self, check: int, values: Iterable[ir.Expr]) -> ir.Fault:
        """Reports that the kernel's check with this number failed."""
        record, first = (self.param(name, u64) for name in FAULT_PARAMS)
        return ir.Fault(record, first + check, tuple(values), span=self.span)

    def block(self, stmts: Iterable[ir.Stmt] = ()) -> ir.Block:
        return ir.Block(tuple(stmts), span=self.span)

    def when(self, cond: ir.Expr, then: Iterable[ir.Stmt], orelse: Iterable[ir.Stmt] = ()) -> ir.If:
        return ir.If(cond, self.block(then), self.block(orelse), span=self.span)

    def loop(
        self, var: ir.Var, start: ir.Expr, stop: ir.Expr, body: Iterable[ir.Stmt], step: ir.Expr | int = 1
    ) -> ir.For:
        """A sequential loop; a ``step`` that is a number has the counter's type."""
        by = self.const(step, var.type) if isinstance(step, int) else step
        return ir.For(var, start, stop, by, self.block(body), span=self.span)

    def axis(self, var: ir.Var, start: ir.Expr | int, stop: ir.Expr, step: ir.Expr | int = 1) -> ir.Axis:
        """An axis of a parallel loop; numbers have the counter's type."""
        first, by = (self.const(e, var.type) if isinstance(e, int) else e for e in (start, step))
        return ir.Axis(var, first, stop, by, span=self.span)
