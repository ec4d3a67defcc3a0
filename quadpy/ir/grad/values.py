"""The values of a kernel, written again in the backward kernel, and the tape of what takes them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from quadpy.core.source import Span
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.activity import Activity
from quadpy.ir.grad.adjoints import Adjoints
from quadpy.ir.grad.exact import Memory
from quadpy.ir.grad.maths import Functions, Names, cast, zero
from quadpy.ir.variables import reads_of
from quadpy.ir.walk import children, map_children, walk

Env: TypeAlias = dict[ir.Var, ir.Expr]
"""The version, or the constant, that each variable of the kernel is at this point."""
Step: TypeAlias = Callable[[list[ir.Stmt]], None]
"""Appends the statements that take a statement back."""


class Values:
    """Writes values as versions.

    tape      the steps that take back what was written, if it is to be taken back
    origins   the statements of the kernel that the loads of the backward kernel repeat, by the variable
    lost      the variables that stand for values that cannot be had again, with the error
    kept      whether values must outlive the block in which they are computed
    updates   whether variables from outside of a parallel loop get what its iterations add
    crossing  the variables of the slots of the backward kernel
    memory    the words of the launch
    deep      the loops whose turns need the state before them, by ``id``
    repeats   the loops whose first turns a loop over this variable repeats
    """

    def __init__(
        self,
        kernel: ir.Kernel,
        grads: Mapping[str, str],
        functions: Functions,
        names: Names,
        deep: frozenset[int] = frozenset(),
    ) -> None:
        self.kernel, self.grads, self.names, self.functions = kernel, grads, names, functions
        self.active = Activity(kernel, grads)
        self.active.check()
        self.adjoints = Adjoints(functions, names, guards=self.active.chooses)
        self.types = kernel.array_types
        self.origins: dict[ir.Var, ir.Load | ir.Atomic] = {}
        self.lost: dict[ir.Var, KernelTypeError] = {}
        self.parameters: dict[str, ir.Expr] = {}
        self.tape: list[Step] | None = None
        self.kept = self.updates = False
        self.deep, self.memory = deep, Memory(kernel)
        self.repeats: dict[ir.Var, int] = {}
        self.crossing: list[ir.Var] = []
        self.all_reads = reads_of(kernel.body)

    def repeated_in(self, made: ir.Kernel) -> frozenset[int]:
        """The loops whose turns ``made`` repeats to find the state before a later one."""
        counts = (node.var for node in walk(made.body) if isinstance(node, ir.For))
        return frozenset(self.repeats[var] for var in counts if var in self.repeats)

    def stmt(self, stmt: ir.Stmt, env: Env, out: list[ir.Stmt]) -> None:
        """Writes ``stmt``."""
        raise NotImplementedError

    def block(self, block: ir.Block, env: Env, out: list[ir.Stmt]) -> None:
        for stmt in block.stmts:
            self.stmt(stmt, env, out)

    def recorded(self, block: ir.Block, env: Env, out: list[ir.Stmt]) -> list[Step]:
        """Writes ``block``, and returns the steps that take it back, in the order of its statements."""
        outer, self.tape = self.tape, []
        self.block(block, env, out)
        tape, self.tape = self.tape, outer
        return tape

    def repeated(self, block: ir.Block, env: Env, out: list[ir.Stmt]) -> None:
        """Writes ``block`` for its values alone."""
        outer, self.tape = self.tape, None
        kept, self.kept = self.kept, False
        self.block(block, env, out)
        self.tape, self.kept = outer, kept

    def version(self, e: ir.Expr, out: list[ir.Stmt], *, active: bool = False, like: str = "part") -> ir.VarRead:
        """A new version with the value ``e``."""
        var = self.names.fresh(like, e.type)
        out.append(ir.Assign(var, e, span=e.span) if self.kept else ir.Let(var, e, span=e.span))
        if active:
            self.adjoints.add(var)
        return ir.VarRead(var, span=e.span)

    def named(self, e: ir.Expr, out: list[ir.Stmt]) -> ir.Expr:
        return e if isinstance(e, (ir.VarRead, ir.Const, ir.ShapeOf)) else self.version(e, out)

    def value(self, e: ir.Expr, env: Env, out: list[ir.Stmt]) -> ir.Expr:
        """``e`` with versions for variables; on the tape, with a version for each active operation."""
        match e:
            case ir.VarRead(var=var):
                return replace(found, span=e.span) if (found := env.get(var)) is not None else zero(e.type, e.span)
            case ir.ParamRead(name=name) if name in self.parameters:
                return self.parameters[name]
        operands = [self.value(child, env, out) for child in children(e)]  # type: ignore[arg-type]  # expressions
        given = iter(operands)
        made = map_children(e, lambda _: next(given))
        if self.tape is None or not self.active.has(e) or not any(map(self.adjoints.knows, operands)):
            return made
        result = self.version(made, out, active=True)
        self.tape.append(lambda out: self.adjoints.through(made, operands, result, out))
        return result

    def load(self, stmt: ir.Load, env: Env, out: list[ir.Stmt]) -> None:
        place = stmt.place
        if isinstance(place, ir.Slot):
            env[stmt.var] = env[self.active.crossing(place)]
            return
        at = self.place(place, env, out)
        var = self.names.fresh(stmt.var.name, place.type)
        out.append(ir.Load(var, at, span=stmt.span))
        self.origins[var] = stmt
        read = ir.VarRead(var, span=stmt.span)
        env[stmt.var] = read = self.version(read, out, like=stmt.var.name) if self.kept else read
        if self.tape is not None and self.active.has_place(place):
            self.adjoints.add(read.var)
            self.tape.append(lambda out: self.load_back(at, read, out))

    def load_back(self, at: ir.Element, read: ir.VarRead, out: list[ir.Stmt]) -> None:
        if (d := self.adjoints.of(read)) is not None:
            twin = self.twin(at)
            out.append(ir.Atomic(ir.AtomicOp.ADD, twin, cast(d, twin.type), in_launch=True, span=read.span))

    def place(self, place: ir.Element, env: Env, out: list[ir.Stmt]) -> ir.Element:
        """``place`` with versions in its indices."""
        return replace(place, index=tuple(self.value(index, env, out) for index in place.index))

    def twin(self, place: ir.Element) -> ir.Element:
        """The adjoint of ``place``."""
        name = self.grads[place.array]
        return replace(place, array=name, type=self.types[name].layout.at(place.component)[0].scalar)

    def read_adjoint(self, twin: ir.Place, span: Span, out: list[ir.Stmt]) -> ir.VarRead:
        held = self.names.fresh("adjoint", twin.type)
        out.append(ir.Load(held, twin, span=span))
        return ir.VarRead(held, span=span)

    def lose(self, var: ir.Var, env: Env, out: list[ir.Stmt], span: Span) -> None:
        """``var`` gets a value that cannot be had again."""
        unknown = self.names.fresh("old", var.type)
        out.append(ir.Let(unknown, zero(var.type, span), span=span))
        env[var] = ir.VarRead(unknown, span=span)
        self.lost[unknown] = KernelTypeError(
            "the adjoint needs the old value that this atomic operation returned, which is lost", span,
            hint="read the element in another loop",
        )  # fmt: skip
