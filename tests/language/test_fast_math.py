"""``fast_math``: to a tolerance on every backend, with the hardware's own functions on GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS, parse_target
from quadpy.jit.offline import trace_for

A = qp.types.ndarray(dtype=qp.f32, ndim=1)
NAMES = ("sin", "cos", "tan", "exp", "exp2", "exp10", "log", "log2", "log10", "rsqrt")


@qp.kernel
def functions(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = qp.sin(x[i])
        y[1, i] = qp.cos(x[i])
        y[2, i] = qp.tan(x[i])
        y[3, i] = qp.exp(x[i])
        y[4, i] = qp.exp2(x[i])
        y[5, i] = qp.exp10(x[i])
        y[6, i] = qp.log(x[i])
        y[7, i] = qp.log2(x[i])
        y[8, i] = qp.log10(x[i])
        y[9, i] = qp.rsqrt(x[i])


@qp.kernel
def powers(x: A, y: A, z: A):
    for i in range(x.shape[0]):
        z[i] = x[i] ** y[i]


@pytest.fixture(autouse=True)
def fast(init):
    init(fast_math=True)


def test_functions_to_a_tolerance():
    given = np.linspace(0.05, 3, 500, dtype=np.float32)
    found = np.zeros((len(NAMES), given.size), np.float32)
    functions(given, found)
    x = given.astype(np.float64)
    want = [np.sin(x), np.cos(x), np.tan(x), np.exp(x), np.exp2(x), 10**x, np.log(x), np.log2(x), np.log10(x), x**-0.5]
    for name, row, exact in zip(NAMES, found, want, strict=True):
        np.testing.assert_allclose(row, exact, rtol=2e-5, atol=4e-6, err_msg=name)


def test_powers_keep_their_signs():
    x = np.array([2, 2, -2, -2, -2, 0.5, 3, -1.5, 7, 0], np.float32)
    y = np.array([3, -1.5, 3, 2, 0.5, 10, 0, -3, 1, 2], np.float32)
    found = np.zeros_like(x)
    powers(x, y, found)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, np.power(x, y), rtol=2e-5)


def test_powers_of_all_sizes():
    rng = np.random.default_rng(2)
    x = np.exp(rng.uniform(-80, 80, 20_000)).astype(np.float32)
    y = (rng.uniform(-1, 1, x.size) * 100 / np.maximum(1, abs(np.log(x)))).astype(np.float32)
    found = np.zeros_like(x)
    powers(x, y, found)
    with np.errstate(over="ignore"):
        want = (x.astype(np.float64) ** y).astype(np.float32)
    normal = np.isfinite(want) & (abs(want) > 1e-37)
    np.testing.assert_allclose(found[normal], want[normal], rtol=2e-5)
    assert (np.isinf(found) == np.isinf(want)).mean() > 0.999


def test_special_powers():
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan], np.float32)
    x, y = (side.ravel().copy() for side in np.meshgrid(values, values))
    found = np.zeros_like(x)
    powers(x, y, found)
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    at_limits = np.isfinite(x) & np.isfinite(y)  # the others are the hardware's on a GPU
    np.testing.assert_allclose(found[at_limits & (x != 0)], want[at_limits & (x != 0)], rtol=2e-5)


@qp.kernel
def whole_powers(x: A, y: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = x[i] ** 5.0
        y[1, i] = x[i] ** -3.0
        y[2, i] = x[i] ** 0.0
        y[3, i] = x[i] ** 1.0


def test_whole_powers_are_products():
    x = np.array([0.5, -0.5, 3, -7, 1.25], np.float32)
    y = np.zeros((4, x.size), np.float32)
    whole_powers(x, y)
    for row, exponent in zip(y, (5, -3, 0, 1), strict=True):
        np.testing.assert_allclose(row, x.astype(np.float64) ** exponent, rtol=1e-6)


@pytest.mark.parametrize(("target", "instruction"), [("sm_90", "sin.approx.ftz.f32"), ("gfx942", "")])
def test_gpus_use_their_own_functions(target, instruction):
    assert instruction.encode() in functions.compile(target).image


@qp.kernel
def rotated(x: A, y: qp.types.ndarray(dtype=qp.types.vector(3, qp.f32), ndim=1)):
    for i in x:
        v = x[i]
        s, c = qp.sin(v), qp.cos(v)
        y[i] = qp.Matrix([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ y[i]


@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_90"])
def test_sine_and_cosine_are_computed_together(target):
    text = text_of(rotated, target)
    body = text[text.index("@fn.fast_sincos.f32(") :].partition("\n}\n")[0]
    if target == "cpu":
        assert "llvm.sin" not in body
    else:
        assert ".sin" in body
        assert ".cos" in body
        assert body.count("\n") < 9, "the instructions alone"
    assert not [line for line in text.splitlines() if "call" in line and "@fn.fast_sin." in line]


def test_products_with_a_literal_zero_are_zero():
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    y = np.ones((40, 3), np.float32)
    rotated(x, y)
    np.testing.assert_allclose(y.T, [np.cos(x) + np.sin(x), np.cos(x) - np.sin(x), np.ones(40)], rtol=2e-5, atol=1e-6)
    assert text_of(rotated, "cpu").count(" = fmul reassoc") == 5, "one of them with the literal 1"


def text_of(kernel, name):
    target = parse_target(name)
    return lower(trace_for(kernel, {}, target).kernel, target)


@pytest.mark.parametrize("target", [*AMD_ARCHS, *NVIDIA_ARCHS])
def test_every_gpu_has_them(target):
    assert functions.compile(target).image
    assert powers.compile(target).image
