"""Exact functions to compare with: from mpmath for f64, from NumPy in f64 for f32; and where to sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np
from numpy_ops import load

from quadpy.mathlib.registry import HOMES


@dataclass(frozen=True)
class Reference:
    """``wide`` maps float64 arrays, ``exact`` mpmath numbers; the densest samples lie in [low, high].

    Results below ``least`` of the argument need only be as exact as if they were that.
    """

    wide: Callable
    exact: Callable
    low: float
    high: float
    least: Callable = np.zeros_like


def _real(fn, low=-mp.inf, high=mp.inf):
    return lambda x: fn(x) if low <= x <= high else mp.nan


def _clamped(fn, limit):
    """mpmath takes forever for results that overflow by far."""
    return lambda x: fn(max(-limit, min(limit, x)))


def _log(fn):
    return lambda x: mp.nan if x < 0 else -mp.inf if x == 0 else x if x == mp.inf else fn(x)


def _finite(fn):
    return lambda x: mp.nan if mp.isinf(x) else fn(x)


def _exponential(base):
    def exact(x):
        return mp.mpf(0) if x < -5000 else mp.inf if x > 5000 else base**x

    return exact


def _atanh(x):
    return mp.inf * x if abs(x) == 1 else mp.atanh(x) if abs(x) < 1 else mp.nan


def _rsqrt(x):
    return mp.nan if x < 0 else mp.inf if x == 0 else 1 / mp.sqrt(x)


def _cbrt(x):
    return x if x == 0 or mp.isinf(x) else mp.sign(x) * mp.cbrt(abs(x))


def _expm1(x):
    return mp.mpf(-1) if x < -5000 else mp.inf if x > 5000 else mp.expm1(x)


def _log1p(x):
    return mp.nan if x < -1 else -mp.inf if x == -1 else x if x == mp.inf else mp.log1p(x)


def _scalar(exact, function):
    """A function of Python's ``math``; ``exact`` says what it is where that raises an error."""

    def value(x):
        try:
            return function(x)
        except (ValueError, OverflowError):
            return float(exact(mp.mpf(x)))

    return np.vectorize(value, otypes=[np.float64])


def _gamma(x):
    if x in (0, mp.inf):
        return mp.inf
    if x == -mp.inf or (x < 0 and x == mp.floor(x)):
        return mp.nan
    return mp.inf if x > 200 else mp.mpf(0) if x < -200 else mp.gamma(x)


def _log_gamma(x):
    if x > 1e9:  # far faster, and exact enough
        return (x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2 + 1 / (12 * x) if x < mp.inf else mp.inf
    if mp.isinf(x) or (x <= 0 and x == mp.floor(x)):
        return mp.inf
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.pi / (x * mp.sinpi(x)))) - _log_gamma(-x)


def _own(name):
    """The library's f64 version, which mpmath checks: neither Python nor NumPy has the function."""

    def wide(x):
        return getattr(load(HOMES[name], np.float64), name)(x)

    return wide


def _bessel(order):
    def exact(x):
        if mp.isinf(x):
            return mp.mpf(0)
        if abs(x) < 1e9:
            with mp.workprec(150):
                return mp.besselj(order, x)
        angle = abs(x) - (order + mp.mpf(1) / 2) * mp.pi / 2  # the first two terms: far faster, and exact enough
        waves = mp.cos(angle) - mp.sin(angle) * (4 * order**2 - 1) / (8 * abs(x))
        return mp.sqrt(2 / (mp.pi * abs(x))) * waves * (mp.sign(x) if order else 1)

    return exact


def _modulus(x):
    """What Bessel functions oscillate between, from 8 on."""
    y = np.maximum(np.abs(x), x.dtype.type(8))
    return np.where(np.abs(x) < 8, x.dtype.type(0), np.sqrt(x.dtype.type(2 / np.pi) / y))


def _mirrored_log_gamma(x):
    """Below -2, where it has zeros, it is the difference of two numbers of about this size."""
    size = np.clip(np.abs(x.astype(np.float64)), 2.0, 1e30)
    return np.where(x < -2, np.maximum(1, _scalar(_log_gamma, math.lgamma)(size)), 0).astype(x.dtype)


UNARY = {
    "exp": Reference(np.exp, _exponential(mp.e), -105, 90),
    "exp2": Reference(np.exp2, _exponential(mp.mpf(2)), -151, 130),
    "exp10": Reference(lambda x: 10.0**x, _exponential(mp.mpf(10)), -46, 40),
    "expm1": Reference(np.expm1, _expm1, -3, 3),
    "log": Reference(np.log, _log(mp.log), 0.4, 2.5),
    "log2": Reference(np.log2, _log(lambda x: mp.log(x, 2)), 0.4, 2.5),
    "log10": Reference(np.log10, _log(mp.log10), 0.4, 2.5),
    "log1p": Reference(np.log1p, _log1p, -0.9, 2),
    "sin": Reference(np.sin, _finite(mp.sin), -30, 30),
    "cos": Reference(np.cos, _finite(mp.cos), -30, 30),
    "tan": Reference(np.tan, _finite(mp.tan), -30, 30),
    "asin": Reference(np.arcsin, _real(mp.asin, -1, 1), -1, 1),
    "acos": Reference(np.arccos, _real(mp.acos, -1, 1), -1, 1),
    "atan": Reference(np.arctan, mp.atan, -4, 4),
    "sinh": Reference(np.sinh, _clamped(mp.sinh, 5000), -4, 4),
    "cosh": Reference(np.cosh, _clamped(mp.cosh, 5000), -4, 4),
    "tanh": Reference(np.tanh, _clamped(mp.tanh, 500), -3, 3),
    "asinh": Reference(np.arcsinh, mp.asinh, -3, 3),
    "acosh": Reference(np.arccosh, _real(mp.acosh, 1), 1, 4),
    "atanh": Reference(np.arctanh, _atanh, -1, 1),
    "cbrt": Reference(np.cbrt, _cbrt, -9, 9),
    "rsqrt": Reference(lambda x: 1 / np.sqrt(x), _rsqrt, 0.2, 5),
    "erf": Reference(np.vectorize(math.erf), _clamped(mp.erf, 100), -4, 4),
    "erfc": Reference(np.vectorize(math.erfc), _clamped(mp.erfc, 100), -4, 11),
    "tgamma": Reference(_scalar(_gamma, lambda x: math.gamma(x) if x else math.copysign(math.inf, x)), _gamma, -6, 9),
    "lgamma": Reference(_scalar(_log_gamma, math.lgamma), _log_gamma, 0.1, 9, least=_mirrored_log_gamma),
    "j0": Reference(_own("j0"), _bessel(0), -20, 20, least=_modulus),
    "j1": Reference(_own("j1"), _bessel(1), -20, 20, least=_modulus),
}
