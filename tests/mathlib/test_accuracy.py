"""The documented error bounds, against mpmath (f64) and float64 functions (f32)."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from numpy_ops import load
from references import UNARY
from samples import around, exact_f64, spread, ulp_error

from quadpy.core.dtypes import f32, f64
from quadpy.mathlib.registry import HOMES, lookup, overloads


def call(name, *arguments):
    """The library's function, run on NumPy arrays, and its documented bound."""
    scalar = f32 if arguments[0].dtype == np.float32 else f64
    described = lookup(name, (scalar,) * len(arguments))
    with np.errstate(all="ignore"):
        result = getattr(load(HOMES[name], arguments[0].dtype.type), name)(*arguments)
    assert result.dtype == arguments[0].dtype
    return result, described.error_ulp


def assert_within(bound, result, exact, *arguments, least=0.0):
    errors = ulp_error(result, exact, least)
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, f"{[a[worst] for a in arguments]}: {result[worst]}, exactly {exact[worst]}"


@pytest.mark.parametrize("name", UNARY)
def test_f32_is_within_its_bound(name):
    reference = UNARY[name]
    x = around(np.float32, reference.low, reference.high, 100_000)
    result, bound = call(name, x)
    with np.errstate(all="ignore"):
        exact = reference.wide(x.astype(np.float64))
    assert_within(bound, result, exact, x, least=reference.least(x))


ELEMENTARY = sorted({*UNARY, "atan2", "hypot", "pow", "sincos"} - {"tgamma", "lgamma", "j0", "j1"})


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_promise_an_ulp(name):
    assert all(function.error_ulp <= 1 for function in overloads(name))


@pytest.mark.parametrize("name", UNARY)
def test_f64_is_within_its_bound(name):
    reference = UNARY[name]
    x = around(np.float64, reference.low, reference.high, 600)
    x = x[(x != 0) | ~np.signbit(x)]  # mpmath has one zero
    result, bound = call(name, x)
    assert_within(bound, result, exact_f64(reference.exact, x), x, least=reference.least(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_functions_at_special_values(dtype):
    x = np.array([0.0, -0.0, 1.0, 2.0, -1.0, -2.0, np.inf, -np.inf, np.nan], dtype)
    inf, nan = np.inf, np.nan
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(call("tgamma", x)[0], [inf, -inf, 1, 1, nan, nan, inf, nan, nan], rtol=eps)
    np.testing.assert_array_equal(call("lgamma", x)[0], [inf, inf, 0, 0, inf, inf, inf, inf, nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rsqrt_of_zero_is_infinite_with_its_sign(dtype):
    result, _ = call("rsqrt", np.array([0.0, -0.0], dtype))
    np.testing.assert_array_equal(result, [np.inf, -np.inf])


ODD = ["expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt", "erf"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_functions_keep_the_sign_of_zero_and_tiny_arguments(name, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, tiny, -tiny], dtype)
    result, _ = call(name, x)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(x))
    if name not in ("cbrt", "erf"):  # slopes other than 1 at 0
        np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_next_to_multiples_of_half_pi(name):
    """Where the reduction cancels most: doubles nearest to k*pi/2, and the worst double of all."""
    k = np.random.default_rng(3).integers(1, 2**22, 400)
    x = np.concatenate([k * (np.pi / 2), np.ldexp([6381956970095103.0], 797), [1e22, 1e300]])
    result, bound = call(name, x)
    assert_within(bound, result, exact_f64(getattr(mp, name), x), x)
    x = x[np.abs(x) < 3e38].astype(np.float32)
    result, bound = call(name, x)
    assert_within(bound, result, UNARY[name].wide(x.astype(np.float64)), x)


def pairs(dtype, count):
    s = spread(dtype, count)
    rng = np.random.default_rng(5)
    inside = rng.uniform(-2, 2, count).astype(dtype)
    return np.concatenate([s, inside]), np.concatenate([rng.permutation(s), rng.permutation(inside)])


def test_atan2():
    y, x = pairs(np.float32, 100_000)
    result, bound = call("atan2", y, x)
    assert_within(bound, result, np.arctan2(y.astype(np.float64), x.astype(np.float64)), y, x)
    y, x = pairs(np.float64, 1000)
    result, bound = call("atan2", y, x)
    assert_within(bound, result, np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble)), y, x)


def test_hypot():
    x, y = pairs(np.float32, 100_000)
    result, bound = call("hypot", x, y)
    assert_within(bound, result, np.hypot(x.astype(np.float64), y.astype(np.float64)), x, y)
    x, y = pairs(np.float64, 10_000)
    result, bound = call("hypot", x, y)
    assert_within(bound, result, np.hypot(x.astype(np.longdouble), y.astype(np.longdouble)), x, y)


def powers(dtype, count, limit):
    """Bases and exponents whose power is in range more often than not."""
    rng = np.random.default_rng(6)
    s = spread(dtype, count)
    wide = np.exp(rng.uniform(-limit / 2, limit / 2, count))
    near_one = 1 + rng.uniform(-1e-3, 1e-3, count)
    base = np.concatenate([wide, rng.uniform(0.5, 2, count), near_one])
    exponent = rng.uniform(-limit, limit, base.size) / np.log(base)
    whole = np.rint(exponent)
    bases = np.concatenate([base, -base]).astype(dtype)
    exponents = np.concatenate([exponent, whole]).astype(dtype)
    return np.concatenate([rng.permutation(s), bases]), np.concatenate([s, exponents])


def test_pow():
    x, y = powers(np.float32, 100_000, 88)
    result, bound = call("pow", x, y)
    with np.errstate(all="ignore"):
        assert_within(bound, result, np.power(x.astype(np.longdouble), y.astype(np.longdouble)), x, y)
    x, y = powers(np.float64, 500, 700)
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0)
    x, y = x[keep], y[keep]
    result, bound = call("pow", x, y)
    exact = exact_f64(lambda a, b: mp.exp(max(-5000, min(5000, b * mp.log(a)))), x, y)
    assert_within(bound, result, exact, x, y)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_special_cases_are_those_of_ieee_754(name, dtype):
    a, b = (grid.ravel() for grid in np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype)))
    result, bound = call(name, a, b)
    with np.errstate(all="ignore"):
        exact = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}[name](
            a.astype(np.longdouble), b.astype(np.longdouble)
        )
    assert_within(bound, result, exact, a, b)
    zero = result == 0
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(exact[zero]))
