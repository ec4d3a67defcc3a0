"""Parts of one array: halves, halos, every second element, rows and columns, views."""

from __future__ import annotations

import numpy as np

import quadpy as qp

from .foreign import view
from .kernels import (  # fmt: skip
    box,
    clip,
    columns,
    copy,
    copy_part,
    every,
    gather,
    laplace,
    neighbours,
    odd_from_even,
    parity,
    part,
    ramp,
    rows,
    scatter,
)
from .program import clean, possible, racy


@racy("write after write")
def parts_that_overlap(s1, s2, x, ready):
    part(x, 0, 40, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    part(x, 30, 64, stream=s2)  # second


@racy("write after write")
def one_element_too_many(s1, s2, x):
    # fixed to: part(x, 0, 32, stream=s1)
    part(x, 0, 33, stream=s1)  # first
    part(x, 32, 64, stream=s2)  # second


@racy("read after write")
def a_part_is_read(s1, s2, x, y, ready):
    part(x, 16, 48, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy_part(x, 40, 64, y, stream=s2)  # second


@racy("write after read")
def the_halo_is_forgotten(s1, s2, x, y, ready):
    """The second half reads one element of the first."""
    neighbours(x, 32, 63, y, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    part(x, 0, 32, stream=s2)  # second


@racy("read after write")
def the_halo_comes_too_late(s1, s2, x, y, ready):
    """The halo is filled on its own stream while the step that reads it runs."""
    part(x, 0, 1, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    neighbours(x, 1, 63, y, stream=s2)  # second


@racy("write after write")
def steps_that_meet(s1, s2, x, ready):
    """Multiples of 2 and of 3 meet in those of 6."""
    every(x, 0, 2, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    every(x, 0, 3, stream=s2)  # second


@racy("write after write")
def the_same_half(s1, s2, x):
    every(x, 0, 2, stream=s1)  # first
    # fixed to: every(x, 1, 2, stream=s2)
    every(x, 2, 2, stream=s2)  # second


@racy("read after write")
def odd_elements_read_even_ones(s1, s2, x, ready):
    every(x, 0, 2, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    odd_from_even(x, stream=s2)  # second


@racy("read after write", "write after read")
def red_and_black(s1, s2, x, ready):
    """Each colour writes its own elements, and reads the other's."""
    parity(x, 0, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    parity(x, 1, stream=s2)  # second


@racy("write after write")
def rows_that_overlap(s1, s2, u):
    # fixed to: rows(u, 0, 8, stream=s1)
    rows(u, 0, 9, stream=s1)  # first
    rows(u, 8, 16, stream=s2)  # second


@racy("write after write")
def a_row_and_a_column(s1, s2, u, ready):
    """They have one element in common."""
    rows(u, 5, 6, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    columns(u, 3, 4, stream=s2)  # second


@racy("write after write")
def boxes_with_a_common_corner(s1, s2, u):
    box(u, 0, 9, 0, 9, stream=s1)  # first
    # fixed to: box(u, 9, 16, 9, 16, stream=s2)
    box(u, 8, 16, 8, 16, stream=s2)  # second


@racy("write after read")
def a_step_reads_rows_that_are_replaced(s1, s2, u, v, ready):
    """The inner rows are computed from all, while the first row is written for the next step."""
    laplace(u, v, 1, 15, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    rows(u, 0, 1, stream=s2)  # second


@racy("read after write")
def two_halves_of_a_plane(s1, s2, u, v, w, ready):
    """The upper half of the second step reads a row of the lower half of the first step."""
    laplace(u, v, 1, 8, stream=s1)
    laplace(u, v, 8, 15, stream=s2)  # first
    # fixed by: ready.record(s2); ready.wait(s1)
    laplace(v, w, 1, 8, stream=s1)  # second


@racy("write after write")
def views_that_overlap(s1, s2, x, ready):
    left, right = view(x, 0, 40), view(x, 30, 64)
    ramp(left, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ramp(right, stream=s2)  # second


@racy("read after write")
def a_view_and_its_array(s1, s2, x, y, ready):
    middle = view(x, 20, 40)
    ramp(middle, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("write after read")
def a_view_of_a_view(s1, s2, x, y, ready):
    inner = view(view(x, 16, 48), 8, 24)
    copy_part(x, 30, 31, y, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ramp(inner, stream=s2)  # second


@possible("write after write", reason="some of these elements")
def places_that_only_the_data_know(s1, s2, x, index):
    index.from_numpy(np.arange(64, dtype=np.int32) // 2)
    qp.sync()
    scatter(index, x, stream=s1)  # first
    # fixed by: s1.synchronize()
    part(x, 48, 64, stream=s2)  # second


@possible("read after write", reason="some of these elements")
def read_where_the_data_say(s1, s2, x, y, index):
    index.fill(3)
    qp.sync()
    part(x, 0, 8, stream=s1)  # first
    # fixed by: s1.synchronize()
    gather(index, x, y, stream=s2)  # second


@possible("write after read", reason="whether it takes place")
def written_if_negative(s1, s2, x, y, ready):
    copy(x, y, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    clip(x, stream=s2)  # second


@clean
def halves(s1, s2, x):
    part(x, 0, 32, stream=s1)
    part(x, 32, 64, stream=s2)


@clean
def even_and_odd(s1, s2, x):
    every(x, 0, 2, stream=s1)
    every(x, 1, 2, stream=s2)


@clean
def thirds(s1, s2, s3, x):
    every(x, 0, 3, stream=s1)
    every(x, 1, 3, stream=s2)
    every(x, 2, 3, stream=s3)


@clean
def a_part_beside_another(s1, s2, x, y):
    part(x, 0, 20, stream=s1)
    copy_part(x, 20, 64, y, stream=s2)


@clean
def nothing_at_all(s1, s2, x):
    part(x, 5, 5, stream=s1)
    ramp(x, stream=s2)


@clean
def an_array_of_no_elements(s1, s2):
    nothing = qp.ndarray(qp.f32, 0)
    ramp(nothing, stream=s1)
    ramp(nothing, stream=s2)


@clean
def halves_of_rows(s1, s2, u):
    rows(u, 0, 8, stream=s1)
    rows(u, 8, 16, stream=s2)


@clean
def halves_of_columns(s1, s2, u):
    """Their bytes alternate."""
    columns(u, 0, 8, stream=s1)
    columns(u, 8, 16, stream=s2)


@clean
def four_boxes(s1, s2, s3, u):
    box(u, 0, 8, 0, 8, stream=s1)
    box(u, 0, 8, 8, 16, stream=s2)
    box(u, 8, 16, 0, 8, stream=s3)
    box(u, 8, 16, 8, 16)


@clean
def inner_and_outer(s1, s2, u):
    """The inner elements, and the four edges around them."""
    box(u, 1, 15, 1, 15, stream=s1)
    rows(u, 0, 1, stream=s2)
    rows(u, 15, 16, stream=s2)
    box(u, 1, 15, 0, 1, stream=s2)
    box(u, 1, 15, 15, 16, stream=s2)


@clean
def inner_rows_while_the_halo_comes(s1, s2, u, v, ready):
    """Rows 2 to 13 read none of the rows 0 and 15 that arrive meanwhile; the outer ones wait for them."""
    rows(u, 0, 1, stream=s2)
    rows(u, 15, 16, stream=s2)
    laplace(u, v, 2, 14, stream=s1)
    ready.record(s2)
    ready.wait(s1)
    laplace(u, v, 1, 2, stream=s1)
    laplace(u, v, 14, 15, stream=s1)


@clean
def two_halves_of_a_step(s1, s2, u, v):
    laplace(u, v, 1, 8, stream=s1)
    laplace(u, v, 8, 15, stream=s2)


@clean
def views_side_by_side(s1, s2, x):
    left, right = view(x, 0, 32), view(x, 32, 64)
    ramp(left, stream=s1)
    ramp(right, stream=s2)


@clean
def a_view_beside_a_part(s1, s2, x, y):
    middle = view(x, 20, 40)
    ramp(middle, stream=s1)
    part(x, 0, 20, stream=s2)
    copy_part(x, 40, 64, y, stream=s2)


@clean
def the_same_element_of_other_arrays(s1, s2, x, y):
    part(x, 3, 4, stream=s1)
    part(y, 3, 4, stream=s2)


@clean
def a_neighbour_reads_the_other_side(s1, s2, x, y):
    neighbours(x, 40, 63, y, stream=s1)
    part(x, 0, 39, stream=s2)


@clean
def known_places_after_an_event(s1, s2, x, y, index, ready):
    ready.record()
    ready.wait(s1)
    scatter(index, x, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    gather(index, x, y, stream=s2)
    clip(x, stream=s2)
