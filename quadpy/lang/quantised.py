"""Elements of quantised fields: a load decodes parts of words, a store encodes them and leaves the other parts as they are.

The words are ordinary fields of integers, read and changed by ordinary loads, stores and compare-and-swaps.  So nothing
below the front end knows of quantised numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partialmethod
from typing import Any, Final

from quadpy.core.dtypes import Scalar, u1
from quadpy.core.light import dataclass
from quadpy.core.quantised import Bits, Member, Word
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import binary, select
from quadpy.lang.checks import quietly
from quadpy.lang.context import Trace
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import cast
from quadpy.lang.scope import field_ref
from quadpy.lang.values import ElementRef

Change = Callable[[ir.Expr], ir.Expr]
_REASON: Final = "iterations change other parts of one word, each in one step"


@dataclass(frozen=True, slots=True, eq=False)
class _Traced:
    """A value of a kernel, with Python's operators."""

    t: Trace
    value: ir.Expr

    def same(self, other: Any) -> ir.Expr:
        type, span = self.value.type, self.value.span
        if isinstance(other, _Traced):
            return other.value
        return literal(
            other if type.is_float else other & ((1 << type.bits) - 1) if type.kind == "uint" else other, type, span
        )

    def bound(self, value: ir.Expr) -> _Traced:
        return _Traced(self.t, self.t.build.let(value))

    def _binary(self, other: Any, op: ir.BinOp) -> _Traced:
        return self.bound(binary(op, self.value, self.same(other)))

    def _reflected(self, other: Any, op: ir.BinOp) -> _Traced:
        return self.bound(binary(op, self.same(other), self.value))

    def _compare(self, other: Any, op: ir.CmpOp) -> _Traced:
        return self.bound(ir.Compare(op, self.value, self.same(other), u1, span=self.value.span))

    __add__ = partialmethod(_binary, op=ir.BinOp.ADD)
    __sub__ = partialmethod(_binary, op=ir.BinOp.SUB)
    __mul__ = partialmethod(_binary, op=ir.BinOp.MUL)
    __and__ = partialmethod(_binary, op=ir.BinOp.AND)
    __or__ = partialmethod(_binary, op=ir.BinOp.OR)
    __lshift__ = partialmethod(_binary, op=ir.BinOp.SHL)
    __rshift__ = partialmethod(_binary, op=ir.BinOp.SHR)
    __rlshift__ = partialmethod(_reflected, op=ir.BinOp.SHL)
    __lt__ = partialmethod(_compare, op=ir.CmpOp.LT)
    __gt__ = partialmethod(_compare, op=ir.CmpOp.GT)
    __hash__ = None  # type: ignore[assignment]  # as for all that compares element by element
    __eq__ = partialmethod(_compare, op=ir.CmpOp.EQ)

    def __invert__(self) -> _Traced:
        return self.bound(~self.value)


class _Operations:
    """What Python has no operators for."""

    def convert(self, x: _Traced, type: Scalar) -> _Traced:
        return x.bound(cast(x.t, x.value, type, x.value.span))

    def bits(self, x: _Traced, type: Scalar) -> _Traced:
        return x.bound(ir.BitCast(x.value, type, span=x.value.span))

    def choose(self, condition: _Traced, a: Any, b: Any) -> _Traced:
        typed: _Traced = a if isinstance(a, _Traced) else b
        then, orelse = typed.same(a), typed.same(b)
        return typed.bound(select(condition.value, then, orelse))


_OPERATIONS: Final = _Operations()


@dataclass(frozen=True, slots=True)
class _Place:
    """A word in memory, and the lane of a number in an array of numbers in words."""

    word: Word
    place: ir.Element
    lane: Bits


def _places(t: Trace, ref: ElementRef, span: Span) -> dict[Member, _Place]:
    """Where each of the numbers of ``ref`` is."""
    field, found = ref.array.packed, dict[Member, _Place]()
    words, name = t.deps.attribute(field, "words"), t.deps.text(field) or field.described
    index, lane = _in_words(t, ref, words[0].word.scalar, span)
    for number in ref.numbers:
        array = field_ref(t, words[number], name)
        place = ir.Element(array.name, index, 0, array.scalar, span=span)
        found[field.members[number]] = _Place(words[number].word, place, lane)
        if t.loop is not None and (words[number].word.is_array or len(words[number].word.members) > 1):
            t.loop.allowed[array.name] = _REASON
    return found


def _in_words(t: Trace, ref: ElementRef, scalar: Scalar, span: Span) -> tuple[tuple[ir.Expr, ...], Bits]:
    """The index of the word, and the lane."""
    field = ref.array.packed
    if not field.lanes:
        return ref.index, 0
    lane: Any = _Traced(t, literal(0, scalar, span))
    kept: list[ir.Expr] = []
    levels = ref.array.blocks or tuple((extent,) for extent in field.shape)
    rest = list(ref.index)
    for extents, own in zip(levels, field.lanes, strict=True):
        here, rest = rest[: len(extents)], rest[len(extents) :]
        if own.step:  # the last level of the axis is in the words
            lane = lane + _OPERATIONS.convert(_Traced(t, here.pop()), scalar) * own.step
        kept += here
    return tuple(kept), lane


def packed_numbers(t: Trace, ref: ElementRef, span: Span) -> list[ir.Expr]:
    """The numbers of ``ref``."""
    with quietly(t):
        places = _places(t, ref, span)
        words = {at.place.array: _Traced(t, t.build.load(at.place, span, "word")) for at in places.values()}
        return [
            at.word.value(_OPERATIONS, words[at.place.array], member, at.lane).value for member, at in places.items()
        ]


def pack_numbers(t: Trace, ref: ElementRef, items: Sequence[ir.Expr], span: Span) -> None:
    """Stores the numbers of ``ref``, which are then in the words."""
    items = [t.build.let(item) for item in items]
    with quietly(t):
        places = _places(t, ref, span)
        for at, members in _by_word(places):
            values = {member: items[list(places).index(member)] for member in members}
            traced = {member: _Traced(t, value) for member, value in values.items()}
            if at.word.is_whole(traced):
                new = at.word.with_values(_OPERATIONS, None, traced)
                t.build.emit(ir.Store(at.place, new.value, span=span))
            else:
                _exchange(t, at, {member: _constant(value) for member, value in values.items()}, span, in_launch=True)


def change_packed(
    t: Trace, ref: ElementRef, changes: Sequence[Change], span: Span, *, in_launch: bool
) -> list[ir.Expr]:
    """Changes each of the numbers of ``ref``; their old values."""
    with quietly(t):
        places, olds = _places(t, ref, span), dict[Member, ir.Expr]()
        for at, members in _by_word(places):
            if t.loop is not None:
                t.loop.allowed[at.place.array] = _REASON
            word = _exchange(
                t, at, {each: changes[list(places).index(each)] for each in members}, span, in_launch=in_launch
            )
            olds |= {each: at.word.value(_OPERATIONS, word, each, at.lane).value for each in members}
        return [olds[member] for member in places]


def _by_word(places: Mapping[Member, _Place]) -> list[tuple[_Place, list[Member]]]:
    found: dict[str, tuple[_Place, list[Member]]] = {}
    for member, at in places.items():
        found.setdefault(at.place.array, (at, []))[1].append(member)
    return list(found.values())


def _constant(value: ir.Expr) -> Change:
    return lambda old: value


def _exchange(t: Trace, at: _Place, changes: Mapping[Member, Change], span: Span, *, in_launch: bool) -> _Traced:
    """Changes parts of a word in one step, by as many attempts as other iterations make necessary; the old word."""
    seen, found = (t.build.var(name, at.place.type, mutable=True) for name in ("word", "now"))
    t.build.assign(seen, t.build.load(at.place, span, "word"), span)
    with t.build.block() as attempt:
        old = _Traced(t, t.build.let(ir.VarRead(seen, span=span)))
        values = {
            member: _Traced(t, change(at.word.value(_OPERATIONS, old, member, at.lane).value))
            for member, change in changes.items()
        }
        new = at.word.with_values(_OPERATIONS, old, values, at.lane)
        met = t.build.var("met", at.place.type)
        t.build.emit(ir.Atomic(ir.AtomicOp.CAS, at.place, new.value, met, old.value, in_launch, span=span))
        t.build.assign(found, ir.VarRead(met, span=span), span)
    seen_now, found_now = (ir.VarRead(var, span=span) for var in (seen, found))
    missed = found_now.ne(seen_now)  # where updates become plain, it is known to be false
    again = ir.Block((ir.Assign(seen, found_now, span=span),), span=span)
    t.build.emit(ir.While(ir.Block(tuple(attempt), span=span), missed, again, span=span))
    return _Traced(t, t.build.let(seen_now))
