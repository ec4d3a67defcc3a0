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

from quadpy.core.artifact import SHADOW
from quadpy.core.dtypes import BY_NAME, Scalar, i64, u64
from quadpy.core.faults import MOST_VALUES, Site
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.errors import KernelRaceError
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, binary, bits, converted, select
from quadpy.ir.passes.shadow_words import other_iteration
from quadpy.ir.touches import value_of

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
        yield At(span).let(at, place.at)
        writes, reads = (_word(at, k, span) for k in (0, 1))
        mark: ir.Expr = self.iteration | min(number, _MOST_ACCESSES - 1) << _NUMBER_BITS
        verb = _VERBS[access]
        if access is ir.Access.READ:
            yield from self.first(reads, mark, 0)
            writer = yield from self.word_at(writes)
            found = self.is_other(writer) | _has(writer, _AGAIN)
            yield from self.report(writer.ne(0) & found, writer, verb, span, place)
            return
        if access is ir.Access.WRITE:
            yield from self.before_store(stmt, place, (writes, _word(at, 2, span)), mark)
        else:
            mark |= _UPDATED
            writer = yield from self.first(writes, mark, _UPDATED)
            if ir.Access.WRITE in self.kinds[place.array]:
                stored = writer.ne(0) & ~_has(writer, _UPDATED)
                found = self.is_other(writer) | _has(writer, _AGAIN)
                yield from self.report(stored & found, writer, verb, span, place)
                yield _if(stored, _noted(writes, At(span).const(_MIXED, u64)))
        if ir.Access.READ in self.kinds[place.array]:
            reader = yield from self.word_at(reads)
            found = self.is_other(reader) | _has(reader, _AGAIN)
            yield from self.report(reader.ne(0) & found, reader, verb, span, place)

    def before_store(
        self, stmt: ir.Stmt, place: Place, words: tuple[ir.Element, ...], mark: ir.Expr
    ) -> Iterator[ir.Stmt]:
        """Iterations may store one value, and nothing else: it does not matter which comes last.

        If they run at once, one may come between the mark and the store of another: so the first value has a word.
        """
        writes, values = words
        at, old, first, value = At(stmt.span), *(self.var(name, u64) for name in ("old", "first", "value"))
        given = value_of(stmt)
        yield at.let(value, _as_set(self.iteration if given is None else given))
        stored, before = at.read(value), at.read(first)
        yield at.exchange(values, stored, 0, first)
        differs = before.ne(0) & before.ne(stored)
        mark |= _where(differs, _MIXED)  # of an element that is stored but not marked yet
        yield at.exchange(writes, mark, 0, old)
        writer = at.read(old)
        matters = writer.ne(0) & (differs | _has(writer, _UPDATED | _MIXED))
        another = writer.ne(0) & self.is_other(writer)
        shared = another | _has(writer, _AGAIN)
        yield from self.report(matters & shared, writer, _VERBS[ir.Access.WRITE], at.span, place)
        own = writer.ne(0) & ~shared
        yield _if(own, at.exchange(writes, mark | writer & _MIXED, writer, self.var("mine", u64)))
        flags = _where(matters, _MIXED) | _where(another, _AGAIN)
        yield _if(flags.ne(0), _noted(writes, flags))

    def first(self, word: ir.Element, mark: ir.Expr, kind: int) -> Generator[ir.Stmt, None, ir.Expr]:
        """Leaves ``mark`` unless there is one; notes there if another iteration did the same, of this ``kind``."""
        at, old = At(word.span), self.var("old", u64)
        yield at.exchange(word, mark, 0, old)
        before = at.read(old)
        like = _has(before, kind) if kind else before.ne(0)
        yield _if(like & self.is_other(before) & ~_has(before, _AGAIN), _noted(word, at.const(_AGAIN, u64)))
        return before

    def word_at(self, word: ir.Element) -> Generator[ir.Stmt, None, ir.Expr]:
        """The marks of other iterations: adding 0 is a load that sees them."""
        at, old = At(word.span), self.var("old", u64)
        yield at.update(ir.AtomicOp.ADD, word, at.const(0, u64), old)
        return at.read(old)

    def report(self, found: ir.Expr, word: ir.Expr, verb: str, span: Span, place: Place) -> Iterator[ir.Stmt]:
        """A fault if ``found``, with the access that ``word`` denotes."""
        at, axes = At(span), [axis.var for axis in self.task.axes]
        access = binary(ir.BinOp.USHR, word, _NUMBER_BITS) & (_MOST_ACCESSES - 1)
        index = place.index[: MOST_VALUES - 2 * len(axes) - 1]
        words = [*map(_as_word, index), *map(_as_word, other_iteration(self.task, word & _MASK)), access]
        site = Site(
            KernelRaceError.__name__, place.called, tuple("i64" for _ in words),
            tuple(var.name.partition(".")[0] for var in axes), self.kernel, span,
            accesses=((verb, span), *self.accesses[place.array]), offsets=place.offset, blocks=place.blocks,
        )  # fmt: skip
        own = [_as_word(at.read(var)) for var in axes]
        yield _if(found, at.fault(self.sites.setdefault(site, len(self.sites)), (*words, *own)))

    def var(self, name: str, type: Scalar) -> ir.Var:
        return ir.Var(f"${name}{next(self.count)}", type)

    def is_other(self, word: ir.Expr) -> ir.Expr:
        """Whether a word that is set is another iteration's."""
        return (word & _MASK).ne(self.iteration)


def _as_set(value: ir.Expr) -> ir.Expr:
    """``value`` as a word that is not 0; of a float its bits, so that NaN equals itself and 0 is not -0."""
    own = bits(value, BY_NAME[f"u{value.type.bits}"]) if value.type.is_float else value
    word = converted(own, u64)
    return select(word.ne(0), word, _ZERO)


def _has(word: ir.Expr, flag: int) -> ir.Expr:
    return (word & flag).ne(0)


def _where(condition: ir.Expr, flag: int) -> ir.Expr:
    """``flag`` where ``condition`` holds, else 0."""
    return select(condition, At(condition.span).const(flag, u64), 0)


def _noted(word: ir.Element, flags: ir.Expr) -> ir.Atomic:
    """Stores ``flags`` next to the mark."""
    return At(word.span).update(ir.AtomicOp.OR, word, flags)


def _word(at: ir.Var, number: int, span: Span) -> ir.Element:
    position = At(span).read(at)
    return At(span).element(SHADOW, [position + number if number else position], u64)


def _if(cond: ir.Expr, then: ir.Stmt) -> ir.If:
    return At(then.span).when(cond, [then])


def _as_word(value: ir.Expr) -> ir.Expr:
    return bits(converted(value, i64), u64)
