"""Tangents of kernels as users write them against finite differences, and adjoints against tangents."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import Runnable, check_both, tangent_of, traced

import quadpy as qp
from quadpy.errors import KernelTypeError

vec = qp.types.ndarray(qp.f64, ndim=1)
ints = qp.types.ndarray(qp.i32, ndim=1)
pairs = qp.types.ndarray(qp.types.vector(2, qp.f64), ndim=1)


@pytest.fixture(autouse=True, scope="module")
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


@pytest.fixture
def numbers():
    random = np.random.default_rng(7)
    return {name: random.uniform(0.2, 0.9, 6) for name in "xyz"}


ONE = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "exp", "exp2", "exp10", "expm1",
       "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "j0", "j1", "abs"]  # fmt: skip
TWO = ["atan2", "hypot", "pow", "fmod", "copysign", "min", "max"]
ALL = ["x", "y", "z"]


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name, numbers):
    f = getattr(qp, name, None) or getattr(qp.math, name)

    @qp.kernel
    def k(x: vec, y: vec, z: vec):
        for i in x:
            z[i] += f(x[i]) + f(-x[i] + 1.0) * f(y[i])

    check_both(traced(k), ALL, numbers)


def test_acosh(numbers):
    @qp.kernel
    def k(x: vec, y: vec, z: vec):
        for i in x:
            z[i] = qp.math.acosh(1.0 + x[i]) / y[i]

    check_both(traced(k), ALL, numbers)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name, numbers):
    f = getattr(qp, name, None) or getattr(qp.math, name)

    @qp.kernel
    def k(x: vec, y: vec, z: vec):
        for i in x:
            z[i] = f(x[i], y[i]) * f(2.0 * y[i], 0.3 * x[i])

    check_both(traced(k), ALL, numbers)


def test_powers(numbers):
    @qp.kernel
    def k(x: vec, y: vec, z: vec):
        for i in x:
            z[i] = (-x[i]) ** y[i] + x[i] ** 3.0 + x[i] ** 2 + x[i] ** (0 * i) * qp.math.pow(x[i], 0.0) + 2.0 ** y[i]

    check_both(traced(k), ALL, {**numbers, "x": -numbers["x"]})


def test_python_operators(numbers):
    @qp.kernel
    def k(x: vec, y: vec, z: vec):
        for i in x:
            r = x[i] % 0.13 + (-x[i]) % y[i] + x[i] // 0.21 + x[i] / (y[i] - 3.0)
            z[i] = r - qp.floor(x[i] * 7.0) + qp.math.fma(x[i], y[i], x[i]) * qp.math.sin(r) * qp.cos(r)

    check_both(traced(k), ALL, numbers, step=1e-5)


@qp.func
def clipped(a):
    if a > 0.6:
        return 0.6 * a * a
    return a


@qp.real_func
def series(a: qp.f64, n: qp.i32) -> qp.f64:
    total, term = 0.0, 1.0
    for k in range(n):
        term = term * a
        if k % 2 == 1:
            continue
        if term < 0.01:
            return total * total
        total += term
    return total


def test_loops_that_are_left(numbers):
    @qp.kernel
    def k(x: vec, y: vec, z: vec, n: ints):
        for i in x:
            acc = clipped(x[i])
            for _ in range(n[i]):
                acc *= x[i] + 1.0
                if acc > 3.0:
                    break
                if acc > 2.0:
                    continue
                acc = acc + x[i] * x[i]
            while acc > 0.5:
                acc = acc * 0.7 - 0.01 * x[i]
            a, b = acc, y[i]
            for _ in range(3):
                a, b = b, a * x[i]
            z[i] *= 3.0
            z[i] += series(acc + a, 9) * b

    check_both(traced(k), ALL, {**numbers, "n": np.arange(6, dtype=np.int32)}, step=1e-5)


def test_sums_over_all_iterations(numbers):
    @qp.kernel
    def k(x: vec, y: vec, z: vec) -> qp.f64:
        total = 0.0
        for i in x:
            total += x[i] * x[i]
        mean = total / x.shape[0]
        for i in x:
            z[i] -= mean * qp.sin(x[i]) + qp.cos(y[i])
        for i in x:
            z[0] += x[i] ** 2
        return mean * total

    kernel = traced(k)
    check_both(kernel, ALL, numbers)
    ways = {"x.dual": np.ones(6), "y.dual": np.zeros(6)}
    mean = np.sum(numbers["x"] ** 2) / 6
    found = Runnable(tangent_of(kernel, ["x", "y"]))(**numbers, **ways)
    np.testing.assert_allclose(found, [6 * mean * mean, 4 * mean * np.sum(numbers["x"])])


def test_vectors():
    @qp.kernel
    def k(v: pairs, y: vec):
        for i in v:
            w = v[i].normalized() * v[0].dot(v[i])
            y[i] = w.norm() + w[1]

    values = {"v": np.random.default_rng(1).uniform(0.5, 1, (1, 2)), "y": np.zeros(1)}
    check_both(traced(k), ["v", "y"], values)


def line_of(error, text):
    assert text in error.value.span.excerpt(), error.value


def test_a_conversion_to_an_integer_ends_the_derivative():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in x:
            y[i] = qp.cast(int(x[i]), qp.f64)

    with pytest.raises(KernelTypeError, match="conversion to an integer") as error:
        tangent_of(traced(k), ["x", "y"])
    line_of(error, "int(x[i])")


def test_a_temporary_array_without_a_tangent():
    @qp.kernel
    def k(x: vec, t: vec, y: vec):
        for i in x:
            t[i] = x[i] * x[i]
        for i in x:
            y[i] = t[i]

    with pytest.raises(KernelTypeError, match="t has no derivative") as error:
        tangent_of(traced(k), ["x", "y"])
    line_of(error, "t[i] = x[i]")


def test_the_old_value_of_an_atomic():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in x:
            y[i] = qp.atomic_add(y[0], x[i])

    with pytest.raises(KernelTypeError, match="old value") as error:
        tangent_of(traced(k), ["x", "y"])
    line_of(error, "atomic_add")
