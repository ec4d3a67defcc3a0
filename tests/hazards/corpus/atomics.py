"""Updates that commute, and updates that do not."""

from __future__ import annotations

from .kernels import clear, copy, count, count_own, count_to, histogram, largest, note, raise_own, sum_to, tally
from .program import clean, possible, racy


@racy("write after write")
def cleared_while_counted(s1, s2, c, ready):
    count(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    clear(c, stream=s2)  # second


@racy("write after write", "read after write")
def counted_before_it_is_cleared(s1, s2, c, ready):
    clear(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    count(c, stream=s2)  # second


@racy("read after write")
def read_while_counted(s1, s2, c, d, ready):
    count(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    note(c, d, stream=s2)  # second


@racy("write after read")
def counted_while_read(s1, s2, c, d, ready):
    note(c, d, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    count(c, stream=s2)  # second


@racy("write after write", "read after write")
def a_sum_and_a_maximum(s1, s2, c, ready):
    """Each commutes with itself, and not with the other."""
    count(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    largest(c, stream=s2)  # second


@racy("write after write")
def cleared_while_two_count(s1, s2, s3, c, ready, done):
    count(c, stream=s1)
    count(c, stream=s2)  # first
    ready.record(s1)
    ready.wait(s3)
    # fixed by: done.record(s2); done.wait(s3)
    clear(c, stream=s3)  # second


@racy("write after write", "read after write", "write after read")
def two_reductions_of_one_total(s1, s2, x, y, z, ready):
    """Each adds its sum to the total, without an atomic."""
    sum_to(x, z, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    sum_to(y, z, stream=s2)  # second


@racy("write after write", "read after write", "write after read")
def two_launches_that_update_own_elements(s1, s2, c, ready):
    raise_own(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    raise_own(c, stream=s2)  # second


@racy("write after write", "read after write", "write after read")
def two_launches_whose_iterations_share_elements(s1, s2, c, ready):
    """``+=`` is one step among the iterations of a launch, not among launches."""
    tally(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    tally(c, stream=s2)  # second


@racy("write after write", "read after write", "write after read")
def an_update_of_the_launch_beside_atomic_ones(s1, s2, c, ready):
    count_own(c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    tally(c, stream=s2)  # second


@racy("read after write")
def a_reduction_is_read(s1, s2, x, y, z, ready):
    sum_to(x, y, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(y, z, stream=s2)  # second


@possible("write after write", "read after write", reason="some of these elements")
def a_bin_that_the_data_choose(s1, s2, index, c, ready):
    """A part of the histogram is cleared while it is made."""
    ready.record()
    ready.wait(s1)
    histogram(index, c, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    clear(c, stream=s2)  # second


@clean
def two_count(s1, s2, c):
    count(c, stream=s1)
    count(c, stream=s2)


@clean
def two_count_own_elements(s1, s2, c):
    count_own(c, stream=s1)
    count_own(c, stream=s2)
    count(c, stream=s1)


@clean
def two_add_to_one_total(s1, s2, x, y, z):
    count_to(x, z, stream=s1)
    count_to(y, z, stream=s2)


@clean
def two_maxima(s1, s2, c):
    largest(c, stream=s1)
    largest(c, stream=s2)


@clean
def histograms(s1, s2, index, c, ready):
    ready.record()
    ready.wait(s1)
    ready.wait(s2)
    histogram(index, c, stream=s1)
    histogram(index, c, stream=s2)


@clean
def counted_then_read(s1, s2, s3, c, d, ready, done):
    count(c, stream=s1)
    count(c, stream=s2)
    ready.record(s1)
    done.record(s2)
    ready.wait(s3)
    done.wait(s3)
    note(c, d, stream=s3)


@clean
def counters_of_their_own(s1, s2, c, d):
    count(c, stream=s1)
    largest(d, stream=s2)


@clean
def counted_in_order(s1, s2, c, d, ready):
    clear(c, stream=s1)
    count(c, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    largest(c, stream=s2)
    note(c, d, stream=s2)
