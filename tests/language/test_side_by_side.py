"""Parallel loops with sums in inner loops: iterations done side by side give the bits of each one alone."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
COUNTS = [1, 7, 8, 16, 17, 53]
"""Fewer than fill a group, whole groups, some groups and a rest."""


@qp.kernel
def pairs(a: qp.i32, z: qp.i32, p: A(qp.types.vector(3, qp.f32), 1), out: A(qp.types.vector(3, qp.f32), 1)):
    for i in range(a, z):
        q = p[i]
        total = qp.Vector([0.0, 0.0, 0.0])
        for j in range(p.shape[0]):
            d = p[j] - q
            r2 = d.dot(d) + 1e-3
            total += d * (1.0 / (r2 * qp.sqrt(r2)))
        out[i] += total


@qp.kernel
def product(a: qp.i32, z: qp.i32, x: A(qp.f64, 2), out: A(qp.f64, 2)):
    for k, i in qp.ndrange(3, (a, z)):
        for j in range(x.shape[0]):
            out[k, i] += x[k, j] * x[j, i]


@qp.kernel
def branches(a: qp.i32, z: qp.i32, x: A(qp.f32, 1), out: A(qp.f32, 2)):
    for i in range(a, z):
        near = 0.0
        most = -1.0
        met = False
        first = 0
        for j in range(1, x.shape[0]):
            if j == i:
                continue
            d = x[j] - x[i]
            if d < 0.0:
                d = -d
            if d > most and j % 3 != 0:
                most = d
                first = j
            met = met or d < 0.25
            near += qp.exp(-d)
        out[0, i] = near
        out[1, i] = most if met else -most
        out[2, i] = first


@qp.kernel
def nested(a: qp.i32, z: qp.i32, x: A(qp.f32, 2), bound: A(qp.i32, 1), out: A(qp.f32, 2)):
    for i in range(a, z):
        carry = 0.5
        for j in range(bound[0], 0, -2):
            row = 0.0
            for k in range(j):
                row = row * 0.75 + x[k, i]
            carry = carry * 0.5 + row
            out[j, i] = carry
        out[0, i] = carry + i


@qp.kernel
def halves(a: qp.i32, z: qp.i32, x: A(qp.f16, 1), out: A(qp.f16, 1)):
    for i in range(a, z):
        total = qp.f16(0.0)
        for j in range(x.shape[0]):
            total += x[j] * x[i] + qp.f16(qp.sin(total))
        out[i] = total


@qp.kernel
def backwards(a: qp.i32, z: qp.i32, x: A(qp.f32, 1), out: A(qp.f32, 1)):
    for i in range(z - 1, a - 1, -1):
        total = 1.0
        for j in range(x.shape[0]):
            total = total * x[j] + x[max(i - j, 0)]
        out[i] = total


@qp.kernel
def triangle(a: qp.i32, z: qp.i32, x: A(qp.f32, 1), out: A(qp.f32, 1)):
    """No two iterations run the inner loop alike."""
    for i in range(a, z):
        total = 0.0
        for j in range(i):
            total += x[j]
        out[i] = total


def cases(n):
    rng = np.random.default_rng(n)
    f32 = rng.normal(size=(n, n)).astype(np.float32)
    yield pairs, [rng.normal(size=(n, 3)).astype(np.float32)], np.ones((n, 3), np.float32)
    yield product, [rng.normal(size=(max(n, 3), max(n, 3)))], np.ones((3, n))
    yield branches, [f32[0].copy()], np.zeros((3, n), np.float32)
    yield nested, [f32, np.array([n - 1], np.int32)], np.zeros((n, n), np.float32)
    yield halves, [(f32[0] / 8).astype(np.float16)], np.zeros(n, np.float16)
    yield backwards, [f32[0].copy()], np.zeros(n, np.float32)
    yield triangle, [f32[0].copy()], np.zeros(n, np.float32)


@pytest.mark.parametrize("n", COUNTS)
def test_the_bits_are_those_of_each_iteration_alone(n):
    for kernel, inputs, out in cases(n):
        together, alone = out.copy(), out.copy()
        kernel(0, n, *inputs, together)
        for i in range(n):
            kernel(i, i + 1, *inputs, alone)
        assert together.tobytes() == alone.tobytes(), kernel.__name__


@pytest.mark.parametrize("n", COUNTS)
def test_a_part_of_the_range_leaves_the_rest_alone(n):
    for kernel, inputs, out in cases(n):
        whole, part = out.copy(), out.copy()
        kernel(0, n, *inputs, whole)
        kernel(n // 4, n - n // 5, *inputs, part)
        inside = np.zeros(n, bool)
        inside[n // 4 : n - n // 5] = True
        at = (inside,) if kernel in (pairs, halves, backwards, triangle) else (slice(None), inside)
        other = (~inside,) if len(at) == 1 else (slice(None), ~inside)
        assert part[at].tobytes() == whole[at].tobytes(), kernel.__name__
        assert part[other].tobytes() == out[other].tobytes(), kernel.__name__
