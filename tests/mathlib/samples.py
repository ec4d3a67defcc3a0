"""Arguments to try library functions on, and how far a result is from the exact one."""

from __future__ import annotations

import mpmath as mp
import numpy as np

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]


def spread(dtype, count, seed=1):
    """All binades, both signs, evenly in the bits; the neighbours of powers of two; halves and eighths; special values."""
    kind = np.uint32 if dtype == np.float32 else np.uint64
    bits = np.random.default_rng(seed).integers(0, np.iinfo(kind).max, count, dtype=kind, endpoint=True)
    values = bits.view(dtype)
    numbers = values[~np.isnan(values)]  # SPECIAL holds the one NaN that counts
    eighths = np.arange(-100, 101, dtype=dtype) / 8
    return np.concatenate([numbers, *_edges(dtype), eighths, np.array(SPECIAL, dtype)])


def around(dtype, low, high, count, seed=2):
    """Evenly distributed arguments, and everything that ``spread`` gives."""
    inside = np.random.default_rng(seed).uniform(low, high, count).astype(dtype)
    return np.concatenate([inside, spread(dtype, count)])


def _edges(dtype):
    info = np.finfo(dtype)
    powers = np.ldexp(dtype(1), np.arange(info.minexp - info.nmant, info.maxexp, 3))
    near = [powers, np.nextafter(powers, dtype(0)), np.nextafter(powers, dtype(np.inf))]
    return [*near, *(-x for x in near)]


def ulp_error(result, exact, least=0.0):
    """``|result - exact|`` in ulp of the result's type; infinite where a special value is not met.

    An ulp is that of ``exact``, or of ``least`` where ``exact`` is smaller.  ``exact`` has more bits than ``result``.  An overflow is right where the exact value rounds to infinity
    or lies within an ulp of that.
    """
    info = np.finfo(result.dtype)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.maximum(np.abs(np.where(np.isfinite(exact), exact, 1)), least))
        spacing = np.ldexp(np.ones_like(exact), np.maximum(exponent - 1, info.minexp) - info.nmant)
        error = np.abs(result.astype(exact.dtype) - exact) / spacing
        overflown = np.isinf(result) & (np.abs(exact) > info.max.astype(exact.dtype) - 2 * spacing)
        overflown &= np.signbit(result) == np.signbit(exact)
    same = (result == exact) | (np.isnan(result) & np.isnan(exact))
    return np.where(same | overflown, 0, np.where(np.isfinite(error), error, np.inf)).astype(np.float64)


def exact_f64(fn, *arguments):
    """mpmath's ``fn`` of each argument as longdouble, which has 11 bits more than the results compared."""
    with mp.workprec(1300):  # enough to reduce the largest argument of a sine
        return np.array([_exact(fn, row) for row in zip(*(a.tolist() for a in arguments), strict=True)], np.longdouble)


def _exact(fn, row):
    if any(x != x for x in row):
        return np.longdouble("nan")
    value = fn(*(mp.mpf(x) for x in row))
    if isinstance(value, mp.mpc) or mp.isnan(value):
        return np.longdouble("nan")
    if mp.isinf(value) or value == 0:
        return np.longdouble(float(value))
    mantissa, exponent = mp.frexp(value)
    high = float(mantissa)
    return np.ldexp(np.longdouble(high) + np.longdouble(float(mantissa - mp.mpf(high))), max(int(exponent), -20000))
