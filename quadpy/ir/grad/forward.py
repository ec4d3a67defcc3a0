"""Forward mode: a kernel that computes tangents beside its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from quadpy.core.dtypes import Scalar
from quadpy.core.source import Span
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.activity import Activity
from quadpy.ir.grad.exact import Memory
from quadpy.ir.grad.extremes import EXTREMES, contested, extremes_in
from quadpy.ir.grad.inline import inline_called
from quadpy.ir.grad.maths import Functions, Library, Maths, Names, cast, zero
from quadpy.ir.grad.plain import SUMS, plain_updates
from quadpy.ir.grad.rules import changes_of
from quadpy.ir.grad.winner_tangents import Winners
from quadpy.ir.types import Array
from quadpy.ir.walk import children, map_children


def tangent(kernel: ir.Kernel, duals: Mapping[str, str], library: Library) -> ir.Kernel:
    """``kernel`` with tangents, beside what it computes.

    ``duals`` maps arrays and scalar parameters to the parameters that hold their tangents, which the kernel already has.
    The tangents of its results, where these are floats, are results after them.

    Raises:
        KernelTypeError: at a line whose derivative does not exist or would be lost.
    """
    names = Names()
    kernel = replace(kernel, body=plain_updates(inline_called(kernel.body, kernel, names), kernel, names, SUMS))
    return _Tangents(kernel, duals, Functions(kernel, library), names).run()


class _Tangents:
    """``variables`` maps each active variable to the variable of its tangent; ``arrays`` does the same for arrays.

    ``claims`` has the tangents of the values of atomic minima and maxima, by ``id``.
    """

    def __init__(self, kernel: ir.Kernel, duals: Mapping[str, str], functions: Functions, names: Names) -> None:
        self.kernel, self.functions, self.names = kernel, functions, names
        self.active = Activity(kernel, duals)
        self.active.check()
        self.arrays = {**duals, **{name: f"{name}$dual" for name in self.active.shared}}
        found = sorted(self.active.variables, key=lambda var: var.name)
        self.variables = {var: names.fresh(var.name, var.type) for var in found}
        self.types: dict[str, Array] = kernel.array_types
        self.slots: dict[int, int] = {}
        self.claims: dict[int, ir.Expr] = {}
        self.memory = Memory(kernel)
        self.crossing = list(kernel.crossing)
        for number, var in enumerate(kernel.crossing):
            if var in self.variables:
                self.slots[number] = len(self.crossing)
                self.crossing.append(self.variables[var])

    def run(self) -> ir.Kernel:
        body = self.block(self.kernel.body)
        results = self.kernel.results
        kernel = self.memory.added_to(self.kernel)
        return replace(
            kernel, body=body, results=(*results, *(t for t in results if t.is_float)),
            functions=tuple(self.functions.all.values()), crossing=tuple(self.crossing), slots=len(self.crossing),
        )  # fmt: skip

    def block(self, block: ir.Block) -> ir.Block:
        out: list[ir.Stmt] = []
        for stmt in block.stmts:
            self.stmt(stmt, out)
        return ir.Block(tuple(out), span=block.span)

    # ---------------------------------------------------------------- statements

    def stmt(self, stmt: ir.Stmt, out: list[ir.Stmt]) -> None:
        match stmt:
            case ir.Let(var=var, value=e) | ir.Assign(var=var, value=e) if var in self.variables:
                value, d = self.value(e, out)
                out.append(replace(stmt, value=value))
                out.append(replace(stmt, var=self.variables[var], value=self.or_zero(d, e)))
            case ir.AssignOne(options=options) if options[0].var in self.variables:
                value, d = self.value(options[0].value, out)
                given = self.or_zero(d, value)
                changed = (replace(each, value=value) for each in options)
                tangents = (replace(each, var=self.variables[each.var], value=given) for each in options)
                out.append(replace(stmt, options=tuple(changed)))
                out.append(replace(stmt, options=tuple(tangents)))
            case ir.Load(var=var, place=place) if var in self.variables:
                dual = self.dual_place(place)
                out.append(stmt)
                out += self.bound(self.variables[var], dual, stmt.span)
            case ir.Store(place=place, value=e) if self.active.has_place(place):
                value, d = self.value(e, out)
                dual = self.dual_place(place)
                out.append(replace(stmt, value=value))
                out.append(ir.Store(dual, cast(self.or_zero(d, e), dual.type), span=stmt.span))
            case ir.Atomic(place=place) if self.active.has_place(place):
                self.atomic(stmt, out)
            case ir.CallMany(results=(sine, cosine)) if sine in self.variables:
                self.sine_pair(stmt, sine, cosine, out)
            case ir.Return(values=values):
                pairs = [self.value(e, out) for e in values]
                more = [self.or_zero(d, e) for e, (_, d) in zip(values, pairs, strict=True) if e.type.is_float]
                out.append(replace(stmt, values=(*(value for value, _ in pairs), *more)))
            case ir.ParallelFor(shared=shared):
                dual_arrays = (
                    replace(array, name=self.arrays[array.name]) for array in shared if array.name in self.arrays
                )
                self.types |= {array.name: array.type for array in shared}
                made = replace(stmt, body=self.block(stmt.body), shared=(*shared, *dual_arrays))
                out.append(replace(made, allowed=(*stmt.allowed, *self.allowed(stmt))))
                if extremes_in(stmt.body, self.active):
                    self.claims = {}
                    again = self.block(stmt.body)
                    out += Winners(self, stmt, again, self.claims, contested(self.kernel, stmt, self.active)).stmts()
            case _:
                out.append(map_children(stmt, self.child))

    def child(self, node: ir.Node) -> ir.Node:
        return self.block(node) if isinstance(node, ir.Block) else node

    def allowed(self, loop: ir.ParallelFor) -> list[tuple[str | ir.Var, str]]:
        """Where iterations may race on a value, they may on its tangent."""
        found: list[tuple[str | ir.Var, str]] = []
        for what, reason in loop.allowed:
            twin = self.arrays.get(what) if isinstance(what, str) else self.variables.get(what)
            found += [(twin, reason)] if twin is not None else []
        return found

    def bound(self, var: ir.Var, dual: ir.Place, span: Span) -> list[ir.Stmt]:
        """Statements that bind ``var`` to what ``dual`` holds, in its own type."""
        if dual.type == var.type:
            return [ir.Load(var, dual, span=span)]
        held = self.names.fresh(var.name, dual.type)
        return [ir.Load(held, dual, span=span), ir.Let(var, cast(ir.VarRead(held, span=span), var.type), span=span)]

    def atomic(self, stmt: ir.Atomic, out: list[ir.Stmt]) -> None:
        if stmt.op in EXTREMES and stmt.result is None:
            value, d = self.value(stmt.value, out)
            out.append(replace(stmt, value=value))
            self.claims[id(out[-1])] = self.or_zero(d, stmt.value)
            return
        if stmt.op not in (ir.AtomicOp.ADD, ir.AtomicOp.SUB):
            raise KernelTypeError(
                f"quadpy knows no derivative of an atomic {stmt.op.value} of an element that other iterations may update",
                stmt.span,
            )
        value, d = self.value(stmt.value, out)
        out.append(replace(stmt, value=value))
        if d is None and stmt.result is None:
            return
        dual = self.dual_place(stmt.place)
        change = cast(self.or_zero(d, stmt.value), dual.type)
        if stmt.result is None:
            out.append(replace(stmt, place=dual, value=change))
            return
        raise KernelTypeError(
            "the derivative of the old value that an atomic operation returns is not known: iterations come in any order",
            stmt.span, hint="read the element in another loop",
        )  # fmt: skip

    def sine_pair(self, stmt: ir.CallMany, sine: ir.Var, cosine: ir.Var, out: list[ir.Stmt]) -> None:
        value, d = self.value(stmt.args[0], out)
        assert d is not None
        m, s, c = self.maths(d), ir.VarRead(sine, span=stmt.span), ir.VarRead(cosine, span=stmt.span)
        out.append(replace(stmt, args=(value,)))
        out.append(ir.Let(self.variables[sine], m.mul(d, c), span=stmt.span))
        out.append(ir.Let(self.variables[cosine], m.neg(m.mul(d, s)), span=stmt.span))

    def dual_place(self, place: ir.Place) -> ir.Place:
        if isinstance(place, ir.Slot):
            return replace(place, number=self.slots[place.number])
        name = self.arrays[place.array]
        return replace(place, array=name, type=self.scalar_at(name, place))

    def scalar_at(self, name: str, place: ir.Element) -> Scalar:
        layout = self.types[name].layout if name in self.types else self.types[place.array].layout
        return layout.at(place.component)[0].scalar

    # --------------------------------------------------------------- expressions

    def maths(self, e: ir.Expr) -> Maths:
        return Maths(self.functions, e.type, e.span)

    def or_zero(self, d: ir.Expr | None, e: ir.Expr) -> ir.Expr:
        return zero(e.type, e.span) if d is None else d

    def value(self, e: ir.Expr, out: list[ir.Stmt]) -> tuple[ir.Expr, ir.Expr | None]:
        """``e`` and its tangent, after statements in ``out``; None if it has none."""
        match e:
            case _ if not self.active.has(e):
                return e, None
            case ir.VarRead(var=var):
                return e, ir.VarRead(self.variables[var], span=e.span)
            case ir.ParamRead(name=name):
                return e, replace(e, name=self.arrays[name])
        pairs = [self.value(child, out) for child in children(e)]  # type: ignore[arg-type]  # of an expression: expressions
        operands = iter(value for value, _ in pairs)
        result = self.let(map_children(e, lambda _: next(operands)), out)
        m = self.maths(e)
        changes = changes_of(e, [value for value, _ in pairs], result, m)
        total: ir.Expr = m.number(0)
        for (_, d), change in zip(pairs, changes, strict=True):
            if d is not None and change is not None:
                d = cast(d, e.type)
                part = change(d)
                if isinstance(e, ir.Call) and len(pairs) > 1:  # pow(0, y) has an infinite slope by x, and one by y
                    part = m.select(m.compare(ir.CmpOp.EQ, d, m.number(0)), m.number(0), part)
                total = m.add(total, part)
        return result, self.let(total, out)

    def let(self, e: ir.Expr, out: list[ir.Stmt]) -> ir.Expr:
        var = self.names.fresh("part", e.type)
        out.append(ir.Let(var, e, span=e.span))
        return ir.VarRead(var, span=e.span)
