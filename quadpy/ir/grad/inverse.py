"""The iterations that access a given element: an index of an array solved for the variable of a loop."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, converted
from quadpy.ir.grad.indices import Indices, Linear, atom_of_var
from quadpy.ir.grad.maths import is_number
from quadpy.ir.index.polynomials import parts_of, poly
from quadpy.ir.uniform import is_launch_uniform
from quadpy.ir.variables import reads_of, set_in
from quadpy.ir.walk import children, map_children, walk

_MOST_STRIDE: Final = 256

Counter: TypeAlias = ir.Axis | ir.For
"""A loop whose variable counts: an axis of the parallel loop, or a loop inside."""


class Wrap(NamedTuple):
    """``%``, a minimum or a maximum with ``by``, the same in all iterations."""

    op: ir.BinOp
    by: ir.Expr


class Solved(NamedTuple):
    """Index number ``axis`` is ``wraps`` around ``factor`` times the variable of ``counter``, and ``rest``."""

    axis: int
    counter: Counter
    factor: int
    rest: Linear
    wraps: tuple[Wrap, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the solution needs no check."""
        return not self.wraps and abs(self.factor) == 1


class Inverse(NamedTuple):
    """How the iterations are found that access an element.

    First each of ``every`` takes all its values; then ``outer``, axes, are solved; then, inside the iteration, ``inner``.
    """

    every: tuple[Counter, ...]
    outer: tuple[Solved, ...]
    inner: tuple[Solved, ...]
    checked: tuple[int, ...]
    """The indices that must be compared with those of the element."""


class Inverter:
    """Solves indices in the body of ``loop``."""

    def __init__(self, loop: ir.ParallelFor, index: Scalar, twins: Mapping[str, str]) -> None:
        self.loop, self.index = loop, index
        self.indices = Indices(loop.body, wraps=True, twins=twins)
        for node in walk(loop.body):
            if isinstance(node, ir.For):
                self.indices.lets.pop(counted(node).var, None)
        self.axes = {axis.var: axis for axis in loop.axes}
        counts = {node.var for node in walk(loop) if isinstance(node, (ir.Axis, ir.For))}
        self.inside = counts.union(set_in(loop.body))
        self.uniform = reads_of(loop.body) - self.inside
        for node in walk(loop.body):
            if isinstance(node, ir.Let) and is_launch_uniform(node.value, self.uniform):
                self.uniform.add(node.var)

    def inverse(self, index: tuple[ir.Expr, ...], loops: Iterable[ir.For]) -> Inverse | None:
        """None if other values decide the index, or no formula solves it."""
        counters: dict[ir.Var, Counter] = {**self.axes, **{loop.var: loop for loop in loops}}
        forms = [self.form(e) for e in index]
        found = [(None, set()) if form is None else self.factors(form[0], counters) for form in forms]
        outer, inner, checked = dict[ir.Var, Solved](), dict[ir.Var, Solved](), set[int]()
        every: dict[ir.Var, Counter] = {}
        for axis in sorted(range(len(index)), key=lambda axis: len(found[axis][0] or ())):
            form, (factors, others) = forms[axis], found[axis]
            if form is None or factors is None:
                return None
            new = [var for var in factors if var not in outer and var not in inner and var not in every]
            var = next((var for var in new if var in self.axes), next(iter(new), None))
            if others and (var is None or var in self.axes or not others.isdisjoint(set_in(counters[var].body))):  # type: ignore[union-attr]
                return None
            if var is None:
                checked.add(axis)
                continue
            rest = form[0] - poly({(atom_of_var(var),): factors[var]})
            step = Solved(axis, counters[var], factors[var], rest, form[1])
            if abs(step.factor) != 1 and any(wrap.op is ir.BinOp.MOD for wrap in step.wraps):
                return None
            if var in self.axes:
                outer[var] = step
                for other in factors.keys() - outer.keys():
                    every[other] = counters[other]
                    checked |= {inner.pop(other).axis} if other in inner else set()
            elif len(factors) > 1 or not step.is_exact:
                return None
            else:
                inner[var] = step
            if not step.is_exact or var.type.bits != self.index.bits:
                checked.add(axis)
        axes: dict[ir.Var, Counter] = {var: axis for var, axis in self.axes.items() if var not in outer}
        every = axes | every
        bounds = (e for each in every.values() if isinstance(each, ir.For) for e in (each.start, each.stop, each.step))
        if any(self.spelled(e) is None for e in bounds):
            return None
        return Inverse(tuple(every.values()), tuple(outer.values()), tuple(inner.values()), tuple(sorted(checked)))

    def form(self, e: ir.Expr) -> tuple[Linear, tuple[Wrap, ...]] | None:
        """``e`` as a polynomial inside of wraps, the outermost first."""
        wraps: list[Wrap] = []
        while True:
            match e:
                case ir.VarRead(var=var) if var in self.indices.lets and var not in self.indices.assigned:
                    e = self.indices.lets[var]
                case ir.Cast(operand=operand, type=type) if (
                    operand.type.is_signed and type.is_signed and not type.is_float
                ):
                    e = operand
                case ir.Binary(op=ir.BinOp.MIN | ir.BinOp.MAX | ir.BinOp.MOD as op, lhs=lhs, rhs=rhs) if (
                    e.type.is_signed
                ):
                    by = self.spelled(rhs)
                    if by is None and op is not ir.BinOp.MOD:
                        lhs, by = rhs, self.spelled(lhs)
                    if by is None or by.type.bits > self.index.bits:
                        return None
                    wraps.append(Wrap(op, by))
                    e = lhs
                case _:
                    break
        found = self.indices.of(e)
        if found is None or (len(wraps) > 1 and any(wrap.op is ir.BinOp.MOD for wrap in wraps)):
            return None
        return found, tuple(wraps)

    def factors(self, form: Linear, counters: Container[ir.Var]) -> tuple[dict[ir.Var, int] | None, set[ir.Var]]:
        """The counters in ``form``, None if it is not linear in them; and the variables that differ between iterations."""
        found: dict[ir.Var, int] = {}
        others: set[ir.Var] = set()
        for product, factor in parts_of(form):
            for atom in product:
                e = self.indices.atoms[atom]
                if isinstance(e, ir.VarRead) and e.var in counters:
                    if len(product) > 1 or abs(factor) > _MOST_STRIDE:
                        return None, others
                    found[e.var] = factor
                elif self.spelled(e) is None:
                    assert isinstance(e, ir.VarRead)
                    others.add(e.var)
        return found, others

    def spelled(self, e: ir.Expr) -> ir.Expr | None:
        """``e``, which is the same in all iterations, without names of the iteration; None if it is not the same."""
        match e:
            case ir.VarRead(var=var) if var in self.inside:
                return self.spelled(self.indices.lets[var]) if var in self.uniform else None
            case ir.ThreadIndex() | ir.BlockIndex():
                return None
        parts = [self.spelled(child) for child in children(e)]  # type: ignore[arg-type]  # of an expression: expressions
        if None in parts:
            return None
        given = iter(parts)
        return map_children(e, lambda _: next(given))  # type: ignore[arg-type,return-value]  # none is None

    def expr(self, form: Linear, at: At, new: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
        """``form`` in the type of indices, with what is ``new`` for counters."""
        total: ir.Expr | None = None
        for product, factor in parts_of(form):
            part: ir.Expr | None = None
            for atom in product:
                e = self.indices.atoms[atom]
                is_counter = isinstance(e, ir.VarRead) and e.var in new
                e = converted(new[e.var] if is_counter else self.spelled(e) or e, self.index)  # type: ignore[union-attr]
                part = e if part is None else part * e
            part = at.const(factor, self.index) if part is None else part if factor == 1 else part * factor
            total = part if total is None else total + part
        return at.const(0, self.index) if total is None else total

    def is_apart(self, a: ir.Element, b: ir.Element) -> bool:
        """Whether no iteration touches at ``a`` what any touches at ``b``: an index that is fixed differs by a constant."""
        if a.component != b.component:
            return True
        return any(
            isinstance(by := j - i, int) and by != 0 and self.factors(i, ()) == ({}, set())
            for i, j in self.indices.pairs(a, b)
        )


def counted(loop: ir.For) -> ir.For:
    """``loop``; if it is one that counts its turns down, the same in the other order."""
    stop, step, span = loop.stop, loop.step, loop.span
    if loop.body.stmts and isinstance(first := loop.body.stmts[0], ir.Let):
        one = ir.Const(1, loop.var.type, span=span)
        if first.value == stop - one - ir.VarRead(loop.var, span=span) and is_number(loop.start, 0) and step == one:
            return replace(loop, var=first.var, body=replace(loop.body, stmts=loop.body.stmts[1:]))
    return loop
