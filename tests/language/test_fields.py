"""Fields: named by kernels, in every layout; scalars, vectors and matrices."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

SHAPE = (5, 7)


def layouts(make):
    return {
        "plain": make(shape=SHAPE),
        "column-major": make(shape=SHAPE, order="ji"),
        "offset": make(shape=SHAPE, offset=(-2, 10)),
    }


def element_layouts(make):
    return {
        **layouts(make),
        "soa": make(shape=SHAPE, layout=qp.Layout.SOA),
        "soa column-major": make(shape=SHAPE, layout=qp.Layout.SOA, order="ji"),
    }


SCALARS = layouts(lambda **options: qp.field(qp.i32, **options))
VECTORS = element_layouts(lambda **options: qp.Vector.field(3, qp.f32, **options))
MATRICES = element_layouts(lambda **options: qp.Matrix.field(2, 3, qp.f64, **options))


def origin(field):
    return tuple(field.offset) if any(field.offset) else (0, 0)


@qp.kernel
def fill_scalars(f: qp.template(), a: qp.template(), b: qp.template()):
    for i, j in f:
        f[i, j] = (i - a) * 100 + (j - b)


@pytest.mark.parametrize("layout", SCALARS)
def test_scalar_fields(layout):
    field = SCALARS[layout]
    fill_scalars(field, *origin(field))
    i, j = np.indices(SHAPE)
    np.testing.assert_array_equal(field.to_numpy(), i * 100 + j)


@qp.kernel
def fill_vectors(f: qp.template()):
    for index in qp.grouped(f):
        f[index] = qp.Vector([index[0], index[1], 0.5])
        f[index].z += 1.0
        f[index].x *= 2.0


@pytest.mark.parametrize("layout", VECTORS)
def test_vector_fields(layout):
    field = VECTORS[layout]
    fill_vectors(field)
    (a, b), (i, j) = origin(field), np.indices(SHAPE)
    want = np.stack([(i + a) * 2, j + b, np.full(SHAPE, 1.5)], -1)
    np.testing.assert_array_equal(field.to_numpy(), want)


@qp.kernel
def fill_matrices(f: qp.template()):
    for i, j in f:
        f[i, j] = qp.Matrix([[i, j, 1], [2, 3, 4]])
        f[i, j][1, 2] -= f[i, j][0, 0]


@pytest.mark.parametrize("layout", MATRICES)
def test_matrix_fields(layout):
    field = MATRICES[layout]
    fill_matrices(field)
    a, b = origin(field)
    got = field.to_numpy()
    for i, j in np.ndindex(*SHAPE):
        np.testing.assert_array_equal(got[i, j], [[i + a, j + b, 1], [2, 3, 4 - (i + a)]])


source, target = qp.field(qp.f32, shape=64), qp.field(qp.f32, shape=64)
speed = qp.field(qp.f32, shape=())


@qp.kernel
def step():
    for i in source:
        target[i] = source[i] + speed[None]


def test_fields_are_read_at_each_launch():
    source.from_numpy(np.arange(64, dtype=np.float32))
    for value in (0.5, 2.0):
        speed[None] = value
        step()
        np.testing.assert_array_equal(target.to_numpy(), np.arange(64) + np.float32(value))


@qp.kernel
def count():
    speed[None] += 1.0


def test_a_field_of_no_axes():
    speed[None] = 0
    for _ in range(3):
        count()
    assert speed[None] == 3.0


pressure = qp.field(qp.f64)
velocity = qp.Vector.field(2, qp.f64)
qp.root.dense(qp.ij, (4, 3)).place(pressure, velocity)


@qp.kernel
def tree():
    for i, j in pressure:
        pressure[i, j] = i - j
        velocity[i, j] = qp.Vector([i, j]) * pressure[i, j]


def test_fields_placed_in_a_tree():
    tree()
    i, j = np.indices((4, 3))
    np.testing.assert_array_equal(pressure.to_numpy(), i - j)
    np.testing.assert_array_equal(velocity.to_numpy(), np.stack([i * (i - j), j * (i - j)], -1))


class Grid:
    def __init__(self, n):
        self.cells, self.n, self.h = qp.field(qp.f32, shape=n), n, 1.0 / n


grid = Grid(10)


@qp.kernel
def through_an_object():
    for i in grid.cells:
        grid.cells[i] = i * grid.h + grid.n


def test_a_field_that_an_object_holds():
    through_an_object()
    want = np.arange(10, dtype=np.float32) * np.float32(0.1) + np.float32(10)
    np.testing.assert_array_equal(grid.cells.to_numpy(), want)


@qp.kernel
def sizes(y: qp.types.ndarray(qp.i32, 1)):
    y[0] = source.shape[0]
    y[1] = velocity.n
    y[2] = pressure.shape[1]
    for k in qp.static(range(pressure.shape[0])):
        y[3] += k


def test_shapes_of_fields_are_known_at_compile_time():
    y = np.zeros(4, np.int32)
    sizes(y)
    assert y.tolist() == [64, 2, 3, 6]
