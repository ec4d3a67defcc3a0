"""Forward mode: a kernel that computes tangents beside its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quadpy.core.dtypes import Scalar
from quadpy.core.source import Span
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.activity import Activity
from quadpy.ir.grad.exact import Memory
from quadpy.ir.grad.extremes import EXTREMES, contested, extremes_in
from quadpy.ir.grad.inline import inline_called
from quadpy.ir.grad.maths import Functions, Guard, Library, Maths, Names, both, cast, first_of, zero
from quadpy.ir.grad.plain import SUMS, plain_updates
from quadpy.ir.grad.rules import Changes, changes_of
from quadpy.ir.grad.winner_tangents import Winners
from quadpy.ir.types import Array
from quadpy.ir.walk import children, map_children


def tangent(kernel: ir.Kernel, duals: Mapping[str, str], library: Library, directions: int | None = None) -> ir.Kernel:
    """``kernel`` with tangents, beside what it computes.

    ``duals`` maps arrays and scalar parameters to the parameters that hold their tangents, which the kernel already has.
    The tangents of its results, where these are floats, are results after them.  With several ``directions``, arrays of
    tangents have them as their first axis.

    Raises:
        KernelTypeError: at a line whose derivative does not exist or would be lost.
    """
    names = Names()
    kernel = replace(kernel, body=plain_updates(inline_called(kernel.body, kernel, names), kernel, names, SUMS))
    return Tangents(kernel, duals, Functions(kernel, library), names, directions).run()


class Tangents:
    """Writes a kernel with tangents.

    ``variables`` maps each active variable to the variables of its tangents, one for each direction; ``slots`` does the
    same for slots, and ``arrays`` maps an array to that of its tangents.  ``claims`` has the tangents of the values of
    atomic minima and maxima, by ``id``.
    """

    def __init__(
        self, kernel: ir.Kernel, duals: Mapping[str, str], functions: Functions, names: Names, directions: int | None
    ) -> None:
        self.kernel, self.functions, self.names, self.directions = kernel, functions, names, directions
        self.active = Activity(kernel, duals)
        self.active.check()
        self.ways = range(directions or 1)
        self.arrays = {**duals, **{name: f"{name}$dual" for name in self.active.shared}}
        found = sorted(self.active.variables, key=lambda var: var.name)
        self.variables = {var: [names.fresh(var.name, var.type) for _ in self.ways] for var in found}
        self.types: dict[str, Array] = kernel.array_types
        self.slots: dict[int, int] = {}  # of the first direction; the others follow
        self.claims: dict[int, Sequence[ir.Expr]] = {}
        self.memory = Memory(kernel)
        self.crossing = list(kernel.crossing)
        for number, var in enumerate(kernel.crossing):
            if var in self.variables:
                self.slots[number] = len(self.crossing)
                self.crossing += self.variables[var]

    def run(self) -> ir.Kernel:
        body = self.block(self.kernel.body)
        results = self.kernel.results
        kernel, more = self.memory.added_to(self.kernel), (t for t in results if t.is_float for _ in self.ways)
        return replace(
            kernel, body=body, results=(*results, *more),
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
                value, ds = self.value(e, out)
                out.append(replace(stmt, value=value))
                out += [replace(stmt, var=v, value=d) for v, d in zip(self.variables[var], ds, strict=True)]
            case ir.AssignOne(options=options) if options[0].var in self.variables:
                value, ds = self.value(options[0].value, out)
                out.append(replace(stmt, options=tuple(replace(each, value=value) for each in options)))
                for k, d in enumerate(ds):
                    tangents = (replace(each, var=self.variables[each.var][k], value=d) for each in options)
                    out.append(replace(stmt, options=tuple(tangents)))
            case ir.Load(var=var, place=place) if var in self.variables:
                out.append(stmt)
                for k, tangent in enumerate(self.variables[var]):
                    out += self.bound(tangent, self.dual_place(place, k), stmt.span)
            case ir.Store(place=place, value=e) if self.active.has_place(place):
                value, ds = self.value(e, out)
                out.append(replace(stmt, value=value))
                for k, d in enumerate(ds):
                    dual = self.dual_place(place, k)
                    out.append(ir.Store(dual, cast(d, dual.type), span=stmt.span))
            case ir.Atomic(place=place) if self.active.has_place(place):
                self.atomic(stmt, out)
            case ir.CallMany(results=(sine, cosine)) if sine in self.variables:
                self.sine_pair(stmt, sine, cosine, out)
            case ir.Return(values=values):
                pairs = [self.value(e, out) for e in values]
                more = [d for e, (_, ds) in zip(values, pairs, strict=True) if e.type.is_float for d in ds]
                out.append(replace(stmt, values=(*(value for value, _ in pairs), *more)))
            case ir.ParallelFor(shared=shared):
                duals = [self.shared(array) for array in shared if array.name in self.arrays]
                self.types |= {array.name: array.type for array in shared}
                made = replace(stmt, body=self.block(stmt.body), shared=(*shared, *duals))
                out.append(replace(made, allowed=(*stmt.allowed, *self.allowed(stmt))))
                if extremes_in(stmt.body, self.active):
                    self.claims = {}
                    again = self.block(stmt.body)
                    arrays = contested(self.kernel, stmt, self.active)
                    out += Winners(self, stmt, again, self.claims, arrays).stmts()
            case _:
                out.append(map_children(stmt, self.child))

    def child(self, node: ir.Node) -> ir.Node:
        return self.block(node) if isinstance(node, ir.Block) else node

    def shared(self, array: ir.SharedArray) -> ir.SharedArray:
        """Shared memory for the tangents of what ``array`` holds."""
        type = array.type
        if self.directions is not None and type.shape is not None:
            type = replace(type, ndim=type.ndim + 1, shape=(self.directions, *type.shape))
        return replace(array, name=self.arrays[array.name], type=type)

    def allowed(self, loop: ir.ParallelFor) -> list[tuple[str | ir.Var, str]]:
        """Where iterations may race on a value, they may on its tangents."""
        found: list[tuple[str | ir.Var, str]] = []
        for what, reason in loop.allowed:
            if isinstance(what, str):
                found += [(self.arrays[what], reason)] if what in self.arrays else []
            else:
                found += [(twin, reason) for twin in self.variables.get(what, ())]
        return found

    def bound(self, var: ir.Var, dual: ir.Place, span: Span) -> list[ir.Stmt]:
        """Statements that bind ``var`` to what ``dual`` holds, in its own type."""
        if dual.type == var.type:
            return [ir.Load(var, dual, span=span)]
        held = self.names.fresh(var.name, dual.type)
        return [ir.Load(held, dual, span=span), ir.Let(var, cast(ir.VarRead(held, span=span), var.type), span=span)]

    def atomic(self, stmt: ir.Atomic, out: list[ir.Stmt]) -> None:
        if stmt.op in EXTREMES and stmt.result is None:
            value, ds = self.value(stmt.value, out)
            out.append(replace(stmt, value=value))
            self.claims[id(out[-1])] = ds
            return
        if stmt.op not in (ir.AtomicOp.ADD, ir.AtomicOp.SUB):
            raise KernelTypeError(
                f"quadpy knows no derivative of an atomic {stmt.op.value} of an element that other iterations may update",
                stmt.span,
            )
        value, ds = self.value(stmt.value, out)
        out.append(replace(stmt, value=value))
        if stmt.result is not None:
            raise KernelTypeError(
                "the derivative of the old value that an atomic operation returns is not known: iterations come in any order",
                stmt.span, hint="read the element in another loop",
            )  # fmt: skip
        for k, d in enumerate(ds if self.active.has(stmt.value) else ()):
            dual = self.dual_place(stmt.place, k)
            out.append(replace(stmt, place=dual, value=cast(d, dual.type)))

    def sine_pair(self, stmt: ir.CallMany, sine: ir.Var, cosine: ir.Var, out: list[ir.Stmt]) -> None:
        value, ds = self.value(stmt.args[0], out)
        s, c = ir.VarRead(sine, span=stmt.span), ir.VarRead(cosine, span=stmt.span)
        out.append(replace(stmt, args=(value,)))
        for k, d in enumerate(ds):
            m = self.maths(d)
            out.append(ir.Let(self.variables[sine][k], m.mul(d, c), span=stmt.span))
            out.append(ir.Let(self.variables[cosine][k], m.neg(m.mul(d, s)), span=stmt.span))

    def dual_place(self, place: ir.Place, way: int) -> ir.Place:
        if isinstance(place, ir.Slot):
            return replace(place, number=self.slots[place.number] + way)
        name, index = self.arrays[place.array], place.index
        if self.directions is not None:
            index = (ir.Const(way, self.kernel.index, span=place.span), *index)
        return replace(place, array=name, index=index, type=self.scalar_at(name, place))

    def scalar_at(self, name: str, place: ir.Element) -> Scalar:
        layout = self.types[name].layout if name in self.types else self.types[place.array].layout
        return layout.at(place.component)[0].scalar

    # --------------------------------------------------------------- expressions

    def maths(self, e: ir.Expr) -> Maths:
        return Maths(self.functions, e.type, e.span)

    def value(self, e: ir.Expr, out: list[ir.Stmt]) -> tuple[ir.Expr, Sequence[ir.Expr]]:
        """``e`` and its tangents, after statements in ``out``."""
        match e:
            case _ if not self.active.has(e):
                if isinstance(e, Guard):
                    e = e.plain()
                return e, [zero(e.type, e.span)] * len(self.ways)
            case ir.VarRead(var=var):
                return e, [ir.VarRead(each, span=e.span) for each in self.variables[var]]
            case ir.ParamRead(name=name) if (dual := self.arrays[name]) in self.types:
                found = []
                for k in self.ways:
                    place = first_of(self.types, dual, name, self.kernel.index, e.span, k)
                    found.append(self.names.fresh("dual", e.type))
                    out += self.bound(found[-1], place, e.span)
                return e, [ir.VarRead(var, span=e.span) for var in found]
            case ir.ParamRead(name=name):
                return e, [replace(e, name=self.arrays[name])] * len(self.ways)
        operands: list[ir.Expr] = list(children(e))  # type: ignore[arg-type]  # of an expression: expressions
        pairs = [self.value(child, out) for child in operands]
        given = iter(value for value, _ in pairs)
        made = map_children(e, lambda _: next(given))
        result = self.let(made.plain() if isinstance(made, Guard) else made, out)
        changes = changes_of(e, [value for value, _ in pairs], result, self.maths(e))
        active = [self.active.has(child) for child in operands]
        if isinstance(e, Guard):
            return result, [self.let(self.guarded(e, pairs[2], k, out), out) for k in self.ways]
        return result, [
            self.let(self.total(e, [ds[k] if has else None for (_, ds), has in zip(pairs, active, strict=True)], changes), out)
            for k in self.ways
        ]  # fmt: skip

    def total(self, e: ir.Expr, ds: Sequence[ir.Expr | None], changes: Changes) -> ir.Expr:
        """The tangent of ``e`` from those of its operands."""
        m = self.maths(e)
        total: ir.Expr = m.number(0)
        for d, change in zip(ds, changes, strict=True):
            if d is not None and change is not None:
                d = cast(d, e.type)
                part = change(d)
                if isinstance(e, ir.Call) and len(ds) > 1:  # pow(0, y) has an infinite slope by x, and one by y
                    part = m.select(m.compare(ir.CmpOp.EQ, d, m.number(0)), m.number(0), part)
                total = m.add(total, part)
        return total

    def guarded(self, e: Guard, given: tuple[ir.Expr, Sequence[ir.Expr]], way: int, out: list[ir.Stmt]) -> ir.Expr:
        """The tangent of what an adjoint gives: 0 only where the adjoint and its own tangent are."""
        cond = e.cond
        assert isinstance(cond, ir.Compare)
        if self.active.has(cond.lhs):
            tangent = self.value(cond.lhs, out)[1][way]
            cond = both(cond, replace(cond, lhs=tangent))
        return self.maths(e).select(cond, e.then, given[1][way])

    def let(self, e: ir.Expr, out: list[ir.Stmt]) -> ir.Expr:
        if isinstance(e, ir.Const):
            return e
        var = self.names.fresh("part", e.type)
        out.append(ir.Let(var, e, span=e.span))
        return ir.VarRead(var, span=e.span)
