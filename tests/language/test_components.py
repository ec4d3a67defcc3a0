"""Components of a local vector that are set under a condition or in a loop, when the vector has one assignment."""

import numpy as np
import pytest

import quadpy as qp

floats = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def under_conditions(x: floats) -> None:
    for i in x:
        v = qp.Vector([x[i], x[i]])
        if x[i] > 0.0:
            v[0] = 1.0
            if x[i] > 2.0:
                v.y += 10.0
        x[i] = v[0] + v[1]


@qp.kernel
def in_a_loop(x: floats) -> None:
    for i in x:
        v = qp.Vector([0.0, 1.0])
        for _ in range(3):
            v[0] += x[i]
            v.y = v.x
        x[i] = v.y


@qp.kernel
def of_an_index(x: qp.types.ndarray(dtype=qp.i32, ndim=2)) -> None:
    for index in qp.grouped(x):
        place = index
        if index[0] > 0:
            index[1] += 100
        x[place] = index[0] + index[1]


@qp.kernel
def filled(x: floats) -> None:
    for i in x:
        v = qp.Vector([x[i], 2.0])
        if x[i] > 0.0:
            v.fill(7.0)
        x[i] = v.sum()


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(under_conditions, [-2, 2, 14]), (in_a_loop, [-3, 3, 9]), (filled, [1, 14, 14])],
)
def test_a_component_that_is_set_below_the_vectors_block(kernel, expected):
    x = np.array([-1, 1, 3], np.float32)
    kernel(x)
    assert x.tolist() == expected


def test_a_component_of_a_grouped_index():
    x = np.zeros((2, 2), np.int32)
    of_an_index(x)
    assert x.tolist() == [[0, 1], [101, 102]]
