"""Sums of floats that data scatter, exact enough that their order does not matter.

Each scalar of an adjoint has three words of the launch's memory: the greatest exponent of what is added to it, which a first loop
finds, and a sum in fixed point, of one word for f32 and of two for f64, which a second loop adds to with integer atomics.  A third
loop adds the sums to the adjoint.  The last bit counts 2^-31 of the greatest value for f32 (2^-62 for f64); 2^32 values fit.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace

from quadpy.core.artifact import SHADOW
from quadpy.core.dtypes import BY_NAME, f64, i64, u64
from quadpy.ir import nodes as ir
from quadpy.ir.build import At, binary, bits, cast, converted, maximum, select
from quadpy.ir.grad.maths import Names, accurate, uncut
from quadpy.ir.grad.parts import Visit, extents_of, renamed
from quadpy.ir.passes.shadow_words import Words, words_of
from quadpy.ir.types import array_of
from quadpy.ir.walk import walk

_MANTISSA, _SPECIAL, _BIAS = {32: 23, 64: 52}, {32: 255, 64: 2047}, {32: 127, 64: 1023}
_TOP = 30
"""The greatest value of a scalar has this exponent in fixed point."""
_LOW = 32
"""Bits of the second word of f64."""
_LEAST = 31
"""Smaller exponents of f64 count as this one, so that factors are normal numbers."""


class Memory:
    """The words of a kernel's launch: those of each array, one after another."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel, self.end = kernel, kernel.shadow
        self.found: dict[str, tuple[ir.Expr, Words]] = {}

    def of(self, array: str) -> tuple[ir.Expr, Words]:
        """Where the words of ``array`` begin, and their order."""
        if array not in self.found:
            at, types = At(self.kernel.span), self.kernel.array_types
            words = words_of(array, types[array], self.kernel.index, at.span)
            begin = at.const(0, i64) if self.end is None else self.end
            self.end = words.count if self.end is None else binary(ir.BinOp.ADD, self.end, words.count)
            self.found[array] = begin, words
        return self.found[array]

    def added_to(self, kernel: ir.Kernel) -> ir.Kernel:
        if not self.found:
            return kernel
        memory = ir.ArrayParam(SHADOW, array_of(u64, 1, shape=(1 << 48,)), span=kernel.span)
        return replace(kernel, params=(*kernel.params, memory), shadow=self.end)


def exact_sums(
    kernel: ir.Kernel, part: ir.ParallelFor, sites: Container[int], names: Names, memory: Memory
) -> Iterator[ir.ParallelFor]:
    """Four loops in place of ``part``, whose only effects are the updates ``sites`` of one array."""
    return _Sums(kernel, part, sites, names, memory).loops()


class _Sums:
    def __init__(
        self, kernel: ir.Kernel, part: ir.ParallelFor, sites: Container[int], names: Names, memory: Memory
    ) -> None:
        self.kernel, self.part, self.sites, self.names, self.at = kernel, part, sites, names, At(part.span)
        places = {
            node.place.component: node.place
            for node in _atomics(part) if isinstance(node.place, ir.Element) and id(node) in sites
        }  # fmt: skip
        self.places = places
        self.array = next(iter(places.values())).array
        self.begin, self.words = memory.of(self.array)

    def loops(self) -> Iterator[ir.ParallelFor]:
        at, word = self.at, self.names.fresh("word", i64)
        clear = at.store(at.element(SHADOW, [at.read(word)], u64), at.const(0, u64))
        first = binary(ir.BinOp.ADD, self.begin, self.words.count)
        yield self.loop([at.axis(word, self.begin, first)], [clear])
        yield self.copy(self.measured)
        yield self.copy(self.added)
        ends = extents_of(self.kernel, self.array, at)
        element = [self.names.fresh("at", end.type) for end in ends]
        axes = [at.axis(var, 0, end) for var, end in zip(element, ends, strict=True)]
        yield self.loop(axes, [s for place in self.places.values() for s in self.given(place, element)])

    def loop(self, axes: Iterable[ir.Axis], body: Iterable[ir.Stmt]) -> ir.ParallelFor:
        return ir.ParallelFor(tuple(axes), self.at.block(body), span=self.at.span)

    def copy(self, change: Callable[[ir.Element, ir.Expr], Iterable[ir.Stmt]]) -> ir.ParallelFor:
        """The loop, with other statements for its updates."""

        def instead(stmt: ir.Stmt, visit: Visit) -> Iterable[ir.Stmt] | None:
            if not isinstance(stmt, ir.Atomic) or id(stmt) not in self.sites:
                return None
            place, value = visit(stmt.place), visit(stmt.value)
            return change(place, uncut(value))

        axes = tuple(replace(axis, var=self.names.fresh(axis.var.name, axis.var.type)) for axis in self.part.axes)
        new = {old.var: self.at.read(axis.var) for old, axis in zip(self.part.axes, axes, strict=True)}
        body = self.at.block(renamed(self.part.body, self.names, new, instead))
        why = ((SHADOW, "sums in fixed point do not depend on their order"),)
        return replace(self.part, axes=axes, body=body, allowed=why)

    def let(self, e: ir.Expr, like: str, out: list[ir.Stmt]) -> ir.Expr:
        out.append(self.at.let(var := self.names.fresh(like, e.type), e))
        return self.at.read(var)

    def load(self, place: ir.Element, out: list[ir.Stmt]) -> ir.Expr:
        out.append(self.at.load(var := self.names.fresh("word", place.type), place))
        return self.at.read(var)

    def word(self, place: ir.Element, number: int, out: list[ir.Stmt]) -> ir.Element:
        position = self.begin + self.words.at(place.index, place.component) + number
        return self.at.element(SHADOW, [self.let(position, "at", out)], u64)

    def exponent(self, value: ir.Expr) -> ir.Expr:
        size = value.type.bits
        whole = converted(bits(value, BY_NAME[f"u{size}"]), u64)
        return binary(ir.BinOp.USHR, whole, _MANTISSA[size]) & _SPECIAL[size]

    def power(self, exponent: ir.Expr) -> ir.Expr:
        """2 to this power, an f64."""
        return bits(binary(ir.BinOp.SHL, exponent + 1023, 52), f64)

    def scale(self, exponent: ir.Expr, size: int) -> ir.Expr:
        """The exponent, as an i64, that the greatest value of a scalar has."""
        least = exponent if size == 32 else maximum(exponent, _LEAST)
        return bits(least, i64) - _BIAS[size]

    def measured(self, place: ir.Element, value: ir.Expr) -> Iterator[ir.Stmt]:
        out: list[ir.Stmt] = []
        found = self.let(self.exponent(value), "exponent", out)
        word = self.word(place, 0, out)
        more = found > self.load(word, out)
        yield from out
        yield self.at.when(more, [self.at.update(ir.AtomicOp.MAX, word, found)])

    def added(self, place: ir.Element, value: ir.Expr) -> Iterator[ir.Stmt]:
        size, at, out = value.type.bits, self.at, list[ir.Stmt]()
        greatest = self.load(self.word(place, 0, out), out)
        sum, rest = (self.word(place, number, out) for number in (1, 2))
        yield from out
        odd: list[ir.Stmt] = []
        code = select(value.ne(value), at.const(3, u64), select(value > 0, at.const(1, u64), 2))
        is_odd = self.exponent(value).eq(_SPECIAL[size])
        odd.append(at.when(is_odd, [at.update(ir.AtomicOp.OR, sum, code)]))
        plain: list[ir.Stmt] = []
        factor = self.power(_TOP - self.scale(greatest, size))
        scaled = self.let(converted(value, f64) * factor, "scaled", plain)
        whole = self.let(ir.Unary(ir.UnOp.RINT, scaled, f64, span=at.span), "whole", plain)
        plain.append(at.update(ir.AtomicOp.ADD, sum, bits(cast(whole, i64), u64)))
        if size == 64:
            low = ir.Unary(ir.UnOp.RINT, (scaled - whole) * float(1 << _LOW), f64, span=at.span)
            plain.append(at.update(ir.AtomicOp.ADD, rest, bits(cast(low, i64), u64)))
        yield at.when(greatest.eq(_SPECIAL[size]), odd, [at.when(value.ne(0), plain)])

    def given(self, place: ir.Element, element: Iterable[ir.Var]) -> Iterator[ir.Stmt]:
        """Adds the sum of an element to it."""
        at, out = self.at, list[ir.Stmt]()
        place = replace(place, index=tuple(map(at.read, element)))
        type, size = place.type, accurate(place.type).bits
        greatest, sum = (self.load(self.word(place, number, out), out) for number in (0, 1))
        total: ir.Expr = cast(bits(sum, i64), f64)
        if size == 64:
            rest = cast(bits(self.load(self.word(place, 2, out), out), i64), f64)
            total = total + rest * (1.0 / (1 << _LOW))
        total = total * self.power(self.scale(greatest, size) - _TOP)
        odd = [at.const(v, f64) for v in (float("inf"), float("-inf"), float("nan"))]
        special = select(sum.eq(1), odd[0], select(sum.eq(2), odd[1], odd[2]))
        total = select(greatest.eq(_SPECIAL[size]), special, total)
        old = self.load(place, out)
        yield from out
        yield at.store(place, converted(converted(old, f64) + total, type))


def _atomics(part: ir.ParallelFor) -> list[ir.Atomic]:
    return [node for node in walk(part) if isinstance(node, ir.Atomic)]
