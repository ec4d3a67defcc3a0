"""The adjoints of versions: variables that grow where a version was used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import Functions, Guard, Maths, Names, accurate, cast, zero
from quadpy.ir.grad.rules import changes_of


class Adjoints:
    """``names`` has the adjoint of each active version; None until something contributes to it.

    ``guards``: an adjoint that is 0 takes 0 through every operation, also where this has an infinite slope.  ``_owned`` are the active versions of the loop's turn, iteration or kernel around, the innermost last; an iteration keeps what
    versions from outside get in ``_local`` variables of its own.
    """

    def __init__(self, functions: Functions, names: Names, *, guards: bool) -> None:
        self.functions, self.names, self.guards = functions, names, guards
        self._found: dict[ir.Var, ir.Var | None] = {}
        self._owned: list[list[ir.Var]] = []
        self._outside: frozenset[ir.Var] | None = None
        self._local: dict[ir.Var, ir.Var] = {}

    def add(self, version: ir.Var) -> None:
        """``version`` is active."""
        self._found[version] = None
        if self._owned:
            self._owned[-1].append(version)

    def knows(self, e: ir.Expr) -> bool:
        """Whether ``e`` is an active version."""
        return isinstance(e, ir.VarRead) and e.var in self._found

    @contextmanager
    def around(self, *, is_iteration: bool = False) -> Iterator[list[ir.Var]]:
        """A part of the kernel that runs several times, and the list of the versions that it makes."""
        if is_iteration:
            self._outside, self._local = frozenset(self._found), {}
        self._owned.append([])
        yield self._owned[-1]
        self._owned.pop()
        if is_iteration:
            self._outside = None

    def zeros(self, owned: Sequence[ir.Var], span: Span) -> list[ir.Stmt]:
        """Statements that begin the adjoints of ``owned`` again."""
        found = [var for version in owned if (var := self._found[version]) is not None]
        return [ir.Assign(var, zero(var.type, span), span=span) for var in found]

    def from_outside(self) -> list[tuple[ir.Var, ir.Var]]:
        """The adjoints of versions from outside of the iteration, and what the iteration adds to each."""
        return [(self._variable(version), local) for version, local in self._local.items()]

    def _variable(self, version: ir.Var) -> ir.Var:
        if (found := self._found[version]) is None:
            found = self._found[version] = self.names.fresh(version.name, accurate(version.type))
        return found

    def of(self, e: ir.Expr | None) -> ir.VarRead | None:
        """The adjoint of ``e``; None if it is 0."""
        if not isinstance(e, ir.VarRead) or (var := self._found.get(e.var)) is None:
            return None
        return ir.VarRead(var, span=e.span)

    def give(self, e: ir.Expr, d: ir.Expr, out: list[ir.Stmt], sign: int = 1) -> None:
        """Adds ``d``, or takes it away, if ``e`` is an active version."""
        if not self.knows(e):
            return
        assert isinstance(e, ir.VarRead)
        if self._outside is not None and e.var in self._outside:
            if e.var not in self._local:
                self._local[e.var] = self.names.fresh(e.var.name, accurate(e.type))
            var = self._local[e.var]
        else:
            var = self._variable(e.var)
        op = ir.BinOp.ADD if sign > 0 else ir.BinOp.SUB
        total = ir.Binary(op, ir.VarRead(var, span=d.span), cast(d, var.type), var.type, span=d.span)
        out.append(ir.Assign(var, total, span=d.span))

    def give_of(self, source: ir.Expr, e: ir.Expr, out: list[ir.Stmt], sign: int = 1) -> None:
        """Adds the adjoint of ``source`` to that of ``e``."""
        if (d := self.of(source)) is not None:
            self.give(e, d, out, sign)

    def through(self, node: ir.Expr, operands: Sequence[ir.Expr], result: ir.VarRead, out: list[ir.Stmt]) -> None:
        """Takes the adjoint of ``result``, which is ``node``, to its operands."""
        if (d := self.of(result)) is None:
            return
        m = Maths(self.functions, d.type, node.span)
        given = [cast(e, m.type) if e.type.is_float else e for e in operands]
        for operand, change in zip(operands, changes_of(node, given, cast(result, m.type), m), strict=True):
            if change is not None and self.knows(operand):
                given_back = change(d)
                if self.guards and not _passes_on(node):
                    is_zero = m.compare(ir.CmpOp.EQ, d, m.number(0))
                    given_back = Guard(is_zero, m.number(0), given_back, m.type, span=m.span)
                self.give(operand, given_back, out)

    def through_sincos(self, x: ir.Expr, sine: ir.VarRead, cosine: ir.VarRead, out: list[ir.Stmt]) -> None:
        m = Maths(self.functions, accurate(x.type), sine.span)
        s, c = cast(sine, m.type), cast(cosine, m.type)
        if (d := self.of(sine)) is not None:
            self.give(x, m.mul(d, c), out)
        if (d := self.of(cosine)) is not None:
            self.give(x, m.mul(d, s), out, -1)


def _passes_on(node: ir.Expr) -> bool:
    """Whether ``node`` takes an adjoint to its operands as it is, without a factor."""
    if isinstance(node, ir.Binary):
        return node.op not in (ir.BinOp.MUL, ir.BinOp.DIV)
    return not isinstance(node, (ir.Call, ir.Intrinsic)) and not (
        isinstance(node, ir.Unary) and node.op is ir.UnOp.SQRT
    )
