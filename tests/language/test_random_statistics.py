"""Random numbers: how they are distributed, bit by bit and from draw to draw."""

from __future__ import annotations

import numpy as np

import quadpy as qp

A = qp.types.ndarray
N = 50_000


@qp.kernel
def uniform(x: A(qp.f32, 1), y: A(qp.f64, 1)):
    for i in x:
        x[i] = qp.random()
        y[i] = qp.random(qp.f64)


@qp.kernel
def integers(a: A(qp.i32, 1), b: A(qp.u64, 1), c: A(qp.u1, 1)):
    for i in a:
        a[i] = qp.random(qp.i32)
        b[i] = qp.random(qp.u64)
        c[i] = qp.random(qp.u1)


@qp.kernel
def normal(x: A(qp.f32, 1), y: A(qp.f64, 1)):
    for i in x:
        x[i] = qp.randn()
        y[i] = qp.randn(qp.f64)


def drawn(kernel, *dtypes):
    arrays = [np.zeros(N, dtype) for dtype in dtypes]
    kernel(*arrays)
    return arrays


def test_uniform_numbers_fill_the_unit_interval():
    for x in drawn(uniform, np.float32, np.float64):
        assert 0 <= x.min() < 0.001
        assert 0.999 < x.max() < 1
        assert len(np.unique(x)) > 0.99 * N
        histogram = np.histogram(x, 20, (0, 1))[0]
        assert abs(histogram - N / 20).max() < 6 * np.sqrt(N / 20)
        assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.03


def test_integers_cover_the_whole_range():
    a, b, c = drawn(integers, np.int32, np.uint64, np.bool_)
    for bit in range(32):
        assert abs(((a >> bit) & 1).mean() - 0.5) < 0.02
    for bit in range(64):
        assert abs(((b >> np.uint64(bit)) & np.uint64(1)).mean() - 0.5) < 0.02
    assert abs(c.mean() - 0.5) < 0.02


def test_normal_numbers():
    for x in drawn(normal, np.float32, np.float64):
        assert np.isfinite(x).all()
        assert abs(x.mean()) < 0.03
        assert abs(x.std() - 1) < 0.03
        assert abs((abs(x) < 1).mean() - 0.6827) < 0.02


@qp.kernel
def two_loops(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in x:
        x[i] = qp.random()
    for i in y:
        y[i] = qp.random()


@qp.kernel
def in_axes(x: A(qp.f32, 2)):
    for i, j in x:
        x[i, j] = qp.random()


@qp.kernel
def backwards(x: A(qp.f32, 1)):
    for i in range(x.shape[0] - 1, -1, -1):
        x[i] = qp.random()


@qp.kernel
def in_an_inner_loop(x: A(qp.f32, 2)):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j % 2 == 0:
                x[i, j] = qp.random()


def test_numbers_differ_between_loops_iterations_and_draws():
    x, y = drawn(two_loops, np.float32, np.float32)
    assert not (x == y).any()
    grid = np.zeros((200, 300), np.float32)
    in_axes(grid)
    assert len(np.unique(grid)) > 0.99 * grid.size
    backwards(x)
    assert len(np.unique(x)) > 0.99 * N
    grid[:] = 2
    in_an_inner_loop(grid)
    assert len(np.unique(grid[:, ::2])) > 0.99 * grid.size / 2


@qp.kernel
def serial() -> qp.types.vector(2, qp.f32):
    return qp.Vector([qp.random(), qp.random()])


def test_random_numbers_outside_loops():
    a, b = serial(), serial()
    assert len({*a.to_list(), *b.to_list()}) == 4
