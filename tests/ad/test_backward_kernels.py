"""``kernel.grad``: the backward kernel, as an ordinary kernel."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import quadpy as qp

_PROGRAM = """
import quadpy as qp
qp.init(arch=qp.cpu)
x = qp.field(qp.f64, 3, needs_grad=True)
y = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)

@qp.kernel
def squares():
    for i in x:
        y[None] += x[i] ** 2

x.fill(3)
squares()
y.grad[None] = 1
squares.grad()
print(y[None], x.grad.to_numpy().tolist())
"""


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def scale(x: qp.Array1D[qp.f64], y: qp.Array1D[qp.f64], factor: qp.f64) -> None:
    for i in x:
        y[i] = factor * qp.sin(x[i])


def arrays():
    x, y = (qp.ndarray(qp.f64, 4, needs_grad=True) for _ in range(2))
    x.from_numpy(np.arange(4.0))
    return x, y


def test_by_hand():
    x, y = arrays()
    scale(x, y, 2.0)
    y.grad.fill(1)
    for _ in range(3):  # later calls take the fast way
        scale.grad(x, y, factor=2.0)
        y.grad.fill(1)
    assert x.grad.to_numpy() == pytest.approx(6 * np.cos(np.arange(4.0)))
    assert scale.grad is scale.grad


def test_arrays_with_and_without_a_gradient():
    x, y = arrays()
    constant = qp.ndarray(qp.f64, 4)
    constant.fill(1)

    @qp.kernel
    def multiply(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64], c: qp.Array1D[qp.f64]) -> None:
        for i in a:
            c[i] = a[i] * b[i]

    for a, b in ((x, constant), (constant, x), (x, np.ones(4))):
        multiply(a, b, y)
        x.grad.fill(0)
        y.grad.fill(1)
        multiply.grad(a, b, y)
        assert x.grad.to_numpy().tolist() == [1, 1, 1, 1]


def test_without_any_gradient_it_is_an_error():
    constant = qp.ndarray(qp.f64, 4)
    with pytest.raises(qp.KernelTypeError, match="uses no array with a grad"):
        scale.grad(constant, constant, 1.0)


def test_captured():
    x, y = arrays()
    with qp.graph.capture() as graph:
        scale(x, y, 2.0)
        y.grad.fill(1)
        scale.grad(x, y, 2.0)
    run = graph.instantiate()
    for _ in range(2):
        run.launch()
    run.synchronize()
    assert x.grad.to_numpy() == pytest.approx(4 * np.cos(np.arange(4.0)))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90", "cpu"])
def test_compiled_for_any_target(target):
    assert scale.grad.compile(target).image


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(scale.grad)) is scale.grad


def test_the_cache_tells_forward_and_backward_apart(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    env = {**os.environ, "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs == ["27.0 [6.0, 6.0, 6.0]\n"] * 2


def test_second_order_is_refused():
    with pytest.raises(qp.ArgumentError, match="second order"):
        scale.grad.grad  # noqa: B018
