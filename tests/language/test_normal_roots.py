"""``rsqrt`` of numbers that are known not to be subnormal: fewer instructions, the same bits."""

from __future__ import annotations

import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm, trace_for

A = qp.types.ndarray(dtype=qp.f32, ndim=1)
D = qp.types.ndarray(dtype=qp.f64, ndim=1)
EDGES = [0.0, -0.0, 1e-45, -1e-39, 1.2e-38, 3e-20, 1.0, -2.5, 1e19, -3e38, np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


@qp.kernel
def softened(x: A, y: A, sums: A, roots: A):
    for i in x:
        a, b = x[i], y[i]
        r = a * a + b * b + 1e-3
        sums[i] = r
        roots[i] = qp.rsqrt(r)


@qp.kernel
def by_steps(x: A, y: A, sums: A, roots: A):
    for i in x:
        a = qp.max(1e-20, qp.max(abs(x[i]) - 3.0, 0.5))
        b = qp.select(y[i] > 0.25, qp.sqrt(abs(y[i])) + 0.5, 2.0)
        r = qp.min(a, b) * 2.0 + qp.Vector([x[i], y[i]]).norm_sqr()
        sums[i] = r
        roots[i] = qp.rsqrt(r)


@qp.kernel
def double(x: D, y: D, sums: D, roots: D):
    for i in x:
        r = 1e-300 + (x[i] - y[i]) * (x[i] - y[i])
        sums[i] = r
        roots[i] = qp.rsqrt(r)


@qp.kernel
def plain_f32(x: A, roots: A):
    for i in x:
        roots[i] = qp.rsqrt(x[i])


@qp.kernel
def plain_f64(x: D, roots: D):
    for i in x:
        roots[i] = qp.rsqrt(x[i])


@qp.kernel
def may_be_tiny(x: A, y: A, sums: A, roots: A):
    for i in x:
        a = x[i]
        squared = a * a
        a = y[i]
        roots[i] = qp.rsqrt(squared + 0.0) + qp.rsqrt(a * squared + 1.0) + qp.rsqrt(squared * 1e-30 + 1e-40)
        roots[i] += qp.rsqrt(qp.max(1.0, a) - 1.0) + qp.rsqrt(qp.min(squared + 1.0, a)) + qp.rsqrt(1.0 - squared)


def called(kernel):
    given = [A] * 4 if kernel is not double else [D] * 4
    names = ("x", "y", "sums", "roots")
    return {
        f.name for f in trace_for(kernel, parse_target("cpu"), dict(zip(names, given, strict=True))).kernel.functions
    }


@pytest.mark.parametrize("kernel", [softened, by_steps, double])
def test_the_bits_are_those_of_any_rsqrt(kernel):
    dtype, plain = (np.float64, plain_f64) if kernel is double else (np.float32, plain_f32)
    x, y = (values.ravel().astype(dtype) for values in np.meshgrid(EDGES, EDGES))
    sums, roots, expected = (np.zeros_like(x) for _ in range(3))
    kernel(x, y, sums, roots)
    plain(sums, expected)
    np.testing.assert_array_equal(roots, expected)
    assert np.isnan(roots).any()
    assert (roots == 0).any()


def test_only_what_cannot_be_subnormal_goes_without_the_step():
    @qp.kernel
    def one(x: A, y: A, sums: A, roots: A):
        for i in x:
            roots[i] = qp.rsqrt(y[i])

    def steps(kernel):
        asm = compile_with_asm(kernel, parse_target("sm_90"), {}).asm
        return len(re.findall(r"0f00800000|0f4B800000", asm)), asm.count("rsqrt.approx")  # 2**-126, 2**24

    assert [steps(kernel)[0] for kernel in (softened, by_steps)] == [0, 0]
    assert steps(one)[0] > 0
    found, roots = steps(may_be_tiny)
    assert found >= roots >= 6  # or in each of several copies of the iteration


def test_fast_math_keeps_the_instruction():
    qp.init(arch=qp.cpu, fast_math=True)
    assert "rsqrt.approx" in compile_with_asm(softened, parse_target("sm_90"), {}).asm
