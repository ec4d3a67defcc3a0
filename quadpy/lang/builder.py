"""Collects the statements that a trace emits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from quadpy.core.dtypes import Scalar
from quadpy.core.source import Span
from quadpy.ir.nodes import (
    Assign,
    Block,
    Const,
    Expr,
    If,
    Let,
    Line,
    Load,
    Names,
    Node,
    ParamRead,
    Place,
    ShapeOf,
    Stmt,
    Var,
    VarRead,
)
from quadpy.ir.walk import walk

T = TypeVar("T")
LONGEST_CHAIN: Final = 64
"""Operators after which a value gets a name: later passes recurse into expressions."""


class Builder:
    """Appends statements to the innermost open block, and makes variables with names of their own."""

    def __init__(self) -> None:
        self._open: list[list[Stmt]] = [[]]
        self._names: Counter[str] = Counter()
        self._mutable: set[Var] = set()
        self.lets: dict[Var, Expr] | None = None
        """Where ``let`` notes what its names stand for; None if this is not needed."""

    def emit(self, stmt: Stmt) -> None:
        self._open[-1].append(stmt)

    @contextmanager
    def block(self, stmts: list[Stmt] | None = None) -> Iterator[list[Stmt]]:
        """Statements emitted inside go to the list that the ``with`` binds: a new one, or the end of ``stmts``."""
        stmts = [] if stmts is None else stmts
        self._open.append(stmts)
        try:
            yield stmts
        finally:
            self._open.pop()

    def splice(self, stmts: list[Stmt]) -> None:
        """Appends statements that were traced into a block of their own."""
        self._open[-1].extend(stmts)

    def var(self, name: str, type: Scalar, *, mutable: bool = False) -> Var:
        """A new variable called ``name``, or ``name.1``, ``name.2``, … where that is taken."""
        name = name.partition(".")[0]
        count = self._names[name]
        self._names[name] += 1
        var = Var(f"{name}.{count}" if count else name, type)
        if mutable:
            self._mutable.add(var)
        return var

    def let(self, value: Expr, name: str = "t") -> Expr:
        """``value`` for repeated use: bound to a name unless it is trivial."""
        if isinstance(value, (Const, ParamRead, ShapeOf)):
            return value
        if isinstance(value, VarRead) and not self.may_change(value):
            return value
        var = self.var(name, value.type)
        self.emit(Let(var, value, span=value.span))
        if self.lets is not None:
            self.lets[var] = value
        return VarRead(var, span=value.span)

    def chain(self, join: Callable[[T, T], T], items: Iterable[T]) -> T:
        """``items`` combined from the first to the last; long chains get intermediate names."""
        first, *rest = items
        value = first
        for position, item in enumerate(rest, 1):
            value = join(value, item)
            if position % LONGEST_CHAIN == 0 and isinstance(value, Node):
                value = self.let(value)  # type: ignore[arg-type, assignment]  # an expression stays one
        return value

    def may_change(self, value: Node) -> bool:
        """Whether ``value`` is a variable, which later statements may assign."""
        return isinstance(value, VarRead) and value.var in self._mutable

    def freeze(self, value: Expr) -> Expr:
        """The current ``value``: bound to a name if a variable that it reads may change."""
        return self.let(value) if any(map(self.may_change, walk(value))) else value

    def branch(self, cond: Expr, then: Sequence[Stmt], orelse: Sequence[Stmt], span: Span) -> None:
        """Emits an ``if`` over statements that were traced into blocks of their own."""
        self.emit(If(cond, Block(tuple(then), span=span), Block(tuple(orelse), span=span), span=span))

    def load(self, place: Place, span: Span, name: str = "t") -> Expr:
        var = self.var(name, place.type)
        self.emit(Load(var, place, span=span))
        return VarRead(var, span=span)

    def assign(self, var: Var, value: Expr, span: Span) -> None:
        self.emit(Assign(var, value, span=span))

    def retract(self, stmt: Stmt) -> bool:
        """Removes ``stmt`` if it is the last statement of the open block, apart from marks."""
        stmts = self._open[-1]
        marks = next((n for n, other in enumerate(reversed(stmts)) if not isinstance(other, (Line, Names))), 0)
        last = len(stmts) - 1 - marks
        is_last = last >= 0 and stmts[last] is stmt
        if is_last:
            del stmts[last]
        return is_last
