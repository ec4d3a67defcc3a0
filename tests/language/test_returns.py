"""What functions return: tuples, early results, results of several types."""

from __future__ import annotations

import math

import numpy as np

import quadpy as qp

A = qp.types.ndarray


@qp.func
def divide(a, b):
    return a // b, a % b


@qp.func
def polar(v):
    return v.norm(), (qp.atan2(v.y, v.x), v * 2.0)


@qp.kernel
def tuples(y: A(qp.f32, 1)):
    q, r = divide(17, 5)
    y[0], y[1] = q, r
    length, (angle, twice) = polar(qp.Vector([3.0, 4.0]))
    y[2], y[3], y[4] = length, angle, twice.x
    y[5] = divide(9, 4)[1]
    q, r = divide(r, q)
    y[6] = q * 10 + r


def test_tuple_results():
    y = np.zeros(7, np.float32)
    tuples(y)
    np.testing.assert_allclose(y, [3, 2, 5, math.atan2(4, 3), 6, 1, 2], rtol=1e-6)


@qp.func
def classify(x):
    if x < 0:
        return -1
    if x == 0:
        return 0
    for k in range(1, 20):
        if k * k >= x:
            return k
        if k * 1000 == x:
            continue
    return 99


@qp.kernel
def early(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    for i in x:
        y[i] = classify(x[i]) * 10 + classify(-x[i])


def test_early_returns_in_branches_and_loops():
    def python(x):
        return -1 if x < 0 else 0 if x == 0 else next((k for k in range(1, 20) if k * k >= x), 99)

    x = np.array([-400, -3, 0, 1, 2, 9, 10, 361, 362, 5000], np.int32)
    y = np.zeros(10, np.int32)
    early(x, y)
    assert y.tolist() == [python(v) * 10 + python(-v) for v in x.tolist()]


@qp.func
def first_match(x, wanted):
    i = 0
    while i < x.shape[0]:
        for j in range(x.shape[1]):
            if x[i, j] == wanted:
                return qp.Vector([i, j])
        i += 1
    return qp.Vector([-1, -1])


@qp.kernel
def find(x: A(qp.i32, 2), wanted: qp.i32) -> qp.types.vector(2, qp.i32):
    return first_match(x, wanted)


def test_a_function_that_takes_an_array_and_returns_from_nested_loops():
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert find(x, 6).to_list() == [1, 2]
    assert find(x, 99).to_list() == [-1, -1]


@qp.func
def returns_nothing(x, i):
    if i % 2:
        return
    x[i] = 5


@qp.kernel
def procedure(x: A(qp.i32, 1)):
    for i in x:
        returns_nothing(x, i)
        x[i] += 1


def test_a_return_without_value():
    x = np.zeros(6, np.int32)
    procedure(x)
    assert x.tolist() == [6, 1, 6, 1, 6, 1]


@qp.func
def relu(x):
    return max(0, x)


@qp.func
def mixed_results(x):
    if x > 1:
        return 1
    return 0.5


@qp.kernel
def meeting_results(x: qp.f32) -> qp.f32:
    return mixed_results(x) + relu(x)


def test_returns_of_different_types_meet():
    assert meeting_results(2.0) == 3.0
    assert meeting_results(0.25) == 0.75


@qp.func
def endless(x):
    while True:
        if x > 100:
            return x
        if x < 0:
            return 0.5
        x *= 3


@qp.kernel
def meeting_in_a_loop(x: qp.i32) -> qp.f32:
    return endless(x)


def test_returns_out_of_an_endless_loop():
    assert [meeting_in_a_loop(x) for x in (1, 40, 101, -1)] == [243, 120, 101, 0.5]


@qp.func
def rounded(x) -> qp.f16:
    return x


@qp.kernel
def annotated_result(x: qp.f32) -> qp.f32:
    return rounded(x)


def test_the_annotation_of_a_result_casts():
    assert annotated_result(2049.0) == 2048.0
