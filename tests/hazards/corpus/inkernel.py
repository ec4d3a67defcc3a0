"""Iterations of one parallel loop that touch one element.

The definite ones are found when the kernel compiles.  Those that depend on data are found at run time, under
``debug=True``: ``@racy("race at run time")``.
"""

from __future__ import annotations

import numpy as np

import quadpy as qp

from .kernels import F32, I32, PLANE
from .program import clean, racy


@racy("race")
def all_write_one_element(x):
    @qp.kernel
    def last(x: F32):
        for i in range(64):
            # fixed to: qp.atomic_max(x[0], i)
            x[0] = i  # first and second

    last(x)


@racy("race")
def each_writes_what_the_next_reads(x):
    @qp.kernel
    def shift(x: F32):
        # fixed by: qp.loop_config(serialize=True)
        for i in range(63):
            x[i + 1] = x[i]  # first and second

    shift(x)


@racy("race")
def a_sum_of_neighbours_in_place(x):
    @qp.kernel
    def smooth(x: F32):
        # fixed by: qp.loop_config(serialize=True)
        for i in range(1, 63):
            x[i] = 0.5 * (x[i - 1] + x[i + 1])  # first and second

    smooth(x)


@racy("race")
def reversed_in_place(x):
    @qp.kernel
    def reverse(x: F32):
        # fixed by: qp.loop_config(serialize=True)
        for i in range(64):
            x[i] = x[63 - i]  # first and second

    reverse(x)


@racy("race")
def transposed_in_place(u):
    @qp.kernel
    def transpose(u: PLANE):
        # fixed by: qp.loop_config(serialize=True)
        for i, j in qp.ndrange(16, 16):
            u[i, j] = u[j, i]  # first and second

    transpose(u)


@racy("race")
def one_axis_is_missing(x):
    """A sum over j, written by every j."""

    @qp.kernel
    def rows(x: F32):
        for i, j in qp.ndrange(16, 16):
            # fixed to: qp.atomic_max(x[i], j)
            x[i] = j  # first and second

    rows(x)


@racy("race")
def pairs_share_an_element(x):
    @qp.kernel
    def halve(x: F32):
        for i in range(64):
            # fixed to: x[i] = i
            x[i // 2] = i  # first and second

    halve(x)


@racy("race")
def a_ring_that_is_too_small(x):
    @qp.kernel
    def ring(x: F32):
        for i in range(64):
            # fixed to: x[i % 64] = i
            x[i % 16] = i  # first and second

    ring(x)


@racy("race")
def two_stores_that_meet(x):
    """Each iteration writes its element and the next one."""

    @qp.kernel
    def both(x: F32):
        # fixed to: for i in range(0, 62, 2):
        for i in range(62):
            x[i] = 1.0  # first
            x[i + 1] = i  # second

    both(x)


@racy("race")
def written_here_and_read_there(x):
    """The first half of the iterations reads what the second half writes."""

    @qp.kernel
    def fold(x: F32):
        # fixed to: for i in range(32):
        for i in range(64):
            x[i] = x[i] + x[i + 32 - 32 * (i // 32)]  # first and second

    fold(x)


@racy("race")
def a_plain_sum_is_no_atomic(c):
    @qp.kernel
    def count(c: I32):
        for i in range(64):
            # fixed to: c[0] += i % 2
            c[0] = c[0] + i % 2  # first and second

    count(c)


@racy("race at run time")
def two_indices_are_equal(x, index):
    index.from_numpy((np.arange(64) // 2).astype(np.int32))

    @qp.kernel(debug=True)
    def scatter(index: I32, x: F32):
        # fixed by: qp.loop_config(serialize=True)
        for i in index:
            x[index[i]] = i  # first and second

    scatter(index, x)
    qp.sync()


@racy("race at run time")
def a_histogram_without_atomics(index, c):
    index.fill(3)

    @qp.kernel(debug=True)
    def histogram(index: I32, bins: I32):
        for i in index:
            # fixed to: qp.atomic_add(bins[index[i]], 1)
            bins[index[i]] = bins[index[i]] + 1  # first and second

    histogram(index, c)
    qp.sync()


@racy("race at run time")
def a_list_that_points_to_itself(x, index):
    """One iteration reads the element that another writes."""
    index.from_numpy(np.roll(np.arange(64), 1).astype(np.int32))

    @qp.kernel(debug=True)
    def follow(index: I32, x: F32):
        # fixed by: qp.loop_config(serialize=True)
        for i in index:
            x[i] = x[index[i]] + 1.0  # first and second

    follow(index, x)
    qp.sync()


@clean
def each_its_own(x):
    @qp.kernel
    def own(x: F32):
        for i in x:
            x[i] = x[i] + i

    own(x)


@clean
def a_permutation(x):
    @qp.kernel
    def strides(x: F32):
        for i in range(32):
            x[2 * i] = i
            x[2 * i + 1] = -i

    strides(x)


@clean
def reversed_into_another_array(x, y):
    @qp.kernel
    def reverse(x: F32, y: F32):
        for i in x:
            y[63 - i] = x[i]

    reverse(x, y)


@clean
def blocks_of_four(x):
    """``i // 4`` and ``i % 4`` together name each element once."""

    @qp.kernel
    def turn(x: F32):
        for i in range(64):
            x[i // 4 * 4 + (3 - i % 4)] = i

    turn(x)


@clean
def a_plane_in_one_loop(u):
    @qp.kernel
    def cells(u: PLANE):
        for k in range(256):
            u[k // 16, k % 16] = k

    cells(u)


@clean
def transposed_into_another_array(u, v):
    @qp.kernel
    def transpose(u: PLANE, v: PLANE):
        for i, j in qp.ndrange(16, 16):
            v[j, i] = u[i, j]

    transpose(u, v)


@clean
def a_loop_of_one_iteration(x):
    @qp.kernel
    def once(x: F32):
        for i in range(1):
            x[0] = i + x[1]
            x[1] = x[0]

    once(x)


@clean
def a_loop_in_order(x):
    @qp.kernel
    def prefix(x: F32):
        qp.loop_config(serialize=True)
        for i in range(1, 64):
            x[i] = x[i] + x[i - 1]

    prefix(x)


@clean
def a_flag_that_all_set(c):
    """All write the same value."""

    @qp.kernel
    def mark(c: I32):
        for _ in range(64):
            c[0] = 1

    mark(c)


@clean
def one_iteration_of_many(x):
    @qp.kernel
    def end(x: F32):
        for i in range(64):
            if i == 63:
                x[0] = i

    end(x)


@clean
def a_sum(x, y):
    @qp.kernel
    def total(x: F32, y: F32):
        for i in x:
            y[0] += x[i]

    total(x, y)


@clean
def rows_by_an_inner_loop(u):
    @qp.kernel
    def prefix(u: PLANE):
        for i in range(16):
            for j in range(1, 16):
                u[i, j] = u[i, j] + u[i, j - 1]

    prefix(u)


@clean
def a_permutation_of_the_data(x, index):
    index.from_numpy(np.random.default_rng(1).permutation(64).astype(np.int32))

    @qp.kernel(debug=True)
    def scatter(index: I32, x: F32):
        for i in index:
            x[index[i]] = i

    scatter(index, x)
    qp.sync()


@clean
def a_histogram(index, c):
    index.fill(3)

    @qp.kernel(debug=True)
    def histogram(index: I32, bins: I32):
        for i in index:
            qp.atomic_add(bins[index[i]], 1)

    histogram(index, c)
    qp.sync()


@clean
def written_in_one_task_and_read_in_the_next(x, y, index):
    """Shadow memory begins anew with each task."""
    index.fill(0)

    @qp.kernel(debug=True)
    def two(index: I32, x: F32, y: F32):
        for i in x:
            x[i] = i
        for i in x:
            y[i] = x[index[i]]

    two(index, x, y)
    qp.sync()
