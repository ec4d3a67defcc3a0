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


V2, F = qp.types.ndarray(dtype=qp.math.vec2, ndim=1), qp.types.ndarray(dtype=qp.math.vec2, ndim=2)


@qp.kernel
def complex_functions(a: V2, b: V2, y: F):
    for i in a:
        y[0, i] = qp.math.cmul(a[i], b[i])
        y[1, i] = qp.math.cdiv(a[i], b[i])
        y[2, i] = qp.math.cinv(b[i])
        y[3, i] = qp.math.cconj(a[i])
        y[4, i] = qp.math.csqrt(a[i])
        y[5, i] = qp.math.cexp(b[i])
        y[6, i] = qp.math.clog(b[i])
        y[7, i] = qp.math.cpow(b[i], 2.5)


def test_complex_functions_of_two_components():
    a = np.array([3 + 4j, -1 + 0j, -2 - 3j, 0j, 1e18 + 1e18j, 1j], np.complex64)
    b = np.array([0.5 - 2j, 2j, -1 + 0j, 1 + 1j, 1e18 - 1e17j, -1 - 1e-3j], np.complex64)
    b[4] = 0.1 - 1e-8j
    y = np.zeros((8, 6, 2), np.float32)
    complex_functions(a.view(np.float32).reshape(-1, 2), b.view(np.float32).reshape(-1, 2), y)
    wide_a, wide_b = a.astype(complex), b.astype(complex)
    expected = [wide_a * wide_b, wide_a / wide_b, 1 / wide_b, wide_a.conj(), np.sqrt(wide_a), np.exp(wide_b),
                np.log(wide_b), wide_b**2.5]  # fmt: skip
    for row, values in zip(y.astype(np.float64), expected, strict=True):
        np.testing.assert_allclose(row[:, 0] + 1j * row[:, 1], values, rtol=2e-6, atol=2e-7 * abs(values).max() * 1e-6)


def test_a_complex_quotient_does_not_overflow_in_between():
    a = np.array([[1e30, 1e30]], np.float32)
    y = np.zeros((8, 1, 2), np.float32)
    complex_functions(a, a, y)
    assert y[1, 0].tolist() == [1, 0]


@qp.kernel
def transforms() -> (qp.math.vec4, qp.math.vec4, qp.math.vec3, qp.math.vec2, qp.math.vec4):
    p = qp.math.vec4(1.0, 2.0, 3.0, 1.0)
    moved = qp.math.translate(1.0, 0.0, -1.0) @ qp.math.scale(2.0, 2.0, 2.0) @ p
    turned = p @ qp.math.rot_by_axis(qp.math.vec3(0.0, 0.0, 2.0), qp.math.pi / 2)
    kept = qp.math.eye(3) @ p.xyz
    direction = qp.math.rotation2d(qp.math.pi / 2) @ qp.math.vdir(0.0)
    both = p @ qp.math.rotation3d(0.3, 0.2, 0.1)
    return moved, turned, kept, direction, both


def rotation(axis, angle):
    """Turns column vectors around a coordinate axis."""
    m, (i, j) = np.eye(4), [k for k in range(3) if k != axis]
    sign = -1 if axis == 1 else 1
    m[i, i] = m[j, j] = np.cos(angle)
    m[j, i], m[i, j] = sign * np.sin(angle), -sign * np.sin(angle)
    return m


def test_transforms():
    moved, turned, kept, direction, both = (np.array(v.to_list()) for v in transforms())
    np.testing.assert_allclose(moved, [3, 4, 5, 1])
    np.testing.assert_allclose(turned, [-2, 1, 3, 1], atol=1e-6)
    np.testing.assert_allclose(kept, [1, 2, 3])
    np.testing.assert_allclose(direction, [0, 1], atol=1e-6)
    expected = rotation(1, 0.1) @ rotation(0, 0.3) @ rotation(2, 0.2) @ [1, 2, 3, 1]
    np.testing.assert_allclose(both, expected, rtol=1e-6)


def test_types_by_the_names_of_glsl():
    assert qp.math.vec3(1, 2, 3).to_list() == [1.0, 2.0, 3.0]
    assert qp.math.mat2(1, 2, 3, 4).to_list() == [[1.0, 2.0], [3.0, 4.0]]
    assert qp.math.ivec2(1, 2).to_list() == [1, 2]
    with pytest.raises(qp.ArgumentError, match="-1"):
        qp.math.uvec2(-1, 0)
    f = qp.math.mat3.field(shape=2)
    assert f.element_shape == (3, 3)
