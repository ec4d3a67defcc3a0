"""Parallel sections inside kernels, which are checked when the kernel compiles."""

from __future__ import annotations

import quadpy as qp

from .kernels import F32, I32, PLANE
from .program import clean, racy


@racy("write after write")
def two_sections_write(x):
    @qp.kernel
    def both(x: F32):
        with qp.stream_parallel():
            for i in x:
                x[i] = i  # first
        # fixed to: if True:
        with qp.stream_parallel():
            for i in x:
                x[i] = 1.0  # second

    both(x)


@racy("read after write")
def a_section_reads_what_another_writes(x, y):
    @qp.kernel
    def both(x: F32, y: F32):
        with qp.stream_parallel():
            for i in x:
                x[i] = i  # first
        # fixed to: if True:
        with qp.stream_parallel():
            for i in y:
                y[i] = x[i]  # second

    both(x, y)


@racy("write after read")
def a_section_writes_what_another_reads(x, y):
    @qp.kernel(graph=True)
    def both(x: F32, y: F32):
        with qp.graph.parallel():
            for i in y:
                y[i] = x[i]  # first
        # fixed to: if True:
        with qp.graph.parallel():
            for i in x:
                x[i] = 0.0  # second

    both(x, y)


@racy("write after write")
def sections_with_a_common_element(x):
    @qp.kernel
    def halves(x: F32):
        with qp.stream_parallel():
            # fixed to: for i in range(32):
            for i in range(33):
                x[i] = 1.0  # first
        with qp.stream_parallel():
            for i in range(32, 64):
                x[i] = 2.0  # second

    halves(x)


@racy("read after write")
def a_section_reads_its_neighbours_edge(u, v):
    """The halo of the second half is the last row of the first."""

    @qp.kernel(graph=True)
    def step(u: PLANE, v: PLANE):
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i, j in qp.ndrange(8, 16):
                    u[i, j] = 1.0  # first
            with qp.graph.parallel():
                # fixed to: for i, j in qp.ndrange((9, 16), 16):
                for i, j in qp.ndrange((8, 16), 16):
                    v[i, j] = u[i - 1, j]  # second

    step(u, v)


@racy("write after write", "read after write")
def a_counter_is_cleared_beside_a_section(c):
    @qp.kernel
    def count(c: I32):
        with qp.stream_parallel():
            c[0] = 0  # first
        # fixed to: if True:
        with qp.stream_parallel():
            for i in range(64):
                qp.atomic_add(c[i % 8], 1)  # second

    count(c)


@racy("read after write")
def three_sections(x, y, z):
    """The third reads what the first writes; the second has nothing to do with it."""

    @qp.kernel
    def three(x: F32, y: F32, z: F32):
        with qp.stream_parallel():
            for i in x:
                x[i] = i  # first
        with qp.stream_parallel():
            for i in y:
                y[i] = i
        # fixed to: if True:
        with qp.stream_parallel():
            for i in z:
                z[i] = x[i]  # second

    three(x, y, z)


@racy("write after write")
def one_array_for_two_parameters(x, y):
    """The sections write two parameters, and the call passes one array for both."""

    @qp.kernel
    def both(a: F32, b: F32):
        with qp.stream_parallel():
            for i in a:
                a[i] = i  # first
        with qp.stream_parallel():
            for i in b:
                b[i] = 1.0  # second

    # fixed to: both(x, y)
    both(x, x)


@clean
def sections_with_arrays_of_their_own(x, y, z):
    @qp.kernel
    def three(x: F32, y: F32, z: F32):
        with qp.stream_parallel():
            for i in x:
                x[i] = i
        with qp.stream_parallel():
            for i in y:
                y[i] = 2 * i
        for i in z:
            z[i] = x[i] + y[i]

    three(x, y, z)


@clean
def sections_that_read_one_array(x, y, z):
    @qp.kernel(graph=True)
    def two(x: F32, y: F32, z: F32):
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i in y:
                    y[i] = x[i]
            with qp.graph.parallel():
                for i in z:
                    z[i] = 2 * x[i]
        for i in x:
            x[i] = y[i] + z[i]

    two(x, y, z)


@clean
def halves_in_sections(x):
    @qp.kernel
    def halves(x: F32, middle: qp.i32):
        with qp.stream_parallel():
            for i in range(middle):
                x[i] = 1.0
        with qp.stream_parallel():
            for i in range(middle, x.shape[0]):
                x[i] = 2.0

    halves(x, 32)


@clean
def even_and_odd_sections(x):
    @qp.kernel
    def colours(x: F32):
        with qp.stream_parallel():
            for i in range(32):
                x[2 * i] = 1.0
        with qp.stream_parallel():
            for i in range(32):
                x[2 * i + 1] = 2.0

    colours(x)


@racy("write after write", "read after write", "write after read")
def sections_that_update_one_element(c):
    @qp.kernel
    def count(c: I32):
        with qp.stream_parallel():
            c[0] += 1  # first
        # fixed to: if True:
        with qp.stream_parallel():
            for i in range(64):
                c[i % 8] += 1  # second

    count(c)


@clean
def sections_that_count_own_elements(c):
    @qp.kernel
    def count(c: I32):
        with qp.stream_parallel():
            for i in c:
                qp.atomic_add(c[i], 1)
        with qp.stream_parallel():
            qp.atomic_add(c[0], 1)

    count(c)


@clean
def sections_that_count(c):
    @qp.kernel
    def count(c: I32):
        with qp.stream_parallel():
            for i in range(64):
                qp.atomic_add(c[i % 8], 1)
        with qp.stream_parallel():
            for i in range(32):
                qp.atomic_add(c[i % 8], 2)

    count(c)


@clean
def one_array_for_two_parameters_that_are_read(x, y, z):
    @qp.kernel
    def two(a: F32, b: F32, y: F32, z: F32):
        with qp.stream_parallel():
            for i in y:
                y[i] = a[i]
        with qp.stream_parallel():
            for i in z:
                z[i] = b[i]

    two(x, x, y, z)


@clean
def inner_and_outer_sections(u):
    @qp.kernel(graph=True)
    def step(u: PLANE):
        with qp.graph.parallel_context():
            with qp.graph.parallel():
                for i, j in qp.ndrange((1, 15), (1, 15)):
                    u[i, j] = 1.0
            with qp.graph.parallel():
                for j in range(16):
                    u[0, j] = 0.0
                    u[15, j] = 0.0

    step(u)
