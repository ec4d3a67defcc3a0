"""Reverse mode: the kernel that takes the adjoints of what a kernel wrote to those of what it read.

It runs when the kernel has run.  A *version* is a variable that is set once on each path; every value of the kernel becomes one, so
that it is there when control comes back.  A value is read from memory again, or computed again from such values;
``keep`` refuses what was overwritten in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from quadpy.core.source import Span
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.extremes import EXTREMES, WHY, number_in
from quadpy.ir.grad.forward import Tangents
from quadpy.ir.grad.held import Holding
from quadpy.ir.grad.inline import inline_called
from quadpy.ir.grad.keep import check_kept
from quadpy.ir.grad.liveness import live_part
from quadpy.ir.grad.loops import Loop
from quadpy.ir.grad.maths import Functions, Library, Names, cast, first_of, zero
from quadpy.ir.grad.plain import SUMS, plain_updates
from quadpy.ir.grad.rules import library_name
from quadpy.ir.grad.structured import structured
from quadpy.ir.grad.sums import summed
from quadpy.ir.grad.tidy import tidy
from quadpy.ir.grad.values import Env, Step, Values
from quadpy.ir.grad.winners import Extremes
from quadpy.ir.touches import changed_in, name_of
from quadpy.ir.variables import assigned_in

RESULT = "$result"
"""With the number of a result: the key of the parameter that holds its adjoint."""


def adjoint(
    kernel: ir.Kernel, grads: Mapping[str, str], library: Library, duals: Mapping[str, str] | None = None,
    directions: int | None = None, *, from_before: bool = False,
) -> ir.Kernel:  # fmt: skip
    """The backward kernel of ``kernel``.

    ``grads`` maps arrays to those that hold their adjoints, scalar parameters to arrays of one element that get theirs, and
    ``$result0``, … to the scalar parameters, or the arrays of one element, with the adjoints of the kernel's results.  All of them are parameters that the kernel
    already has.  The adjoint of an array that the kernel overwrote is 0 afterwards; other adjoints grow.
    With ``duals``, of arrays and of their adjoints, and ``directions`` as for ``tangent``, it also computes tangents of the
    adjoints: derivatives of second order.

    It runs on what the kernel leaves in memory; with ``from_before``, on what was there before the kernel, and leaves that.

    Raises:
        KernelTypeError: at a line whose adjoint does not exist, or needs a value that is lost.
    """
    names = Names()
    kept = () if from_before else (*SUMS, *EXTREMES)
    plain = plain_updates(inline_called(kernel.body, kernel, names), kernel, names, kept)
    original = kernel = replace(kernel, body=plain)
    holding = Holding(kernel, names) if from_before else None
    if holding is not None:
        kernel = holding.kernel
    kernel = replace(kernel, body=structured(kernel.body, names))
    reverse = Reverse(kernel, grads, Functions(kernel, library), names)
    made = reverse.live()
    if deep := reverse.repeated_in(made):
        reverse = Reverse(kernel, grads, Functions(kernel, library), names, deep)
        made = reverse.live()
    check_kept(original, kernel, made, reverse, holding)
    twins = {name: array for array, name in grads.items()}
    if duals:
        made = Tangents(made, duals, reverse.functions, names, directions).run()
        made = live_part(replace(made, body=tidy(made.body)))
        twins |= {duals[name]: array for name, array in twins.items() if name in duals}
    return summed(made, twins, names, reverse.memory)


class Reverse(Extremes, Values):
    """Writes the statements of the backward kernel."""

    def live(self) -> ir.Kernel:
        """The backward kernel, without what nothing needs."""
        made = self.kernel_of()
        return live_part(replace(made, body=tidy(made.body)))

    def kernel_of(self) -> ir.Kernel:
        out: list[ir.Stmt] = []
        span = self.kernel.span
        with self.adjoints.around() as owned:
            for param in self.kernel.params:
                if isinstance(param, ir.ScalarParam) and param.type.is_float and param.name in self.grads:
                    given = ir.ParamRead(param.name, param.type, span=span)
                    self.parameters[param.name] = self.version(given, out, active=True)
            tape = self.recorded(self.kernel.body, {}, out)
            for step in reversed(tape):
                step(out)
            self.give_parameters(out)
            zeros = self.adjoints.zeros(owned, span)
        body = ir.Block((*zeros, *out), span=span)
        return replace(
            self.kernel, body=body, results=(), functions=tuple(self.functions.all.values()),
            crossing=tuple(self.crossing), slots=len(self.crossing),
        )  # fmt: skip

    def give_parameters(self, out: list[ir.Stmt]) -> None:
        for name, version in self.parameters.items():
            if (d := self.adjoints.of(version)) is not None:
                place = first_of(self.types, self.grads[name], name, self.kernel.index, d.span)
                out.append(ir.Atomic(ir.AtomicOp.ADD, place, cast(d, place.type), in_launch=True, span=d.span))

    # ------------------------------------------------------------------- blocks

    def stmt(self, stmt: ir.Stmt, env: Env, out: list[ir.Stmt]) -> None:
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(var=var, value=value):
                env[var] = self.named(self.value(value, env, out), out)
            case ir.Load():
                self.load(stmt, env, out)
            case ir.Store(place=ir.Slot()) | ir.Atomic(op=ir.AtomicOp.EXCHANGE | ir.AtomicOp.CAS, place=ir.Slot()):
                raise KernelTypeError(
                    "quadpy knows no adjoint of a parallel loop that sets a variable from outside: its iterations come in any order",
                    stmt.span, hint="add to the variable, or store into an array",
                )  # fmt: skip
            case ir.Store(place=place):
                if self.tape is not None and self.active.has_place(place):
                    self.store(stmt, env, out)
            case ir.Atomic():
                self.atomic(stmt, env, out)
            case ir.CallMany():
                self.call_many(stmt, env, out)
            case ir.If():
                self.branch(stmt, env, out)
            case ir.For() | ir.While():
                loop = Loop(self, stmt, env, out)
                if self.tape is not None and loop.is_active:
                    self.tape.append(loop.back)
            case ir.ParallelFor():
                self.parallel(stmt, env, out)
            case ir.Sections():
                self.sections(stmt, env, out)
            case ir.Return(values=values):
                self.returned(stmt, [self.value(value, env, out) for value in values])
            case _:
                raise AssertionError(f"no rule for {type(stmt).__name__}")

    def branch(self, stmt: ir.If, env: Env, out: list[ir.Stmt]) -> None:
        """What the sides assign meets in new variables, which both set."""
        span, cond = stmt.span, self.named(self.value(stmt.cond, env, out), out)
        kept, self.kept = self.kept, self.kept or self.tape is not None
        sides: list[tuple[Env, list[ir.Stmt], list[Step]]] = []
        for side in (stmt.then, stmt.orelse):
            inner, stmts, tape = dict(env), list[ir.Stmt](), list[Step]()
            if self.tape is not None:
                tape = self.recorded(side, inner, stmts)
            else:
                self.block(side, inner, stmts)
            sides.append((inner, stmts, tape))
        self.kept = kept
        met: dict[ir.Var, tuple[ir.Expr, ir.Expr]] = {}
        for var in sorted(assigned_in(stmt.then, stmt.orelse), key=lambda v: v.name):
            then, orelse = (inner.get(var, zero(var.type, span)) for inner, _, _ in sides)
            if then == orelse:
                env[var] = then
                continue
            new = self.names.fresh(var.name, var.type)
            met[new] = then, orelse
            for (_, stmts, _), value in zip(sides, (then, orelse), strict=True):
                stmts.append(ir.Assign(new, value, span=span))
            if self.tape is not None and (self.adjoints.knows(then) or self.adjoints.knows(orelse)):
                self.adjoints.add(new)
            env[var] = ir.VarRead(new, span=span)
        out.append(_if(cond, [stmts for _, stmts, _ in sides], span))
        if self.tape is not None:
            self.tape.append(lambda out: self.branch_back(cond, met, [tape for _, _, tape in sides], span, out))

    def branch_back(
        self,
        cond: ir.Expr,
        met: dict[ir.Var, tuple[ir.Expr, ir.Expr]],
        tapes: list[list[Step]],
        span: Span,
        out: list[ir.Stmt],
    ) -> None:
        back: list[list[ir.Stmt]] = []
        found = [
            (pair, d) for new, pair in met.items() if (d := self.adjoints.of(ir.VarRead(new, span=span))) is not None
        ]
        for side, tape in enumerate(tapes):
            stmts: list[ir.Stmt] = []
            for pair, d in found:
                self.adjoints.give(pair[side], d, stmts)
            for step in reversed(tape):
                step(stmts)
            back.append(stmts)
        out.append(_if(cond, back, span))

    # ------------------------------------------------------------------- memory

    def store(self, stmt: ir.Store, env: Env, out: list[ir.Stmt]) -> None:
        assert isinstance(stmt.place, ir.Element)
        assert self.tape is not None
        value, span = self.value(stmt.value, env, out), stmt.span
        twin = self.twin(self.place(stmt.place, env, out))

        def back(out: list[ir.Stmt]) -> None:
            d = self.read_adjoint(twin, span, out)
            out.append(ir.Store(twin, zero(twin.type, span), span=span))
            self.adjoints.give(value, d, out)

        self.tape.append(back)

    def atomic(self, stmt: ir.Atomic, env: Env, out: list[ir.Stmt]) -> None:
        span, place = stmt.span, stmt.place
        if stmt.result is not None:
            self.lose(stmt.result, env, out, span)
        if isinstance(place, ir.Slot) and self.updates:
            new = env[self.active.crossing(place)]
            assert isinstance(new, ir.VarRead)
            value = self.value(stmt.value, env, out)
            out.append(replace(stmt, place=replace(place, number=self.slot_of(new.var)), value=value, result=None))
        if stmt.op in EXTREMES and stmt.result not in self.all_reads:
            self.extreme(stmt, env, out)
            return
        if self.tape is None or not self.active.has_place(place):
            return
        sums = stmt.op in (ir.AtomicOp.ADD, ir.AtomicOp.SUB)
        if not sums or stmt.result in self.all_reads:
            what = "the old value that it returns" if sums else f"an atomic {stmt.op.value}"
            raise KernelTypeError(f"quadpy knows no adjoint of {what}, where other iterations may update it", span)
        value = self.value(stmt.value, env, out)
        sign = -1 if stmt.op is ir.AtomicOp.SUB else 1
        if isinstance(place, ir.Slot):
            after = env[self.active.crossing(place)]
            self.tape.append(lambda out: self.adjoints.give_of(after, value, out, sign))
        else:
            twin = self.twin(self.place(place, env, out))
            self.tape.append(lambda out: self.adjoints.give(value, self.read_adjoint(twin, span, out), out, sign))

    def call_many(self, stmt: ir.CallMany, env: Env, out: list[ir.Stmt]) -> None:
        args = tuple(self.named(self.value(arg, env, out), out) for arg in stmt.args)
        results = tuple(self.names.fresh(var.name, var.type) for var in stmt.results)
        out.append(replace(stmt, args=args, results=results))
        reads = [ir.VarRead(var, span=stmt.span) for var in results]
        if self.kept:
            reads = [self.version(read, out, like=read.var.name) for read in reads]
        env.update(zip(stmt.results, reads, strict=True))
        if self.tape is not None and any(map(self.adjoints.knows, args)):
            assert library_name(stmt.function) == "sincos"
            for read in reads:
                self.adjoints.add(read.var)
            self.tape.append(lambda out: self.adjoints.through_sincos(args[0], reads[0], reads[1], out))

    # --------------------------------------------------------------------- tasks

    def sections(self, stmt: ir.Sections, env: Env, out: list[ir.Stmt]) -> None:
        """Their adjoints run at once, too, unless two of them add to the same array."""
        assert self.tape is not None
        tapes = [self.recorded(branch, env, out) for branch in stmt.branches]

        def back(out: list[ir.Stmt]) -> None:
            blocks: list[ir.Block] = []
            for tape in reversed(tapes):
                stmts: list[ir.Stmt] = []
                for step in reversed(tape):
                    step(stmts)
                blocks.append(ir.Block(tuple(stmts), span=stmt.span))
            changed = [{name_of(place) for place in changed_in(block)} for block in blocks]
            if sum(map(len, changed)) == len(set().union(*changed)):
                out.append(replace(stmt, branches=tuple(blocks)))
            else:
                out += [each for block in blocks for each in block.stmts]

        self.tape.append(back)

    def slot_of(self, var: ir.Var) -> int:
        if var not in self.crossing:
            self.crossing.append(var)
        return self.crossing.index(var)

    def parallel(self, loop: ir.ParallelFor, env: Env, out: list[ir.Stmt]) -> None:
        """Runs the loop for the variables that it updates; then, on the way back, each iteration."""
        assert self.tape is not None
        span = loop.span
        axes = tuple(
            replace(
                a,
                start=self.value(a.start, env, out),
                stop=self.value(a.stop, env, out),
                step=self.value(a.step, env, out),
            )
            for a in loop.axes
        )
        updated = list(dict.fromkeys(self.active.crossing(p) for p in _slots_in(loop)))
        before = {var: env.get(var, zero(var.type, span)) for var in updated}
        for var in updated:
            new = self.names.fresh(var.name, var.type)
            out.append(ir.Assign(new, before[var], span=span))
            if var in self.active.variables:
                self.adjoints.add(new)
            env[var] = ir.VarRead(new, span=span)
        if updated:
            forward, inner = self.axes_of(axes, env)
            stmts: list[ir.Stmt] = []
            self.updates = True
            self.repeated(loop.body, inner, stmts)
            self.updates = False
            out.append(replace(loop, axes=forward, body=ir.Block(tuple(stmts), span=loop.body.span), allowed=()))
        after = dict(env)

        def back(out: list[ir.Stmt]) -> None:
            self.mark(loop, axes, after, out)
            for var in updated:
                if (d := self.adjoints.of(after[var])) is not None:
                    self.adjoints.give(before[var], self.unless_won(var, d), out)
            new_axes, inner = self.axes_of(axes, after)
            self.number = number_in(new_axes, loop) if self.arrays or self.won else None
            body = self.iteration(loop.body, inner)
            out.append(
                replace(loop, axes=new_axes, body=body, allowed=(*self.allowed(loop), *(WHY if self.arrays else ())))
            )
            self.number, self.arrays, self.won = None, (), {}

        self.tape.append(back)

    def axes_of(self, axes: Iterable[ir.Axis], env: Env) -> tuple[tuple[ir.Axis, ...], Env]:
        """``axes`` with new variables, and what an iteration knows."""
        inner, made = dict(env), []
        for axis in axes:
            var = self.names.fresh(axis.var.name, axis.var.type)
            inner[axis.var] = ir.VarRead(var, span=axis.span)
            made.append(replace(axis, var=var))
        return tuple(made), inner

    def iteration(self, body: ir.Block, env: Env) -> ir.Block:
        """One iteration on the way back; what variables from outside get is added up once."""
        stmts: list[ir.Stmt] = []
        with self.adjoints.around(is_iteration=True) as owned:
            stmts += self.claims(env)
            for step in reversed(self.recorded(body, env, stmts)):
                step(stmts)
            for outer, local in self.adjoints.from_outside():
                place = ir.Slot(self.slot_of(outer), outer.type, span=body.span)
                value = ir.VarRead(local, span=body.span)
                stmts.append(ir.Atomic(ir.AtomicOp.ADD, place, value, in_launch=True, span=body.span))
            zeros = self.adjoints.zeros(owned, body.span)
        return ir.Block((*zeros, *stmts), span=body.span)

    def allowed(self, loop: ir.ParallelFor) -> tuple[tuple[str | ir.Var, str], ...]:
        """Where iterations may race on a value, they may on its adjoint."""
        return tuple(
            (self.grads[what], why) for what, why in loop.allowed if isinstance(what, str) and what in self.grads
        )

    def returned(self, stmt: ir.Return, values: list[ir.Expr]) -> None:
        def back(out: list[ir.Stmt]) -> None:
            for number, value in enumerate(values):
                if (name := self.grads.get(f"{RESULT}{number}")) is not None:
                    d = (
                        self.read_adjoint(first_of(self.types, name, "", self.kernel.index, stmt.span), stmt.span, out)
                        if name in self.types
                        else ir.ParamRead(name, value.type, span=stmt.span)
                    )
                    self.adjoints.give(value, d, out)

        assert self.tape is not None
        self.tape.append(back)


def _slots_in(loop: ir.ParallelFor) -> list[ir.Slot]:
    return [place for place in changed_in(loop.body) if isinstance(place, ir.Slot)]


def _if(cond: ir.Expr, sides: Sequence[list[ir.Stmt]], span: Span) -> ir.If:
    then, orelse = (ir.Block(tuple(side), span=span) for side in sides)
    return ir.If(cond, then, orelse, span=span)
