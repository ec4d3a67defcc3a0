"""Copies, fills and values of the host, which are ordered themselves, and what comes after them, which is not."""

from __future__ import annotations

import numpy as np

import quadpy as qp

from .kernels import F32, copy, every, ones, part, ramp
from .program import clean, racy


@racy("read after write")
def filled_on_the_default_stream(s1, x, y, ready):
    """The mistake of most programs: ``fill`` without a stream."""
    x.fill(1.0)  # first
    # fixed by: ready.record(); ready.wait(s1)
    copy(x, y, stream=s1)  # second


@racy("write after write")
def cleared_on_the_default_stream(s1, x):
    # fixed to: x.fill(0.0, stream=s1)
    x.fill(0.0)  # first
    ramp(x, stream=s1)  # second


@racy("read after write")
def a_copy_and_its_reader(s1, s2, x, y, z, ready):
    y.copy_from(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(y, z, stream=s2)  # second


@racy("write after read")
def a_copy_and_the_next_value(s1, s2, x, y, ready):
    y.copy_from(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ramp(x, stream=s2)  # second


@racy("write after write")
def a_copy_and_a_writer(s1, s2, x, y, ready):
    y.copy_from(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ramp(y, stream=s2)  # second


@racy("read after write")
def uploaded_on_another_stream(s1, s2, x, y, ready):
    x.from_numpy(np.ones(64, np.float32), stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("write after write")
def uploaded_without_a_stream(s1, x):
    x.from_numpy(np.ones(64, np.float32))  # first
    # fixed by: qp.sync()
    ramp(x, stream=s1)  # second


@racy("write after write")
def one_element_of_the_host(s1, x):
    x[3] = 1.0  # first
    # fixed to: part(x, 4, 8, stream=s1)
    part(x, 0, 8, stream=s1)  # second


@racy("write after write")
def a_slice_of_the_host(s1, x):
    x[10:20] = 1.0  # first
    # fixed to: part(x, 20, 64, stream=s1)
    part(x, 19, 64, stream=s1)  # second


@racy("read after write")
def a_field_is_filled(s1, y, ready):
    """A field is an array like any other."""
    f = qp.field(qp.f32, 64)

    @qp.kernel
    def take(y: F32):
        for i in y:
            y[i] = f[i]

    f.fill(1.0)  # first
    # fixed by: ready.record(); ready.wait(s1)
    take(y, stream=s1)  # second


@clean
def filled_on_the_same_stream(s1, x, y):
    x.fill(1.0, stream=s1)
    copy(x, y, stream=s1)


@clean
def a_fill_comes_after_all_that_uses_the_array(s1, s2, x, y):
    """quadpy orders the fill itself, and what follows it on its stream."""
    ramp(x, stream=s1)
    copy(y, x, stream=s1)
    x.fill(0.0, stream=s2)
    copy(x, y, stream=s2)


@clean
def a_copy_comes_after_its_writers(s1, s2, s3, x, y, z):
    ramp(x, stream=s1)
    ramp(y, stream=s2)
    z.copy_from(x, stream=s3)
    z.copy_from(y, stream=s3)


@clean
def two_copies_of_one_array(s1, s2, x, y, z):
    y.copy_from(x, stream=s1)
    z.copy_from(x, stream=s2)


@clean
def numpy_in_and_out(s1, s2, x):
    """What ``to_numpy`` returned, the device has done."""
    x.from_numpy(np.ones(64, np.float32), stream=s1)
    x.to_numpy(stream=s2)
    ones(x, stream=s2)


@clean
def an_element_is_read(s1, s2, x):
    ramp(x, stream=s1)
    assert x[5] is not None
    ones(x, stream=s2)


@clean
def elements_of_the_host_beside_a_part(s1, x):
    x[3] = 1.0
    x[40:64] = 2.0
    part(x, 4, 40, stream=s1)


@clean
def written_by_the_host_afterwards(s1, s2, x):
    part(x, 0, 8, stream=s1)
    every(x, 8, 2, stream=s2)
    x[3] = 1.0
    x[12:20] = 1.0
    x.from_numpy(np.zeros(64, np.float32))


@clean
def a_copy_of_itself(s1, s2, x):
    x.copy_from(x, stream=s1)
    x.copy_from(x, stream=s2)


@clean
def pickled_and_printed(s1, x, y):
    ramp(x, stream=s1)
    assert len(x) == 64
    assert "64" in repr(x)
    y.copy_from(x)
    ones(y)
