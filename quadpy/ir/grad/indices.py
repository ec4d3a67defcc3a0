"""Indices of arrays as polynomials in loop variables, arguments and extents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.index.polynomials import Poly, atom_poly
from quadpy.ir.variables import assigned_in
from quadpy.ir.walk import children, walk

AnyLoop: TypeAlias = ir.For | ir.While
Linear: TypeAlias = "int | Poly[str]"


class Access(NamedTuple):
    """``stmt``, its place in the order of the text, the loops around it, and the parallel loop that it belongs to."""

    stmt: ir.Load | ir.Store | ir.Atomic
    order: int
    loops: tuple[AnyLoop, ...]
    task: int

    @property
    def place(self) -> ir.Element:
        assert isinstance(self.stmt.place, ir.Element)
        return self.stmt.place

    @property
    def value(self) -> ir.Expr:
        """What an update adds."""
        assert isinstance(self.stmt, ir.Atomic)
        return self.stmt.value


def accesses_in(body: ir.Block) -> Iterator[Access]:
    """The accesses to arrays, in the order of the text."""
    order = tasks = 0

    def visit(node: ir.Node, loops: tuple[AnyLoop, ...], task: int) -> Iterator[Access]:
        nonlocal order, tasks
        order += 1
        if isinstance(node, ir.ParallelFor):
            tasks += 1
            task = tasks
        if isinstance(node, (ir.For, ir.While)):
            loops = (*loops, node)
        if isinstance(node, (ir.Load, ir.Store, ir.Atomic)) and isinstance(node.place, ir.Element):
            yield Access(node, order, loops, task)
        for child in children(node):
            if isinstance(child, ir.Block) or isinstance(node, ir.Block):
                yield from visit(child, loops, task)

    return visit(body, (), 0)


def atom_of_var(var: ir.Var) -> str:
    return f"v {var.name}"


class Indices:
    """What a variable stands for that is assigned several times is not known.

    ``wraps``: also those equal modulo the range of their type, as where loops count unsigned.  ``atoms`` has the expression
    of each atom.  ``twins`` are arrays with the shape of another one.
    """

    def __init__(self, body: ir.Block, *, wraps: bool = False, twins: Mapping[str, str] | None = None) -> None:
        self.assigned = assigned_in(body)
        self.lets = {node.var: node.value for node in walk(body) if isinstance(node, ir.Let)}
        self.wraps, self.twins = wraps, twins or {}
        self.atoms: dict[str, ir.Expr] = {}

    def of(self, e: ir.Expr) -> Linear | None:
        match e:
            case ir.Const(value=value):
                return int(value)
            case ir.VarRead(var=var) if var in self.assigned:
                return None
            case ir.VarRead(var=var):
                found = self.of(self.lets[var]) if var in self.lets else None
                return self._atom(atom_of_var(var), e) if found is None else found
            case ir.ParamRead(name=name):
                return self._atom(f"p {name}", e)
            case ir.ShapeOf(array=name, axis=axis):
                return self._atom(f"s {self.twins.get(name, name)} {axis}", e)
            case ir.Cast(operand=operand, type=type) if self._keeps(operand.type, type):
                return self.of(operand)
            case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB | ir.BinOp.MUL as op, lhs=lhs, rhs=rhs) if (
                e.type.is_signed or self.wraps
            ):
                a, b = self.of(lhs), self.of(rhs)
                if a is None or b is None:
                    return None
                return a + b if op is ir.BinOp.ADD else a - b if op is ir.BinOp.SUB else a * b
            case _:
                return None

    def _atom(self, name: str, e: ir.Expr) -> Poly[str]:
        self.atoms[name] = e
        return atom_poly(name)

    def _keeps(self, operand: Scalar, type: Scalar) -> bool:
        """Whether a conversion keeps the value."""
        if operand.is_float or type.is_float or type.bits < 32 or operand.bits == 1:
            return False
        return (type.is_signed and operand.is_signed) or (self.wraps and operand.bits == type.bits)

    def pairs(self, a: ir.Element, b: ir.Element) -> Iterator[tuple[Linear, Linear]]:
        for i, j in zip(a.index, b.index, strict=True):
            some, other = self.of(i), self.of(j)
            if some is not None and other is not None:
                yield some, other

    def differ(self, a: ir.Element, b: ir.Element) -> bool:
        """Whether the elements certainly differ, because an index differs by a constant."""
        return any(isinstance(by := i - j, int) and by != 0 for i, j in self.pairs(a, b))
