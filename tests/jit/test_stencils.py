"""How far kernels reach around the index of their loop, as a launch gets it."""

from __future__ import annotations

import numpy as np
import pytest
from touches import stencils_of

import quadpy as qp
from quadpy.ir.nodes import Access
from quadpy.jit.stencils import Far, Near

vec = qp.types.ndarray(qp.f32, ndim=1)
mat = qp.types.ndarray(qp.f32, ndim=2)
ints = qp.types.ndarray(qp.i32, ndim=1)


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


def reads(kernel, *args, array="x"):
    """The axes of what the last launch of ``kernel`` reads of ``array``, without repeats."""
    launch = stencils_of(kernel, *args)[-1]
    return [each.axes for each in launch if each.array == array and each.access is Access.READ]


def column(n=16):
    return np.zeros(n, np.float32)


def plane(n=8, m=6):
    return np.zeros((n, m), np.float32)


@qp.kernel
def laplace(x: mat, y: mat):
    for i, j in qp.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 2]


def test_each_neighbour_is_a_shift_of_each_axis():
    here = {(axes[0].low, axes[1].low) for axes in reads(laplace, plane(), plane())}
    assert here == {(-1, 0), (1, 0), (0, -1), (0, 2)}
    (written,) = [each for each in stencils_of(laplace, plane(), plane())[0] if each.array == "y"]
    assert (written.access, written.axes) == (Access.WRITE, (Near(0, 0, 0, False), Near(1, 0, 0, False)))
    assert written.location.line == laplace.source.span.line + 3


def test_shifts_are_relative_to_the_variable_not_to_the_number_of_the_iteration():
    @qp.kernel
    def every_third(x: vec, y: vec, n: qp.i32):
        for i in range(n - 1, 2, -3):
            y[i] = x[i - 2]

    assert reads(every_third, column(), column(), 12) == [(Near(0, -2, -2, False),)]


def test_inner_loops_around_the_index_count_with_all_their_turns():
    @qp.kernel
    def blur(x: vec, y: vec, r: qp.i32):
        for i in y:
            for d in range(-r, r + 1):
                y[i] += x[i + d]

    @qp.kernel
    def clipped(x: vec, y: vec):
        for i in y:
            for k in range(max(i - 2, 0), min(i + 4, x.shape[0])):
                y[i] += x[k]

    assert reads(blur, column(), column(), 3) == [(Near(0, -3, 3, False),)]
    assert reads(clipped, column(), column()) == [(Near(0, -2, 3, False),)]


@qp.kernel
def remainders(x: vec, y: vec, n: qp.i32):
    for i in y:
        y[i] = x[(i + 1) % x.shape[0]] + x[(i + n - 1) % n]


@qp.kernel
def choices(x: vec, y: vec, n: qp.i32):
    for i in y:
        right = i + 1
        if right == n:
            right = 0
        left = i - 1 if i > 0 else x.shape[0] - 1
        y[i] = x[right] + x[left]


@pytest.mark.parametrize("kernel", [remainders, choices])
def test_periodic_neighbours_are_near_in_each_spelling(kernel):
    assert reads(kernel, column(), column(), 16) == [(Near(0, 1, 1, True),), (Near(0, -1, -1, True),)]


def test_a_remainder_of_another_number_than_the_extent_is_far():
    far = [axes[0] for axes in reads(remainders, column(), column(), 8) if isinstance(axes[0], Far)]
    assert far == [Far(range(8), by_data=False)]


def test_clamps_do_not_wrap():
    @qp.kernel
    def clamped(x: vec, y: vec):
        for i in y:
            y[i] = x[min(i + 1, x.shape[0] - 1)] + x[qp.math.clamp(i - 2, 0, x.shape[0] - 1)]

    assert reads(clamped, column(), column()) == [(Near(0, 0, 1, False),), (Near(0, -2, 0, False),)]


def test_guards_do_not_count_and_launches_that_an_argument_forbids_do():
    @qp.kernel
    def guarded(x: vec, y: vec, far: qp.i32):
        for i in y:
            if i > 0:
                y[i] = x[i - 1]
            if far and i < x.shape[0] - 5:
                y[i] = x[i + 5]

    assert reads(guarded, column(), column(), 0) == [(Near(0, -1, -1, False),)]
    assert reads(guarded, column(), column(), 1) == [(Near(0, -1, -1, False),), (Near(0, 5, 5, False),)]


def test_an_index_may_follow_another_axis_of_the_loop():
    @qp.kernel
    def transpose(x: mat, y: mat):
        for i, j in y:
            y[i, j] = x[j, i]

    assert reads(transpose, plane(6, 6), plane(6, 6)) == [(Near(1, 0, 0, False), Near(0, 0, 0, False))]


def test_what_follows_no_variable_has_its_indices():
    @qp.kernel
    def others(x: mat, y: vec):
        for i in y:
            for j in range(x.shape[1]):
                y[i] += x[0, j]
            y[i] += x[i // 2, i % 3] + x[i * 2 % 4, 0]

    (first, second), (half, digit), _ = reads(others, plane(8, 6), column(8))
    assert (first, second) == (Far(range(1), False), Far(range(6), False))
    assert (half, digit) == (Far(range(4), False), Far(range(3), False))


def test_an_index_from_memory_is_by_data():
    @qp.kernel
    def gather(x: vec, y: vec, at: ints):
        for i in y:
            y[i] = x[at[i]]

    (axes,) = reads(gather, column(), column(), np.zeros(16, np.int32))
    assert axes == (Far(range(16), by_data=True),)


def test_a_serial_task_follows_nothing():
    @qp.kernel
    def first(x: vec):
        x[0] = x[1]

    assert reads(first, column()) == [(Far(range(1, 2), False),)]


def test_fields_and_vectors_of_indices():
    density = qp.field(qp.f32, shape=(8, 8))
    out = qp.field(qp.f32, shape=(8, 8))

    @qp.kernel
    def stream():
        for I in qp.grouped(out):
            total = 0.0
            for d in qp.static(((1, 0), (-1, 0), (0, 1), (0, -1))):
                total += density[(I + qp.Vector(d)) % 8]
            out[I] = total

    launch = stencils_of(stream)[0]
    name = next(each.array for each in launch if each.access is Access.READ)
    found = {tuple((a.low, a.wraps) for a in each.axes) for each in launch if each.array == name}
    assert found == {
        ((1, True), (0, True)), ((-1, True), (0, True)), ((0, True), (1, True)), ((0, True), (-1, True)),
    }  # fmt: skip


def test_arithmetic_that_wraps_makes_all_of_the_array_far():
    @qp.kernel
    def huge(x: vec, y: vec, n: qp.i32):
        for i in y:
            y[i] = x[i + n - n]
            y[i] = x[i * n // n]

    assert all(isinstance(axis, (Near, Far)) for axes in reads(huge, column(), column(), 1 << 30) for axis in axes)
    assert Far(None, by_data=False) in [axes[0] for axes in reads(huge, column(), column(), 1 << 30)]
