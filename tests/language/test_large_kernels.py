"""Large kernels compile in time that grows with their size, and compute what small ones do.

Each would take minutes if it were handled at a cost that grows with a power of the size, which is what the time limits
find; they leave room for slow machines.
"""

from __future__ import annotations

import platform

import numpy as np
import pytest

from quadpy.codegen.plans.inlining import INLINED_LINES, kept_calls
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

F32 = "qp.types.ndarray(dtype=qp.f32, ndim=1)"


def kernel(load, body, head=""):
    return load(f"""
        {head}
        @qp.kernel
        def k(x: {F32}):
            for i in x:
                {body}
    """).k


def repeated(lines, count):
    return "\n                ".join([lines] * count)


@pytest.mark.timeout(90)
def test_hundreds_of_calls_of_a_library_function(load):
    """Too many to inline: they are calls, with the bits of those that are inlined."""
    once, often = kernel(load, "x[i] = qp.sin(x[i])"), kernel(load, repeated("x[i] = qp.sin(x[i])", 300))
    found, expected = (np.linspace(-3, 1e6, 1001, dtype=np.float32) for _ in range(2))
    often(found)
    for _ in range(300):
        once(expected)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86 CPUs")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_loops_with_calls_of_library_functions_are_vectorised(load, level):
    once, often = kernel(load, "x[i] = qp.sin(x[i])"), kernel(load, repeated("x[i] = qp.sin(x[i])", 100))
    calls = [compile_with_asm(k, parse_target(f"cpu:{level}"), {}).asm.count("fn.sin.f32.x8") for k in (once, often)]
    assert calls[0] == 0
    assert calls[1] >= 100


@pytest.mark.parametrize("call", ["qp.atan2(x, y)", "qp.exp(x) - y", "qp.pow(qp.abs(x), y)"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_calls_in_loops_that_are_vectorised_have_the_bits_of_inlined_ones(load, t, call):
    text = f"""
        A = qp.types.ndarray(dtype=qp.{t}, ndim=1)
        @qp.kernel
        def k(xs: A, ys: A, n: qp.template()):
            for i in xs:
                x, y = xs[i], ys[i]
                for j in qp.static(range(n)):
                    x = {call}
                xs[i] = x
    """
    k, numbers = load(text).k, np.random.default_rng(5)
    values = numbers.normal(size=(2, 203)) * 10.0 ** numbers.integers(-30, 30, (2, 203))
    values[:, :8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40]
    values[1] = numbers.permutation(values[1])
    found, y = values.astype({"f32": np.float32, "f64": np.float64}[t])
    expected = found.copy()
    k(found, y, 250)
    for _ in range(250):
        k(expected, y, 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_hundreds_of_calls_of_a_library_function_on_gpus(load, target):
    code = kernel(load, repeated("x[i] = qp.sin(x[i])", 300)).compile(target)
    assert len(code.image) < 100_000


def test_what_is_inlined_has_a_limit():
    sizes = {"sin": 250, "pow": 300, "once": 2 * INLINED_LINES}
    assert kept_calls(1000, {"sin": [1] * 10, "pow": [2] * 10}, sizes) == frozenset()
    assert kept_calls(0, {"sin": [1] * 50, "pow": [2] * 10}, sizes) == frozenset()
    assert kept_calls(0, {"sin": [1] * 60, "pow": [2] * 10}, sizes) == {"sin"}
    assert kept_calls(0, {"sin": [1] * 60, "pow": [2] * 60}, sizes) == {"pow"}
    assert kept_calls(0, {"once": [1]}, sizes) == frozenset()


SUMS = """
    N = 12
    @qp.kernel
    def k(x: qp.types.ndarray(dtype=qp.f32, ndim=1), total: qp.types.ndarray(dtype=qp.types.matrix(N, N, qp.f32), ndim=1)):
        for i in x:
            v = qp.Matrix([[x[i] * (N * r + c) for c in range(N)] for r in range(N)])
            total[0] += v
"""


@pytest.mark.timeout(60)
def test_hundreds_of_sums_in_one_loop(load):
    k = load(SUMS).k
    x, total = np.ones(500, np.float32), np.ones((1, 12, 12), np.float32)
    k(x, total)
    np.testing.assert_array_equal(total.ravel(), 1 + 500 * np.arange(144, dtype=np.float32))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_hundreds_of_sums_in_one_loop_on_gpus(load, target):
    assert len(load(SUMS).k.compile(target).image) < 200_000


@pytest.mark.timeout(120)
def test_static_elimination_of_a_matrix(load):
    k = kernel(load, """
                a = qp.Matrix.identity(qp.f32, N)
                for r in qp.static(range(N)):
                    for c in qp.static(range(N)):
                        a[r, c] += x[i] * (r + c)
                for p in qp.static(range(N)):
                    for r in qp.static(range(N)):
                        if qp.static(r != p):
                            f = a[r, p] / a[p, p]
                            for c in qp.static(range(N)):
                                a[r, c] -= f * a[p, c]
                x[i] = a[0, 0] + a[N - 1, N - 1]
    """, head="N = 12")  # fmt: skip
    n, x = 12, np.float32(0.01)
    a = np.identity(n, np.float32) + x * np.add.outer(range(n), range(n)).astype(np.float32)
    for p in range(n):
        for r in range(n):
            if r != p:
                a[r] -= a[r, p] / a[p, p] * a[p]
    found = np.full(4, x)
    k(found)
    np.testing.assert_array_equal(found, a[0, 0] + a[n - 1, n - 1])


@pytest.mark.timeout(120)
def test_a_static_loop_of_thousands_of_turns(load):
    k = kernel(load, """
                y = x[i]
                for j in qp.static(range(2500)):
                    y = y * 0.5 + j
                x[i] = y
    """)  # fmt: skip
    found, expected = np.ones(8, np.float32), np.float32(1)
    for j in range(2500):
        expected = expected * np.float32(0.5) + np.float32(j)
    k(found)
    np.testing.assert_array_equal(found, expected)
