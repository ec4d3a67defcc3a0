"""Quantised numbers: fewer bits than a scalar has, several of them in a word.

A number that a type lacks is stored as the nearest one that it has, halves away from zero; integers wrap instead.  The
formulas work on whatever has Python's operators: on values of a kernel while it is compiled, and on NumPy's arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from quadpy.core.dtypes import BY_NAME, Scalar, f32, i32, u32
from quadpy.errors import ArgumentError

Bits: TypeAlias = Any
"""Numbers of one scalar type, with Python's operators."""
_SIGN, _INFINITY, _NAN, _FRACTION = 1 << 31, 0xFF << 23, 0x1FF << 22, 23
"""Parts of an f32."""


class Operations(Protocol):
    """What Python has no operators for."""

    def convert(self, x: Bits, type: Scalar) -> Bits:
        """``x`` cast as kernels do it: integers wrap, floats become the nearest integer towards zero, NaN becomes 0."""

    def bits(self, x: Bits, type: Scalar) -> Bits:
        """The bits of ``x``, as a number of a type of the same width."""

    def choose(self, condition: Bits, a: Bits, b: Bits) -> Bits: ...


class _Quantised:
    __quadpy_quantised__ = True


@dataclass(frozen=True)
class QuantInt(_Quantised):
    """Integers of ``bits`` bits; in computations they have the type ``compute``."""

    bits: int
    signed: bool
    compute: Scalar

    def encode(self, ops: Operations, value: Bits, word: Scalar) -> Bits:
        return ops.convert(value, word) & _ones(self.bits)

    def decode(self, ops: Operations, code: Bits, word: Scalar) -> Bits:
        if not self.signed:
            return ops.convert(code, self.compute)
        above = word.bits - self.bits
        return ops.convert(ops.convert(code << above, BY_NAME[f"i{word.bits}"]) >> above, self.compute)


@dataclass(frozen=True)
class QuantFixed(_Quantised):
    """Multiples of ``scale``, by integers of ``bits`` bits."""

    bits: int
    signed: bool
    compute: Scalar
    scale: float

    @property
    def _digits(self) -> QuantInt:
        return QuantInt(self.bits, self.signed, i32 if self.signed else u32)

    def encode(self, ops: Operations, value: Bits, word: Scalar) -> Bits:
        scaled, digits = value * (1.0 / self.scale), self._digits
        number = ops.convert(ops.choose(scaled < 0.0, scaled - 0.5, scaled + 0.5), digits.compute)
        last = _ones(self.bits - self.signed)
        if self.bits < digits.compute.bits:
            number = ops.choose(number > last, last, number)
            number = ops.choose(number < -last - 1, -last - 1, number) if self.signed else number
        return digits.encode(ops, number, word)

    def decode(self, ops: Operations, code: Bits, word: Scalar) -> Bits:
        return ops.convert(self._digits.decode(ops, code, word), self.compute) * self.scale


@dataclass(frozen=True)
class QuantFloat(_Quantised):
    """Floats with ``exp`` bits of exponent and ``frac`` bits of fraction, one of which is the sign if they are ``signed``.

    Numbers below the least normal one become 0, as does -0.  Only 8 bits of exponent have room for infinities and NaN.
    """

    exp: int
    frac: int
    signed: bool
    compute: Scalar

    @property
    def bits(self) -> int:
        return self.exp + self.frac

    @property
    def digits(self) -> int:
        """The bits of the fraction, without the sign."""
        return self.frac - self.signed

    @property
    def bias(self) -> int:
        """How much less the exponent is than that of an f32."""
        return 128 - (1 << (self.exp - 1))

    @property
    def last(self) -> int:
        """The exponent of the largest numbers, as an f32 has it."""
        return self.bias + _ones(self.exp)

    def admitted(self, ops: Operations, value: Bits) -> Bits:
        """``value``, or 0 in place of NaN and of negative numbers that the type does not have."""
        if not self.signed:
            return ops.choose(value > 0.0, value, 0.0)
        return ops.choose(value == value, value, 0.0) if self.exp < 8 else value

    def encode(self, ops: Operations, value: Bits, word: Scalar) -> Bits:
        raw, cut = ops.bits(self.admitted(ops, value), u32), _FRACTION - self.digits
        size = raw & (_SIGN - 1)
        near = size + (1 << cut >> 1)
        if self.exp < 8:
            largest = (self.last << _FRACTION) | _ones(_FRACTION)
            near = ops.choose(near > largest, largest, near)
        else:
            near = ops.choose(size > _INFINITY, _NAN, near)
        code = (near >> cut) - (self.bias << self.digits)
        if self.signed:
            code = code | (raw >> 31 << (self.bits - 1))
        return ops.convert(ops.choose(near < (self.bias + 1) << _FRACTION, 0, code), word)

    def decode(self, ops: Operations, code: Bits, word: Scalar) -> Bits:
        code = ops.convert(code, u32)
        size = code & _ones(self.exp + self.digits)
        raw = (size << (_FRACTION - self.digits)) + (self.bias << _FRACTION)
        if self.signed:
            raw = raw | (code >> (self.bits - 1) << 31)
        return ops.bits(ops.choose(size == 0, 0, raw), f32)

    def encode_digits(self, ops: Operations, value: Bits, top: Bits) -> Bits:
        """The fraction, with its leading 1, of an admitted number whose exponent is stored as ``top``, as an f32 has it."""
        raw, cut = ops.bits(value, u32), _FRACTION + 1 - self.digits
        own, full = _exponent(raw), _ones(_FRACTION + 1)
        digits = ops.choose(own == 0, 0, (raw & _ones(_FRACTION)) | (1 << _FRACTION))
        digits = ops.choose(own > top, full, digits >> ops.choose(own > top, 0, top - own))
        digits = digits + (1 << cut >> 1)
        digits = ops.choose(digits > full, full, digits) >> cut
        digits = ops.choose(top > self.bias, digits, 0)
        return ops.choose(digits == 0, 0, digits | (raw >> 31 << self.digits)) if self.signed else digits

    def decode_digits(self, ops: Operations, code: Bits, stored: Bits) -> Bits:
        """The number with this fraction and exponent."""
        digits = code & _ones(self.digits)
        raw = ops.bits(ops.convert(digits, f32), u32)
        exponent, least = (raw >> _FRACTION) + stored + self.bias, 126 + self.digits
        raw = raw + ((stored + self.bias) << _FRACTION) - (least << _FRACTION)
        raw = ops.choose(digits == 0, 0, ops.choose(exponent > least, raw, 0))
        if self.signed:
            raw = raw | (code >> self.digits << 31)
        return ops.bits(raw, f32)


QuantType: TypeAlias = QuantInt | QuantFixed | QuantFloat


@dataclass(eq=False)
class Member:
    """A number in a word, ``offset`` bits above its end.

    Those of ``group`` share the exponent at ``exponent``, and have only their fractions at their own offsets.
    """

    type: QuantType
    word: Word | None = None
    offset: int = 0
    exponent: int = 0
    group: tuple[Member, ...] = ()

    @property
    def bits(self) -> int:
        return self.type.frac if self.group and isinstance(self.type, QuantFloat) else self.type.bits

    @property
    def key(self) -> tuple[object, ...]:
        """What a compiled kernel depends on."""
        return self.type, self.offset, self.exponent, len(self.group)


@dataclass(eq=False)
class Word:
    """Where ``members`` are in a word of type ``scalar``.  The number ``lane`` of an array in a word is ``lane * bits`` higher."""

    scalar: Scalar
    members: list[Member] = field(default_factory=list)
    used: int = 0
    is_array: bool = False
    holder: Any = None
    """The field of such words."""

    def add(self, members: Iterable[Member], *, shares_exponent: bool) -> None:
        """Give the members bits of the word.

        Raises:
            ArgumentError: they do not fit, are in a word already, or cannot share an exponent.
        """
        added, types = tuple(members), {type(member.type) for member in members}
        exponents = {member.type.exp for member in added if isinstance(member.type, QuantFloat)}
        if shares_exponent and (types != {QuantFloat} or len(exponents) != 1 or len(added) < 2):
            raise ArgumentError(
                "only quantised floats with as many bits of exponent can share one, at least two of them",
                hint="qp.types.quant.float(exp=…, frac=…)",
            )
        for member in added:
            if member.word is not None:
                raise ArgumentError("a quantised field is placed once, or each of its components is")
            member.word, member.group = self, added if shares_exponent else ()
            member.exponent, member.offset = (
                self.used,
                self.used + (exponents.copy().pop() if shares_exponent and member is added[0] else 0),
            )
            self.used = member.offset + member.bits
        for member in added:
            member.exponent = added[0].exponent
        if self.used > self.scalar.bits:
            raise ArgumentError(
                f"the fields have {self.used} bits, but max_num_bits is {self.scalar.bits}",
                hint="use fewer bits, or more BitpackedFields",
            )
        self.members += added

    def value(self, ops: Operations, word: Bits, member: Member, lane: Bits = 0) -> Bits:
        """A number in ``word``."""
        code = (word >> (lane * member.bits + member.offset)) & _ones(member.bits)
        if not member.group or not isinstance(member.type, QuantFloat):
            return member.type.decode(ops, code, self.scalar)
        stored = (word >> member.exponent) & _ones(member.type.exp)
        return member.type.decode_digits(ops, ops.convert(code, u32), ops.convert(stored, u32))

    def with_values(self, ops: Operations, word: Bits, values: Mapping[Member, Bits], lane: Bits = 0) -> Bits:
        """``word`` with new numbers; if these are all of them, it is not looked at."""
        code, mask = None, 0
        for part, at, bits in self._codes(ops, word, values):
            code, mask = part << at if code is None else code | (part << at), mask | (_ones(bits) << at)
        assert code is not None
        if self.is_array:
            (bits,) = (member.bits for member in self.members)
            return (word & ~(mask << (lane * bits))) | (code << (lane * bits))
        return code if self.is_whole(values) else (word & (_ones(self.scalar.bits) ^ mask)) | code

    def is_whole(self, values: Mapping[Member, Bits]) -> bool:
        """Whether these are all numbers in a word."""
        return not self.is_array and len(values) == len(self.members)

    def _codes(self, ops: Operations, word: Bits, values: Mapping[Member, Bits]) -> Iterable[tuple[Bits, int, int]]:
        """What is stored where, in how many bits."""
        done = set[Member]()
        for member, value in values.items():
            if member in done:
                continue
            if not member.group:
                yield member.type.encode(ops, value, self.scalar), member.offset, member.bits
                continue
            done.update(member.group)
            yield from self._shared(ops, {
                each: values[each] if each in values else self.value(ops, word, each) for each in member.group
            })  # fmt: skip

    def _shared(self, ops: Operations, values: Mapping[Member, Bits]) -> Iterable[tuple[Bits, int, int]]:
        """The same for numbers with one exponent: that of the largest."""
        top: Bits = None
        kept: list[tuple[Member, QuantFloat, Bits]] = []
        for member, value in values.items():
            assert isinstance(member.type, QuantFloat)
            admitted = member.type.admitted(ops, value)
            exponent = _exponent(ops.bits(admitted, u32))
            top = exponent if top is None else ops.choose(exponent > top, exponent, top)
            kept.append((member, member.type, admitted))
        first, type, _ = kept[0]
        top = ops.choose(top > type.last, type.last, top)
        stored = ops.choose(top > type.bias, top - type.bias, 0)
        yield ops.convert(stored, self.scalar), first.exponent, type.exp
        for member, type, value in kept:
            yield ops.convert(type.encode_digits(ops, value, top), self.scalar), member.offset, type.frac


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def _exponent(raw: Bits) -> Bits:
    return (raw >> _FRACTION) & 0xFF
