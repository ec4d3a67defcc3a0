"""Logarithms, powers, sines and tangents of f32 under ``fast_math`` on the CPU: their bounds, and the special values of the others."""

from __future__ import annotations

import numpy as np
import pytest
from samples import ulp_error

import quadpy as qp
from quadpy.core.dtypes import f32, f64
from quadpy.mathlib.registry import fast_lookup, lookup

A = qp.types.ndarray(dtype=qp.f32, ndim=1)
LOGARITHMS = {"log": np.log, "log2": np.log2, "log10": np.log10}
TURNS = {"sin": np.sin, "cos": np.cos, "tan": np.tan}


@pytest.fixture(autouse=True)
def fast():
    qp.init(arch=qp.cpu, fast_math=True)
    yield
    qp.init(arch=qp.cpu)


@qp.kernel
def vectorised(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        y[0, i] = qp.log(x[i])
        y[1, i] = qp.log2(x[i])
        y[2, i] = qp.log10(x[i])


@qp.kernel
def one_by_one(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        k = 0
        while k < 1:
            y[0, i] = qp.log(x[i])
            y[1, i] = qp.log2(x[i])
            y[2, i] = qp.log10(x[i])
            k += 1


@qp.kernel
def turns(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        y[0, i] = qp.sin(x[i])
        y[1, i] = qp.cos(x[i] + 0.0)  # not paired with the sine
        y[2, i] = qp.tan(x[i])
        y[3, i], y[4, i] = qp.sincos(x[i])


@qp.kernel
def turns_one_by_one(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        k = 0
        while k < 1:
            y[0, i] = qp.sin(x[i])
            y[1, i] = qp.cos(x[i])
            y[2, i] = qp.tan(x[i])
            y[3, i], y[4, i] = qp.sincos(x[i])
            k += 1


@qp.kernel
def powers(x: A, y: A, z: A):
    for i in x:
        z[i] = x[i] ** y[i]


@qp.kernel
def powers_one_by_one(x: A, y: A, z: A):
    for i in x:
        k = 0
        while k < 1:
            z[i] = x[i] ** y[i]
            k += 1


@qp.kernel
def halves(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        y[0, i] = x[i] ** 0.5
        y[1, i] = x[i] ** -0.5
        y[2, i] = x[i] ** 2.5
        y[3, i] = x[i] ** -3.5


def floats(first, last, step):
    return np.arange(first, last, step, dtype=np.uint32).view(np.float32)


@pytest.mark.parametrize("kernel", [vectorised, one_by_one])
def test_logarithms_are_within_their_bounds(kernel):
    near_one, all_of_them = floats(0x3F000000, 0x40000000, 59), floats(1, 0x7F800000, 8009)
    x = np.concatenate([near_one, all_of_them, [np.float32(1)]])
    found = np.zeros((3, x.size), np.float32)
    kernel(x, found)
    for row, (name, exact) in zip(found, LOGARITHMS.items(), strict=True):
        bound = fast_lookup(name, (f32,)).error_ulp
        assert bound > lookup(name, (f32,)).error_ulp
        assert ulp_error(row, exact(x.astype(np.float64))).max() <= bound, name


@pytest.mark.parametrize("kernel", [vectorised, one_by_one])
def test_logarithms_of_special_values(kernel):
    x = np.array([0.0, -0.0, -1.0, -1e-40, np.inf, -np.inf, np.nan, 1.0, 8.0], np.float32)
    found = np.zeros((3, x.size), np.float32)
    kernel(x, found)
    with np.errstate(all="ignore"):
        for row, exact in zip(found, LOGARITHMS.values(), strict=True):
            np.testing.assert_allclose(row, exact(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("kernel", [turns, turns_one_by_one])
def test_sines_are_within_their_bounds(kernel):
    near, all_of_them = floats(0x3F000000, 0x47800000, 1009), floats(1, 0x7F800000, 8009)
    multiples = (np.arange(1, 40_000) * (np.pi / 2)).astype(np.float32)  # where sines and cosines are near 0
    x = np.concatenate([near, all_of_them, multiples])
    x = np.concatenate([x, -x])
    found = np.zeros((5, x.size), np.float32)
    kernel(x, found)
    for row, (name, exact) in zip(found, TURNS.items(), strict=False):
        bound = fast_lookup(name, (f32,)).error_ulp
        assert bound > lookup(name, (f32,)).error_ulp
        assert ulp_error(row, exact(x.astype(np.float64))).max() <= bound, name
    np.testing.assert_array_equal(found[3:], found[:2])


@pytest.mark.parametrize("kernel", [turns, turns_one_by_one])
def test_sines_of_special_values(kernel):
    x = np.array([0.0, -0.0, 1e-40, np.inf, -np.inf, np.nan], np.float32)
    found = np.zeros((5, x.size), np.float32)
    kernel(x, found)
    with np.errstate(all="ignore"):
        for row, exact in zip(found, TURNS.values(), strict=False):
            np.testing.assert_allclose(row, exact(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("kernel", [powers, powers_one_by_one])
@pytest.mark.parametrize("largest", [0.3, 2.5, 10, 200])
def test_powers_are_within_their_bound(kernel, largest):
    rng = np.random.default_rng(1)
    x = np.exp(rng.uniform(-1, 1, 40_000) * min(80, 87 / largest)).astype(np.float32)
    y = (rng.uniform(-1, 1, x.size) * largest).astype(np.float32)
    found = np.zeros_like(x)
    kernel(x, y, found)
    exact = x.astype(np.float64) ** y
    normal = (exact < 3.4e38) & (exact > 1.2e-38)
    assert (ulp_error(found, exact)[normal] <= 2 + abs(y[normal])).all()


@pytest.mark.parametrize("kernel", [powers, powers_one_by_one])
def test_powers_of_special_values(kernel):
    values = [0.0, 1.0, 0.5, 2.0, 3.0, np.inf, np.nan, 1e-40, 3e38, 1 + 2.0**-23]
    values = np.array([*values, *np.negative(values)], np.float32)
    x, y = (side.ravel().copy() for side in np.meshgrid(values, values))
    found = np.zeros_like(x)
    kernel(x, y, found)
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    np.testing.assert_allclose(found, want, rtol=1e-4)
    np.testing.assert_array_equal(np.signbit(found[want == 0]), np.signbit(want[want == 0]))


def test_powers_with_a_half_in_the_text_take_a_root():
    x = floats(0x20000000, 0x5F000000, 100_003)
    y = np.zeros((4, x.size), np.float32)
    halves(x, y)
    for row, exponent in zip(y, (0.5, -0.5, 2.5, -3.5), strict=True):
        exact = x.astype(np.float64) ** exponent
        normal = (exact < 3.4e38) & (exact > 1.2e-38)
        np.testing.assert_allclose(row[normal], exact[normal], rtol=5e-7)


def test_other_functions_are_those_of_strict_kernels():
    for name, types in (
        ("asin", (f32,)),
        ("sin", (f64,)),
        ("log", (f64,)),
        ("pow", (f64, f64)),
        ("no_such_function", (f32,)),
    ):
        assert fast_lookup(name, types) is lookup(name, types)
