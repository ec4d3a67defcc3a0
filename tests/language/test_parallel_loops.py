"""Loops at the top level: what they run over, forwards, backwards and in several axes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
N = 5000  # more than one thread's share


@qp.kernel
def by_range(a: qp.i32, b: qp.i32, c: qp.i32, hits: A(qp.i32, 1), origin: qp.i32):
    for i in range(a, b, c):
        hits[i - origin] += 1


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [(0, N, 1), (0, N, 7), (N, 0, -1), (N, -N, -13), (3, 3, 1), (5, 3, 1), (3, 5, -1), (-N, N, 3), (0, 1, 2**31 - 1)],
)
def test_range_with_steps_of_either_sign(a, b, c):
    hits = np.zeros(2 * N + 1, np.int32)
    by_range(a, b, c, hits, -N)
    want = np.zeros_like(hits)
    want[np.array(range(a, b, c), int) + N] = 1
    np.testing.assert_array_equal(hits, want)


@qp.kernel
def static_steps(x: A(qp.i32, 2)):
    for i in range(10, 0, -3):
        x[0, i] = i
    for i in range(1, 12, 4):
        x[1, i] = i
    for i in range(-2, 3):
        x[2, i + 2] = i


def test_range_of_literals():
    x = np.zeros((3, 12), np.int32)
    static_steps(x)
    want = np.zeros_like(x)
    want[0, [10, 7, 4, 1]] = [10, 7, 4, 1]
    want[1, [1, 5, 9]] = [1, 5, 9]
    want[2, :5] = [-2, -1, 0, 1, 2]
    np.testing.assert_array_equal(x, want)


@qp.kernel
def by_step_zero(n: qp.i32, step: qp.i32, y: A(qp.i32, 1)):
    for i in range(0, n, step):
        y[i] = 1


def test_a_run_time_step_of_zero_runs_nothing():
    y = np.zeros(4, np.int32)
    by_step_zero(4, 0, y)
    assert not y.any()


@qp.kernel
def by_ndrange(n: qp.i32, x: A(qp.i32, 3)):
    for i, j, k in qp.ndrange(n, (2, 5), (-1, n - 1)):
        x[i, j, k + 1] += i * 100 + j * 10 + k


@pytest.mark.parametrize("n", [0, 1, 3, 17])
def test_ndrange_with_pairs(n):
    x = np.zeros((n, 5, n), np.int32)
    by_ndrange(n, x)
    want = np.zeros_like(x)
    for i, j, k in itertools.product(range(n), range(2, 5), range(-1, n - 1)):
        want[i, j, k + 1] = i * 100 + j * 10 + k
    np.testing.assert_array_equal(x, want)


@qp.kernel
def grouped_ndrange(x: A(qp.i32, 2)):
    for index in qp.grouped(qp.ndrange(x.shape[0], (1, x.shape[1]))):
        x[index] = index[0] * 10 + index.y


@qp.kernel
def grouped_array(x: A(qp.i32, 2)):
    for index in qp.grouped(x):
        x[index] += index.sum()


def test_grouped():
    x = np.zeros((40, 60), np.int32)
    grouped_ndrange(x)
    i, j = np.indices(x.shape)
    np.testing.assert_array_equal(x, np.where(j > 0, i * 10 + j, 0))
    x[:] = 0
    grouped_array(x)
    np.testing.assert_array_equal(x, i + j)


@qp.kernel
def flat(x: A(qp.i64, 1)):
    for i in qp.ndrange(x.shape[0]):
        x[i] = i * i


def test_ndrange_of_one_axis():
    x = np.zeros(N, np.int64)
    flat(x)
    np.testing.assert_array_equal(x, np.arange(N) ** 2)


@qp.kernel
def long_bounds(n: qp.i64, y: A(qp.i64, 1)):
    for i in range(n, n + 3):
        y[i - n] = i


def test_bounds_of_64_bits():
    y = np.zeros(3, np.int64)
    long_bounds(2**40, y)
    assert y.tolist() == [2**40, 2**40 + 1, 2**40 + 2]


@qp.kernel
def odd_ones(x: A(qp.i32, 1)):
    for i in x:
        if i % 2 == 0:
            continue
        x[i] = i


def test_continue_ends_an_iteration():
    x = np.full(N, -1, np.int32)
    odd_ones(x)
    np.testing.assert_array_equal(x, np.where(np.arange(N) % 2, np.arange(N), -1))


@qp.kernel
def own_index(x: A(qp.i32, 1)):
    for i in x:
        j = i
        i *= 2
        x[j] = i + j


def test_assigning_the_loop_variable_changes_this_iteration_only():
    x = np.zeros(N, np.int32)
    own_index(x)
    np.testing.assert_array_equal(x, 3 * np.arange(N))


@qp.kernel
def serialized(x: A(qp.i64, 1)):
    qp.loop_config(serialize=True)
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 3 + i


@qp.kernel
def configured(x: A(qp.i32, 1)):
    qp.loop_config(block_dim=64, name="mine")
    for i in x:
        x[i] = i


def test_loop_config():
    x = np.zeros(N, np.int64)
    serialized(x)
    want = 0
    for i in range(1, N):
        want = (want * 3 + i + 2**63) % 2**64 - 2**63
    assert x[-1] == want
    y = np.zeros(100, np.int32)
    configured(y)
    np.testing.assert_array_equal(y, np.arange(100))


@qp.kernel
def variables_start_anew(x: A(qp.i32, 1)):
    for i in x:
        total = 0
        for j in range(i % 5):
            total += j
        x[i] = total


def test_variables_belong_to_their_iteration():
    x = np.zeros(N, np.int32)
    variables_start_anew(x)
    np.testing.assert_array_equal(x, [sum(range(i % 5)) for i in range(N)])
