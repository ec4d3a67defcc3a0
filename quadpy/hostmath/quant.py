"""``qp.types.quant``: types of numbers with fewer bits than a scalar, for fields."""

from __future__ import annotations

import builtins

from quadpy.core.dtypes import Scalar, f32, f64
from quadpy.core.messages import shown
from quadpy.core.public import public, require_switch
from quadpy.core.quantised import QuantFixed, QuantFloat, QuantInt
from quadpy.errors import ArgumentError
from quadpy.runtime.elements.types import ScalarLike, scalar_of

__all__ = ["fixed", "float", "int"]


@public
def int(bits: builtins.int, signed: bool = True, compute: ScalarLike | None = None) -> QuantInt:  # noqa: A001 - Taichi's name
    """Integers of ``bits`` bits, in two's complement if they are ``signed``; a number that does not fit wraps.

    Args:
        bits: at most those of ``compute``.
        signed: whether there are negative numbers.
        compute: the type of the numbers in computations; by default that of integers.
    """
    type = scalar_of(builtins.int if compute is None else compute)
    if type.kind not in ("int", "uint"):
        raise ArgumentError(f"compute={type} is not a type of integers")
    return QuantInt(_count(bits, "bits", 1, type.bits), _switch(signed), type)


@public
def fixed(
    bits: builtins.int,
    signed: bool = True,
    max_value: builtins.float = 1.0,
    compute: ScalarLike | None = None,
    scale: builtins.float | None = None,
) -> QuantFixed:
    """Multiples of a number from ``-max_value`` to ``max_value``, or from 0 if they are not ``signed``.

    A number between them is rounded to the nearest multiple, one beyond them becomes the last; NaN becomes 0.

    Args:
        bits: at most 32; there are two to that power multiples.
        signed: whether there are negative numbers.
        max_value: the first positive multiple that does not fit any more.
        compute: the type of the numbers in computations, f32 or f64; by default that of floats.
        scale: the number itself, in place of ``max_value``.
    """
    count = _count(bits, "bits", 1, 32)
    step = max_value / (1 << (count - _switch(signed))) if scale is None else scale
    if not 0 < step < builtins.float("inf"):
        raise ArgumentError("max_value and scale must be positive", hint="for example max_value=2.0")
    return QuantFixed(count, signed, _floats(compute), step)


@public
def float(exp: builtins.int, frac: builtins.int, signed: bool = True, compute: ScalarLike | None = None) -> QuantFloat:  # noqa: A001 - as above
    """Floats of ``exp + frac`` bits.

    A number is rounded to the nearest one; one that is too large becomes the largest, one that is too small becomes 0.

    Args:
        exp: the bits of the exponent, at most 8; with 8 there are infinities and NaN.
        frac: the bits of the fraction, with that of the sign: at most 23, or 24 with a sign.
        signed: whether there are negative numbers.
        compute: the type of the numbers in computations: f32.
    """
    type, has_sign = _floats(compute), _switch(signed)
    if type != f32:
        raise ArgumentError(f"compute={type}: quantised floats compute in f32")
    return QuantFloat(_count(exp, "exp", 1, 8), _count(frac, "frac", 1 + has_sign, 23 + has_sign), signed, type)


def _switch(signed: bool) -> bool:
    require_switch(signed, "signed")
    return signed


def _floats(compute: ScalarLike | None) -> Scalar:
    type = scalar_of(builtins.float if compute is None else compute)
    if type not in (f32, f64):
        raise ArgumentError(f"compute={type} is not f32 or f64")
    return type


def _count(given: object, name: str, least: builtins.int, most: builtins.int) -> builtins.int:
    if not isinstance(given, builtins.int) or not least <= given <= most:
        raise ArgumentError(f"{name}={shown(given)} must be an integer from {least} to {most}")
    return given
