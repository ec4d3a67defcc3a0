"""Math functions in kernels: names, types, vectors.  Their accuracy is tests/mathlib's matter."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
UNARY = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "exp", "exp2", "expm1",
         "log", "log2", "log10", "log1p", "sqrt", "cbrt", "erf", "erfc", "floor", "ceil", "trunc"]  # fmt: skip
BINARY = ["atan2", "hypot", "fmod", "copysign", "pow"]
SPECIAL = {"asinh": math.asinh, "exp2": math.exp2 if hasattr(math, "exp2") else lambda x: 2.0**x,
           "cbrt": math.cbrt if hasattr(math, "cbrt") else lambda x: math.copysign(abs(x) ** (1 / 3), x)}  # fmt: skip

KERNEL = """
@qp.kernel
def kernel(x: qp.types.ndarray(), y: qp.types.ndarray()):
    for i in x:
        y[i] = {call}
"""


@pytest.mark.parametrize("name", UNARY)
def test_unary(load, name):
    reference = SPECIAL.get(name) or getattr(math, name)
    x = np.array([0.1, 0.25, 0.5, 0.75, 0.99])
    kernel = load(KERNEL.format(call=f"qp.{name}(x[i])")).kernel
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 1e-6), (np.float16, 2e-3)):
        y = np.zeros(5, dtype)
        kernel(x.astype(dtype), y)
        np.testing.assert_allclose(y, [reference(v) for v in x.astype(dtype).tolist()], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BINARY)
def test_binary(load, name):
    x = np.array([-2.5, -0.5, 0.5, 1.5, 7.0]) if name != "pow" else np.array([0.5, 1.5, 2.0, 3.0, 7.0])
    y = np.zeros(5)
    load(KERNEL.format(call=f"qp.{name}(x[i], 1.75)")).kernel(x, y)
    np.testing.assert_allclose(y, [getattr(math, name)(v, 1.75) for v in x.tolist()], rtol=1e-14)


@pytest.mark.parametrize("call", ["math.sin(x[i])", "abs(x[i])", "max(x[i], 0.5, -1)", "round(x[i])", "pow(x[i], 2)"])
def test_pythons_own_functions(load, call):
    x, y = np.array([-2.5, -0.5, 0.5, 1.5, 7.0]), np.zeros(5)
    load("import math\n" + KERNEL.format(call=call)).kernel(x, y)
    want = [eval(call, {"math": math, "x": [v], "i": 0}) for v in x.tolist()]
    np.testing.assert_allclose(y, want, rtol=1e-15)


@qp.kernel
def kinds(i: qp.i32, v: qp.types.vector(2, qp.f32), y: A(qp.f64, 1)):
    y[0] = qp.sqrt(i)
    y[1] = qp.sin(v).y
    y[2] = qp.atan2(v, 1.0).x
    y[3] = qp.floor(v, qp.i32).x
    y[4] = qp.round(2.5)
    y[5] = qp.max(v)
    y[6] = qp.min(v, 0.0, 3.5).y
    y[7] = qp.abs(-i)
    y[8] = math.pi
    y[9] = math.sqrt(2)
    y[10] = qp.rsqrt(4.0)
    y[11] = qp.ceil(i)


def test_kinds_of_operands():
    y = np.zeros(12)
    kinds(9, [2.75, -4.0], y)
    f32 = np.float32
    want = [
        3,
        np.sin(f32(-4)),
        np.arctan2(f32(2.75), f32(1)),
        2,
        2,
        2.75,
        -4,
        9,
        f32(np.pi),
        f32(2) ** f32(0.5),
        0.5,
        9,
    ]
    np.testing.assert_allclose(y, want, rtol=1e-6)


@qp.kernel
def glsl(y: A(qp.f32, 1)):
    v, n = qp.Vector([1.0, -1.0]), qp.Vector([0.0, 1.0])
    y[0] = qp.math.mix(1.0, 3.0, 0.25)
    y[1] = qp.math.clamp(7, 0, 5)
    y[2] = qp.math.step(0.5, 0.4)
    y[3] = qp.math.fract(-1.25)
    y[4] = qp.math.smoothstep(0.0, 2.0, 1.0)
    y[5] = qp.math.sign(-3.0)
    y[6] = qp.math.length(v)
    y[7] = qp.math.reflect(v, n).y
    y[8] = qp.math.mod(-1.0, 3.0)
    y[9] = qp.math.radians(180.0)
    y[10] = qp.math.isnan(qp.math.nan) + 2 * qp.math.isinf(-qp.math.inf)
    y[11] = qp.math.dot(v, v) + qp.math.distance(v, n) + qp.math.cross(v, n)


def test_the_names_of_glsl():
    y = np.zeros(12, np.float32)
    glsl(y)
    want = [1.5, 5, 0, 0.75, 0.5, -1, math.sqrt(2), 1, 2, math.pi, 3, 2 + math.sqrt(5) + 1]
    np.testing.assert_allclose(y, want, rtol=1e-6)
