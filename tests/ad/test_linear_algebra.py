"""Derivatives of small matrices' decompositions, also where singular values are equal."""

from __future__ import annotations

import functools
import linecache

import numpy as np
import pytest
from backends import backends

import quadpy as qp

BODIES = {
    "inverse": "a = M[i].inverse()\nloss[None] += a[0, 0] + a[2, 1] * a[0, 1]",
    "determinant": "loss[None] += M[i].determinant()",
    "solve": "s = qp.solve(M[i], qp.Vector([1.0, 2.0, M[i][0, 0]]))\nloss[None] += s[0] + s[1] * s[2]",
    "cholesky": "l = qp.cholesky(M[i] @ M[i].transpose())\nloss[None] += l[1, 0] * l[2, 2]",
    "qr": "q, r = qp.qr(M[i])\nloss[None] += q[0, 1] * r[1, 2] + r[0, 0]",
    "svd": "u, s, v = qp.svd(M[i])\nloss[None] += s[0, 0] + 2.0 * s[1, 1] * s[2, 2] + u[0, 1] * v[0, 1]",
    "polar_decompose": "u, p = qp.polar_decompose(M[i])\nloss[None] += u[0, 1] + p[1, 2] * p[0, 0]",
    "sym_eig": "e, v = qp.sym_eig(M[i] + M[i].transpose())\nloss[None] += e[0] + e[1] * e[2] + v[0, 1] * v[1, 0]",
    "make_spd": "a = qp.make_spd(M[i] + M[i].transpose() - 3.0 * eye)\nloss[None] += a[0, 1] + a[1, 2] * a[2, 0]",
}
IN_TWO_ROWS = {
    "svd": "u, s, v = qp.svd(m)\nloss[None] += s[0, 0] + s[1, 1] * u[1, 0] + u[0, 1] * v[0, 1]",
    "polar_decompose": "u, p = qp.polar_decompose(m)\nloss[None] += u[0, 1] + p[0, 1] * 2.0",
    "sym_eig": "e, v = qp.sym_eig(m)\nloss[None] += e[0] * v[0, 1] + e[1]",
    "eig": "e, v = qp.eig(m)\nloss[None] += e[0, 0] * v[0, 1] + e[1, 0] + e[0, 1] * v[1, 0]",
}


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def made(body, matrices):
    """A kernel over ``M``, which holds the matrices, repeated to three; with its loss and ``M``."""
    kernel, field, loss = compiled(body)
    field.from_numpy(np.resize(np.array(matrices, float), (3, 3, 3)))
    field.grad.fill(0)
    loss.fill(0)
    return kernel, field, loss


@functools.cache
def compiled(body):
    """One kernel for all tests of ``body``: with its derivatives, it takes seconds to compile."""
    field = qp.Matrix.field(3, 3, qp.f64, 3, needs_grad=True, needs_dual=True)
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    text = f"def k():\n    for i in M:\n        eye = qp.Matrix.identity(qp.f64, 3)\n{lines}\n"
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"qp": qp, "M": field, "loss": loss}
    exec(compile(text, name, "exec"), scope)
    return qp.kernel(scope["k"]), field, loss


def slope(kernel, field, loss, start, way, h=1e-4):
    """Differences of order 4."""
    total = 0.0
    for at, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
        field.from_numpy(start + at * h * way)
        loss.fill(0)
        kernel()
        total += weight * loss[None] / (12 * h)
    field.from_numpy(start)
    loss.fill(0)
    return total


def check(body, matrices):
    kernel, field, loss = made(body, matrices)
    start = field.to_numpy()
    way = np.random.default_rng(5).standard_normal(start.shape)
    expected = slope(kernel, field, loss, start, way)
    with qp.ad.Tape(loss):
        kernel()
    value = loss[None]
    assert np.vdot(field.grad.to_numpy(), way) == pytest.approx(expected, rel=1e-7, abs=1e-8)
    loss.fill(0)
    with qp.ad.FwdMode(loss, field, seed=way):
        kernel()
    assert loss.dual[None] == pytest.approx(expected, rel=1e-7, abs=1e-8)
    loss.fill(0)
    kernel()
    assert loss[None] == pytest.approx(value, rel=1e-14)


def matrices(count=3):
    return np.random.default_rng(1).uniform(-1, 1, (count, 3, 3)) + 2 * np.eye(3)


@pytest.mark.parametrize("name", BODIES)
def test_three_rows(name):
    check(BODIES[name], matrices())


@pytest.mark.parametrize("name", IN_TWO_ROWS)
def test_two_rows(name):
    part = "m = qp.Matrix([[M[i][0, 0], M[i][0, 1]], [M[i][1, 0], M[i][1, 1]]])\n"
    check(part + IN_TWO_ROWS[name], matrices())


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_tiny_and_huge_matrices(scale):
    kernel, field, loss = made("u, s, v = qp.svd(M[i])\nloss[None] += s[0, 0]", matrices() * scale)
    with qp.ad.Tape(loss):
        kernel()
    for given, gradient in zip(field.to_numpy(), field.grad.to_numpy(), strict=True):
        u, _, v = np.linalg.svd(given)
        np.testing.assert_allclose(gradient, np.outer(u[:, 0], v[0]), atol=1e-12)


EQUAL = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0] * 1.5
EQUAL[:, 0] *= np.sign(np.linalg.det(EQUAL))


@pytest.mark.parametrize(
    "body",
    [
        "u, s, v = qp.svd(M[i])\nr = u @ v.transpose()\nloss[None] += r[0, 1] + r[1, 2] * r[2, 2] + s[0, 0] + s[1, 1] + s[2, 2]",
        BODIES["polar_decompose"],
        "p = M[i] @ M[i].transpose()\ne, v = qp.sym_eig(p)\na = qp.make_spd(p)\nloss[None] += e[0] + e[1] + e[2] + a[0, 1] + a[1, 2] * a[2, 0]",
    ],
    ids=["svd", "polar", "sym_eig and make_spd"],
)
def test_equal_singular_values(body):
    """What does not depend on the choice of the vectors has its derivative, exact and up to rounding."""
    check(body, [np.eye(3) * 2, EQUAL])


def test_vectors_of_equal_values_do_not_turn():
    kernel, field, loss = made("u, s, v = qp.svd(M[i])\nloss[None] += u[0, 1] + v[0, 1]", [np.eye(3)])
    with qp.ad.Tape(loss):
        kernel()
    gradient = field.grad.to_numpy()[0]
    assert np.isfinite(gradient).all()
    assert gradient[0, 1] + gradient[1, 0] == 0


@pytest.mark.parametrize("body", [BODIES["svd"], BODIES["polar_decompose"], BODIES["sym_eig"]])
def test_zero_has_finite_derivatives(body):
    kernel, field, loss = made(body, [np.zeros((3, 3))])
    with qp.ad.Tape(loss):
        kernel()
    assert np.isfinite(field.grad.to_numpy()).all()


vec = qp.types.ndarray(qp.f64, ndim=1)


@pytest.mark.parametrize("arch", [*(each for each in backends() if each != "cpu"), "python"])
def test_on_every_backend(arch):
    @qp.kernel
    def turn(x: vec, y: vec):
        for i in y:
            u, s, v = qp.svd(qp.Matrix([[x[i], x[i + 1]], [x[i + 2], x[i + 3]]]))
            r, _ = qp.polar_decompose(qp.Matrix([[x[i], x[i + 2]], [x[i + 1], x[i + 3]]]))
            y[i] = s[1, 1] * u[0, 1] + v[0, 0] * r[0, 1]

    found = []
    for each in ("cpu", arch):
        qp.init(arch=each, default_fp=qp.f64)
        x, y = qp.ndarray(qp.f64, 8, needs_grad=True), qp.ndarray(qp.f64, 5, needs_grad=True)
        x.from_numpy(np.random.default_rng(0).uniform(-1, 1, 8))
        turn(x, y)
        y.grad.fill(1)
        turn.grad(x, y)
        found.append(x.grad.to_numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_compiled_for_gpus(target):
    @qp.kernel
    def turn(x: qp.types.ndarray(qp.types.matrix(3, 3, qp.f32), ndim=1), y: qp.types.ndarray(qp.f32, ndim=1)):
        for i in x:
            u, s, v = qp.svd(x[i])
            y[i] = s[0, 0] + (u @ v.transpose())[0, 1]

    assert turn.grad.compile(target).image


def test_second_derivatives_are_refused():
    qp.init(arch=qp.cpu)
    m = qp.Matrix.field(2, 2, qp.f64, shape=1, needs_grad=True, needs_dual=True)
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)

    @qp.kernel
    def turned(a: qp.template()) -> None:
        for i in a:
            u, s, v = qp.svd(a[i])
            loss[None] += u[0, 0] * s[0, 0] * v[0, 1]

    m.from_numpy(np.array([[[1.0, 2.0], [0.5, 3.0]]]))
    with pytest.raises(qp.KernelTypeError, match="no second derivative of svd"):
        qp.ad.hvp(turned, [m], [np.ones((1, 2, 2))], loss)
