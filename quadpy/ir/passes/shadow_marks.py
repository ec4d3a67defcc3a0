"""The marks that accesses leave in shadow memory, and how they reveal races.

The first word of an element is that of writes: the first iteration that wrote or updated atomically, with its last store.  The
second is that of reads: the first iteration that read.  The third is the value of the first store.  A mark has the iteration's number in its low bits, then the
number of the access, then three flags: whether the iteration stored another value before, or both stored and updated;
whether the access was an update; and whether another iteration did the same, of stores with the same value.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from quadpy.artifact import SHADOW
from quadpy.dtypes import BY_NAME, Scalar, i64, u1, u64
from quadpy.errors import KernelRaceError
from quadpy.faults import MOST_VALUES, Site
from quadpy.ir import nodes as ir
from quadpy.ir.passes.shadow_words import other_iteration
from quadpy.ir.touches import value_of
from quadpy.light import dataclass
from quadpy.source import Span

_NUMBER_BITS: Final = 48
_MASK: Final = (1 << _NUMBER_BITS) - 1
_MOST_ACCESSES: Final = 1 << 12
_MIXED: Final = 1 << 60
_UPDATED: Final = 1 << 61
_AGAIN: Final = 1 << 62
_ZERO: Final = 0x9E3779B97F4A7C15
"""Represents the value 0; a race that stores exactly this number is not found."""


@dataclass(frozen=True, slots=True)
class Place:
    """An element as messages show it, and its words; ``called`` as in ``Site.text``, the last two as in ``ir.ArrayParam``."""

    array: str
    called: str
    index: tuple[ir.Expr, ...]
    at: ir.Expr
    offset: tuple[int, ...] = ()
    blocks: tuple[tuple[int, ...], ...] = ()


_VERBS: Final = {ir.Access.READ: "reads", ir.Access.WRITE: "writes", ir.Access.ATOMIC: "updates"}


class Marks:
    """The checks of one task.

    iteration  the number of the iteration
    accesses   for each array its accesses, whose places are their numbers
    """

    def __init__(
        self, kernel: str, task: ir.ParallelTask, iteration: ir.Expr, accesses: Mapping[str, Sequence[tuple[ir.Stmt, ir.Access]]],
        sites: dict[Site, int],
    ) -> None:  # fmt: skip
        self.kernel, self.task, self.iteration, self.sites = kernel, task, iteration, sites
        self.accesses = {
            name: tuple((_VERBS[access], stmt.span) for stmt, access in found[:_MOST_ACCESSES])
            for name, found in accesses.items()
        }
        self.kinds = {name: {access for _, access in found} for name, found in accesses.items()}
        self.count = count()

    def before(self, stmt: ir.Stmt, access: ir.Access, number: int, place: Place) -> Iterator[ir.Stmt]:
        """Leaves a mark of the access with this ``number``, and reports what it finds there."""
        span = stmt.span
        at = self.var("at", i64)
        yield ir.Let(at, place.at, span=span)
        writes, reads = (_word(at, k, span) for k in (0, 1))
        mark = self.binary(
            ir.BinOp.OR, self.iteration, self.number(min(number, _MOST_ACCESSES - 1) << _NUMBER_BITS, span)
        )
        verb = _VERBS[access]
        if access is ir.Access.READ:
            yield from self.first(reads, mark, 0)
            writer = yield from self.word_at(writes)
            found = self.either(self.is_other(writer), self.has(writer, _AGAIN))
            yield from self.report(self.both(self.is_set(writer), found), writer, verb, span, place)
            return
        if access is ir.Access.WRITE:
            yield from self.before_store(stmt, place, (writes, _word(at, 2, span)), mark)
        else:
            mark = self.binary(ir.BinOp.OR, mark, self.number(_UPDATED, span))
            writer = yield from self.first(writes, mark, _UPDATED)
            if ir.Access.WRITE in self.kinds[place.array]:
                stored = self.both(self.is_set(writer), self.negated(self.has(writer, _UPDATED)))
                found = self.either(self.is_other(writer), self.has(writer, _AGAIN))
                yield from self.report(self.both(stored, found), writer, verb, span, place)
                yield _if(stored, self.noted(writes, self.number(_MIXED, span)))
        if ir.Access.READ in self.kinds[place.array]:
            reader = yield from self.word_at(reads)
            found = self.either(self.is_other(reader), self.has(reader, _AGAIN))
            yield from self.report(self.both(self.is_set(reader), found), reader, verb, span, place)

    def before_store(
        self, stmt: ir.Stmt, place: Place, words: tuple[ir.Element, ...], mark: ir.Expr
    ) -> Iterator[ir.Stmt]:
        """Iterations may store one value, and nothing else: it does not matter which comes last.

        If they run at once, one may come between the mark and the store of another: so the first value has a word.
        """
        writes, values = words
        span, old, first, value = stmt.span, *(self.var(name, u64) for name in ("old", "first", "value"))
        yield ir.Let(value, self.as_set(value_of(stmt) or self.iteration), span=span)
        stored, before = ir.VarRead(value, span=span), ir.VarRead(first, span=span)
        yield ir.Atomic(ir.AtomicOp.CAS, values, stored, first, self.number(0, span), span=span)
        differs = self.both(self.is_set(before), ir.Compare(ir.CmpOp.NE, before, stored, u1, span=span))
        mark = self.binary(
            ir.BinOp.OR, mark, self.where(differs, _MIXED)
        )  # of an element that is stored but not marked yet
        yield ir.Atomic(ir.AtomicOp.CAS, writes, mark, old, self.number(0, span), span=span)
        writer = ir.VarRead(old, span=span)
        matters = self.both(self.is_set(writer), self.either(differs, self.has(writer, _UPDATED | _MIXED)))
        another = self.both(self.is_set(writer), self.is_other(writer))
        shared = self.either(another, self.has(writer, _AGAIN))
        yield from self.report(self.both(matters, shared), writer, _VERBS[ir.Access.WRITE], span, place)
        own = self.both(self.is_set(writer), self.negated(shared))
        kept = self.binary(ir.BinOp.AND, writer, self.number(_MIXED, span))
        renewed = self.binary(ir.BinOp.OR, mark, kept)
        yield _if(own, ir.Atomic(ir.AtomicOp.CAS, writes, renewed, self.var("mine", u64), writer, span=span))
        flags = self.binary(ir.BinOp.OR, self.where(matters, _MIXED), self.where(another, _AGAIN))
        yield _if(self.is_set(flags), self.noted(writes, flags))

    def first(self, word: ir.Element, mark: ir.Expr, kind: int) -> Generator[ir.Stmt, None, ir.Expr]:
        """Leaves ``mark`` unless there is one; notes there if another iteration did the same, of this ``kind``."""
        span, old = word.span, self.var("old", u64)
        yield ir.Atomic(ir.AtomicOp.CAS, word, mark, old, self.number(0, span), span=span)
        before = ir.VarRead(old, span=span)
        like = self.has(before, kind) if kind else self.is_set(before)
        again = self.both(self.both(like, self.is_other(before)), self.negated(self.has(before, _AGAIN)))
        yield _if(again, self.noted(word, self.number(_AGAIN, span)))
        return before

    def noted(self, word: ir.Element, flags: ir.Expr) -> ir.Atomic:
        """Stores ``flags`` next to the mark."""
        return ir.Atomic(ir.AtomicOp.OR, word, flags, span=word.span)

    def word_at(self, word: ir.Element) -> Generator[ir.Stmt, None, ir.Expr]:
        """The marks of other iterations: adding 0 is a load that sees them."""
        old = self.var("old", u64)
        yield ir.Atomic(ir.AtomicOp.ADD, word, self.number(0, word.span), old, span=word.span)
        return ir.VarRead(old, span=word.span)

    def report(self, found: ir.Expr, word: ir.Expr, verb: str, span: Span, place: Place) -> Iterator[ir.Stmt]:
        """A fault if ``found``, with the access that ``word`` denotes."""
        axes = [axis.var for axis in self.task.axes]
        number = self.binary(ir.BinOp.AND, word, self.number(_MASK, span))
        access = self.binary(ir.BinOp.USHR, word, self.number(_NUMBER_BITS, span))
        access = self.binary(ir.BinOp.AND, access, self.number(_MOST_ACCESSES - 1, span))
        index = place.index[: MOST_VALUES - 2 * len(axes) - 1]
        words = [*map(_as_word, index), *map(_as_word, other_iteration(self.task, number)), access]
        site = Site(
            KernelRaceError.__name__, place.called, tuple("i64" for _ in words),
            tuple(var.name.partition(".")[0] for var in axes), self.kernel, span,
            accesses=((verb, span), *self.accesses[place.array]), offsets=place.offset, blocks=place.blocks,
        )  # fmt: skip
        record, first = (ir.ParamRead(name, u64, span=span) for name in ("$fault", "$sites"))
        check = self.binary(ir.BinOp.ADD, first, self.number(self.sites.setdefault(site, len(self.sites)), span))
        own = [_as_word(ir.VarRead(var, span=span)) for var in axes]
        yield _if(found, ir.Fault(record, check, (*words, *own), span=span))

    # ---------------------------------------------------------------- expressions

    def as_set(self, value: ir.Expr) -> ir.Expr:
        """``value`` as a word that is not 0; of a float its bits, so that NaN equals itself and 0 is not -0."""
        span, word = value.span, value
        if value.type.is_float:
            word = ir.BitCast(value, BY_NAME[f"u{value.type.bits}"], span=span)
        word = word if word.type == u64 else ir.Cast(word, u64, span=span)
        return ir.Select(self.is_set(word), word, self.number(_ZERO, span), u64, span=span)

    def var(self, name: str, type: Scalar) -> ir.Var:
        return ir.Var(f"${name}{next(self.count)}", type)

    def number(self, value: int, span: Span) -> ir.Const:
        return ir.Const(value, u64, span=span)

    def binary(self, op: ir.BinOp, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Binary(op, a, b, u64, span=a.span)

    def is_set(self, word: ir.Expr) -> ir.Expr:
        return ir.Compare(ir.CmpOp.NE, word, self.number(0, word.span), u1, span=word.span)

    def is_other(self, word: ir.Expr) -> ir.Expr:
        """Whether a word that is set is another iteration's."""
        number = self.binary(ir.BinOp.AND, word, self.number(_MASK, word.span))
        return ir.Compare(ir.CmpOp.NE, number, self.iteration, u1, span=word.span)

    def has(self, word: ir.Expr, flag: int) -> ir.Expr:
        return self.is_set(self.binary(ir.BinOp.AND, word, self.number(flag, word.span)))

    def where(self, condition: ir.Expr, flag: int) -> ir.Expr:
        """``flag`` where ``condition`` holds, else 0."""
        span = condition.span
        return ir.Select(condition, self.number(flag, span), self.number(0, span), u64, span=span)

    def both(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Binary(ir.BinOp.AND, a, b, u1, span=a.span)

    def either(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return ir.Binary(ir.BinOp.OR, a, b, u1, span=a.span)

    def negated(self, a: ir.Expr) -> ir.Expr:
        return ir.Unary(ir.UnOp.NOT, a, u1, span=a.span)


def _word(at: ir.Var, number: int, span: Span) -> ir.Element:
    position: ir.Expr = ir.VarRead(at, span=span)
    if number:
        position = ir.Binary(ir.BinOp.ADD, position, ir.Const(number, i64, span=span), i64, span=span)
    return ir.Element(SHADOW, (position,), 0, u64, span=span)


def _if(cond: ir.Expr, then: ir.Stmt) -> ir.If:
    return ir.If(cond, ir.Block((then,), span=then.span), ir.Block((), span=then.span), span=then.span)


def _as_word(value: ir.Expr) -> ir.Expr:
    wide = value if value.type == i64 else ir.Cast(value, i64, span=value.span)
    return ir.BitCast(wide, u64, span=value.span)
