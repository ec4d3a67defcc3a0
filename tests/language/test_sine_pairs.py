"""The sine and the cosine of one value: ``qp.sincos``, and calls of both, which are computed together with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit.offline import trace_for

A = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def separately(x: A, s: A, c: A):
    for i in x:
        s[i] = qp.sin(x[i])
    for i in x:
        c[i] = qp.cos(x[i])


@qp.kernel
def both(x: A, s: A, c: A):
    for i in x:
        v = x[i]
        s[i] = qp.sin(v)
        if v > -1e30:
            c[i] = qp.cos(v)
        c[i] = qp.cos(v)


@qp.kernel
def as_a_pair(x: A, s: A, c: A):
    for i in x:
        s[i], c[i] = qp.sincos(x[i])


@qp.kernel
def of_another_value(x: A, s: A, c: A):
    for i in x:
        v = x[i]
        for _ in range(2):
            s[i] = qp.sin(v)
            v += 1.0
            c[i] = qp.cos(v)


@pytest.fixture(autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def given():
    rng = np.random.default_rng(9)
    values = [rng.uniform(-9, 9, 500), rng.uniform(-1e6, 1e6, 500), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -3e38]]
    return np.concatenate(values).astype(np.float32)


def run(kernel):
    x = given()
    s, c = np.empty_like(x), np.empty_like(x)
    kernel(x, s, c)
    return s.view(np.uint32), c.view(np.uint32)


@pytest.mark.parametrize("kernel", [both, as_a_pair])
def test_the_bits_are_those_of_the_separate_functions(kernel):
    names = {function.name for function in trace_for(kernel, {}).kernel.functions}
    assert "sincos.f32" in names
    for found, expected in zip(run(kernel), run(separately), strict=True):
        nan = np.isnan(expected.view(np.float32))
        np.testing.assert_array_equal(found[~nan], expected[~nan])
        assert np.isnan(found.view(np.float32)[nan]).all()


def test_a_value_that_changes_in_between_is_another_one():
    assert "sincos.f32" not in {function.name for function in trace_for(of_another_value, {}).kernel.functions}
    x = given()[:500]
    s, c = np.empty_like(x), np.empty_like(x)
    of_another_value(x, s, c)
    np.testing.assert_allclose(s, np.sin(x + np.float32(1)), atol=1e-6)
    np.testing.assert_allclose(c, np.cos(x + np.float32(1) + np.float32(1)), atol=1e-6)


def test_vectors_and_the_host():
    s, c = qp.sincos(1.0)
    assert (s, c) == (qp.sin(1.0), qp.cos(1.0))
    s, c = qp.sincos(qp.Vector([1.0, 2.0]))
    assert (s[1], c[1]) == (qp.sin(2.0), qp.cos(2.0))
