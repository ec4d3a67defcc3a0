"""Backward kernels compute the same on every backend as plain Python does."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends
from differentiable import Writer, data_of, kernel_of

import quadpy as qp

ONE = [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "cbrt",
    "erf",
    "abs",
]
TWO = ["atan2", "hypot", "pow", "fmod", "copysign", "min", "max"]


@pytest.fixture(autouse=True)
def back_to_the_cpu():
    yield
    qp.init(arch=qp.cpu)


def gradients(kernel, given, arch):
    """What the kernel leaves in its arrays, and their gradients where each number that it leaves counts differently."""
    qp.init(arch=arch, default_fp=qp.f64)
    arrays = {}
    for name, x in given.items():
        arrays[name] = qp.ndarray(
            qp.f64 if x.dtype == np.float64 else qp.i32, x.shape, needs_grad=x.dtype == np.float64
        )
        arrays[name].from_numpy(x)
    kernel(**arrays)
    left = {name: arrays[name].to_numpy() for name in given}
    grads = {name: x for name, x in arrays.items() if name != "n"}
    for at, x in enumerate(grads.values()):
        x.grad.from_numpy(np.linspace(1, 2, x.shape[0]) + at)
    kernel.grad(**arrays)
    return left, {name: x.grad.to_numpy() for name, x in grads.items()}


def check(kernel, given, arch):
    expected, found = gradients(kernel, given, "python"), gradients(kernel, given, arch)
    for kind, wanted, got in zip(("value", "gradient"), expected, found, strict=True):
        for name, x in wanted.items():
            np.testing.assert_allclose(got[name], x, rtol=1e-11, atol=1e-11, err_msg=f"{kind} of {name}")


@pytest.mark.parametrize("arch", backends())
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_functions(name, arch):
    call = f"{name}(x[i])" if name in ONE else f"{name}(x[i], w[i])"
    text = f"def k(x: vec, w: vec, y: vec):\n    for i in x:\n        y[i] += qp.{call} * w[1]\n"
    data = np.random.default_rng(3)
    check(kernel_of(text, f"<{name}>"), {each: data.uniform(0.2, 0.9, 5) for each in "xwy"}, arch)


@pytest.mark.parametrize("arch", backends())
def test_random_kernels(request, arch):
    for seed in range(max(3, request.config.getoption("--random-kernels") // 4)):
        text = Writer(seed).text()
        try:
            check(kernel_of(text, f"<random {seed}>"), data_of(seed), arch)
        except Exception as error:
            raise AssertionError(f"seed {seed}:\n{text}") from error
