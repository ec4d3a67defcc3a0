"""Prints the polynomial coefficients of ``quadpy/mathlib`` as Python source.

Usage: ``python tools/mathlib/coefficients.py [NAME ...]``; without names, all of them.
A name is that of the constant with the width that it is for.
Each spec gives the function to approximate as the library evaluates it, and the weight that turns
its error into a relative error of the final result.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import mpmath as mp
import numpy as np
from remez import Function, minimax

mp.mp.dps = 50
HALF_LN2 = 0.34659  # slightly above ln(2)/2: the quotient is rounded from an inexact product
QUARTER_PI_SQUARED = 0.61700
LOG_LOW, LOG_HIGH = -0.29290, 0.41422


@dataclass(frozen=True)
class Spec:
    """One polynomial: ``g`` on [low, high] with ``weight``, in ``bits`` wide coefficients."""

    g: Function
    weight: Function
    low: float
    high: float
    degree: int
    bits: int


def _odd(fn: Function) -> tuple[Function, Function]:
    """For ``fn(x) = x + x**3 * g(x**2)``: g and its weight, over z = x**2."""

    def g(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return (fn(x) / x - 1) / z

    def weight(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return z * x / fn(x)

    return g, weight


def _exp(r: mp.mpf) -> mp.mpf:
    """``e**r = 1 + r + r**2 * g(r)``."""
    return (mp.expm1(r) - r) / r**2


def _exp_weight(r: mp.mpf) -> mp.mpf:
    return r**2 / mp.exp(r)


def _logarithm(base: mp.mpf, linear: float, skip: int) -> tuple[Function, Function]:
    """For ``log_base(1 + f) = linear*f + f**skip * g(f)``: g and weight."""

    def log(f: mp.mpf) -> mp.mpf:
        return mp.log1p(f) / mp.log(base)

    return (lambda f: (log(f) - linear * f) / f**skip), (lambda f: f**skip / log(f))


def _cos(z: mp.mpf) -> mp.mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def _cos_weight(z: mp.mpf) -> mp.mpf:
    return z**2 / mp.cos(mp.sqrt(z))


def _log_series(z: mp.mpf) -> mp.mpf:
    """``2*atanh(s)/s = 2 + z*g(z)`` over z = s**2."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def _pow_series(z: mp.mpf) -> mp.mpf:
    """``2*atanh(s)/s = 2 + 2/3*z + z**2 * g(z)`` over z = s**2."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2 - z * 2 / 3) / z**2


def _erf(z: mp.mpf) -> mp.mpf:
    """``erf(x) = x + x * g(x**2)``."""
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def _erfc(t: mp.mpf) -> mp.mpf:
    """``(1 + 2*x) * e**(x**2) * erfc(x)`` over t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _bessel_near(order: int) -> tuple[Function, Function]:
    """For ``J(x) = x**order * (x**2 - z1**2) * (x**2 - z2**2) * g(v)``, over v = 1 - x**2/64: x up to 8.

    All zeros of g are below 0, so that no coefficient is.
    """
    zeros = [mp.besseljzero(order, k) for k in (1, 2)]

    def g(v: mp.mpf) -> mp.mpf:
        x = 8 * mp.sqrt(1 - v)
        return mp.besselj(order, x) / x**order / (x**2 - zeros[0] ** 2) / (x**2 - zeros[1] ** 2)

    return g, lambda v: 1 / g(v)


def _bessel_small(order: int) -> tuple[Function, Function]:
    """For ``J(x) = (x/2)**order * (1 + z * g(z))``, over z = x**2: x up to 1.5."""

    def ratio(z: mp.mpf) -> mp.mpf:
        return mp.hyp0f1(order + 1, -z / 4)

    return (lambda z: (ratio(z) - 1) / z), (lambda z: z / ratio(z))


def _bessel_x(u: mp.mpf) -> mp.mpf:
    """From 8 on, over u = 128/x**2 - 1."""
    return mp.sqrt(128 / (u + 1))


def _bessel_modulus(order: int) -> tuple[Function, Function]:
    """For ``J(x) = g(u) / sqrt(x) * cos(x - order*pi/2 - pi/4 + phase)``."""

    def g(u: mp.mpf) -> mp.mpf:
        x = _bessel_x(u)
        return abs(mp.hankel1(order, x)) * mp.sqrt(x)

    return g, lambda u: mp.mpf(1)


def _bessel_phase(order: int) -> tuple[Function, Function]:
    """``phase * x`` of the above."""

    def g(u: mp.mpf) -> mp.mpf:
        x = _bessel_x(u)
        return mp.arg(mp.hankel1(order, x) * mp.expj(mp.pi / 4 + order * mp.pi / 2 - x)) * x

    return g, lambda u: mp.mpf(1)


E, TWO, TEN = mp.e, mp.mpf(2), mp.mpf(10)
SPECS = {
    "EXP_F32": Spec(_exp, _exp_weight, -HALF_LN2, HALF_LN2, 4, 32),
    "EXP_F64": Spec(_exp, _exp_weight, -HALF_LN2, HALF_LN2, 9, 64),
    "LOG_F32": Spec(*_logarithm(E, 1, 2), LOG_LOW, LOG_HIGH, 8, 32),
    "LOG2_F32": Spec(*_logarithm(TWO, 1, 1), LOG_LOW, LOG_HIGH, 9, 32),
    "LOG10_F32": Spec(*_logarithm(TEN, 0.5, 1), LOG_LOW, LOG_HIGH, 9, 32),
    "LOG_F64": Spec(_log_series, lambda z: z / 2, 0, 0.02944, 6, 64),
    "QUOTIENT_F32": Spec(lambda f: 1 / (2 + f), lambda f: 2 + f, LOG_LOW, LOG_HIGH, 5, 32),
    "POW_F32": Spec(_pow_series, lambda z: z**2 / 2, 0, 0.02945, 2, 32),
    "POW_F64": Spec(_pow_series, lambda z: z**2 / 2, 0, 0.02945, 6, 64),
    "SIN_F32": Spec(*_odd(mp.sin), 0, QUARTER_PI_SQUARED, 2, 32),
    "SIN_F64": Spec(*_odd(mp.sin), 0, QUARTER_PI_SQUARED, 5, 64),
    "COS_F32": Spec(_cos, _cos_weight, 0, QUARTER_PI_SQUARED, 2, 32),
    "COS_F64": Spec(_cos, _cos_weight, 0, QUARTER_PI_SQUARED, 5, 64),
    "ASIN_F32": Spec(*_odd(mp.asin), 0, 0.25, 4, 32),
    "ASIN_F64": Spec(*_odd(mp.asin), 0, 0.25, 12, 64),
    "ATAN_F32": Spec(*_odd(mp.atan), 0, 1, 8, 32),
    "ATAN_F64": Spec(*_odd(mp.atan), 0, 1, 19, 64),
    "TANH_F32": Spec(*_odd(mp.tanh), 0, 0.64, 5, 32),
    "TANH_F64": Spec(*_odd(mp.tanh), 0, 0.64, 12, 64),
    "ASINH_F32": Spec(*_odd(mp.asinh), 0, 0.25, 4, 32),
    "ASINH_F64": Spec(*_odd(mp.asinh), 0, 0.25, 11, 64),
    "ATANH_F32": Spec(*_odd(mp.atanh), 0, 0.25, 5, 32),
    "ATANH_F64": Spec(*_odd(mp.atanh), 0, 0.25, 12, 64),
    "SINH_F32": Spec(*_odd(mp.sinh), 0, 1, 3, 32),
    "SINH_F64": Spec(*_odd(mp.sinh), 0, 1, 6, 64),
    "ERF_F32": Spec(_erf, lambda z: 1 / (1 + _erf(z)), 0, 0.75, 5, 32),
    "ERF_F64": Spec(_erf, lambda z: 1 / (1 + _erf(z)), 0, 0.75, 11, 64),
    "ERFC_F32": Spec(_erfc, lambda t: 1 / _erfc(t), -1, 0.44, 10, 32),  # x up to 10.3
    "ERFC_F64": Spec(_erfc, lambda t: 1 / _erfc(t), -1, 0.75, 23, 64),  # x up to 28
    **{
        f"{name}{order}_F{bits}": Spec(*parts(order), low, high, degree, bits)
        for name, parts, low, high, *degrees in (
            ("SMALL", _bessel_small, 0, 2.25, 3, 7),
            ("NEAR", _bessel_near, 0, 0.965, 8, 14),
            ("MODULUS", _bessel_modulus, -1, 1, 3, 12),
            ("PHASE", _bessel_phase, -1, 1, 3, 12),
        )
        for order in (0, 1)
        for bits, degree in zip((32, 64), degrees, strict=True)
    },
}


def rounded(value: mp.mpf, bits: int) -> float:
    """``value`` in the target type, as the Python float that denotes it exactly."""
    return float(np.float32(float(value))) if bits == 32 else float(value)


def main(names: list[str]) -> None:
    for name in names or list(SPECS):
        spec = SPECS[name]
        coefficients, error = minimax(spec.g, spec.weight, spec.low, spec.high, spec.degree)
        print(f"{name} = (  # relative error 2**{float(mp.log(error, 2)):.1f}")
        for c in coefficients:
            print(f"    {rounded(c, spec.bits)!r},")
        print(")")


if __name__ == "__main__":
    main(sys.argv[1:])
