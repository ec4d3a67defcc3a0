"""Streams and arrays of other libraries, and views, which come in the same way."""

from __future__ import annotations

import numpy as np

import quadpy as qp

from .kernels import copy, ones, ramp
from .program import clean, racy


class DeviceArray:
    """Elements ``begin`` to ``end`` of an array on a GPU, as another library would export them."""

    def __init__(self, array, begin, end):
        self._array = array
        interface = array.__cuda_array_interface__
        pointer, read_only = interface["data"]
        self.__cuda_array_interface__ = {**interface, "shape": (end - begin,), "data": (pointer + 4 * begin, read_only)}


class TheirStream:
    """A stream as other libraries pass it on."""

    def __init__(self, handle):
        self._handle = handle

    def __cuda_stream__(self):
        return 0, self._handle


class TheirArray:
    """An array of quadpy's as another library passes it on."""

    def __init__(self, array):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)


def view(x, begin, end):
    """Elements ``begin`` to ``end`` of ``x``, over the same memory."""
    if x.device is None:
        return qp.from_dlpack(np.asarray(x)[begin:end])
    return qp.from_dlpack(DeviceArray(x, begin, end))


@racy("read after write")
def their_stream_and_ours(s1, x, y, ready):
    theirs = qp.Stream.from_handle(0)
    ramp(x, stream=theirs)  # first
    # fixed by: ready.record(theirs); ready.wait(s1)
    copy(x, y, stream=s1)  # second


@racy("read after write")
def ours_and_their_stream(s1, x, y, ready):
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(TheirStream(0))
    copy(x, y, stream=TheirStream(0))  # second


@racy("write after write")
def their_array(s1, s2, x, ready):
    """Two names of one array."""
    theirs = view(x, 0, 64)
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ones(theirs, stream=s2)  # second


@racy("read after write")
def their_array_from_the_default_stream(s1, x, y, ready):
    theirs = view(x, 0, 64)
    ones(theirs)  # first
    # fixed by: ready.record(); ready.wait(s1)
    copy(x, y, stream=s1)  # second


@racy("read after write")
def the_host_reads_what_another_name_writes(s1, x):
    """A read waits for what wrote the array, and knows nothing of other names of its memory."""
    theirs = view(x, 0, 32)
    ramp(theirs, stream=s1)  # first
    # fixed by: s1.synchronize()
    x.to_numpy()  # second


@racy("write after write")
def a_fill_knows_no_other_name(s1, x, ready):
    theirs = view(x, 0, 32)
    ramp(theirs, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait()
    x.fill(0.0)  # second


@racy("read after write")
def their_kernel_reads_too_soon(s1, x, ready):
    """Work of another library, which the program declares."""
    theirs = qp.Stream.from_handle(0)
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(theirs)
    qp.hazards.declare("their matmul", reads=[x], stream=theirs)  # second


@racy("read after write")
def their_kernel_has_not_written_yet(s1, x, y, ready):
    qp.hazards.declare("their matmul", writes=[x], stream=TheirStream(0))  # first
    # fixed by: ready.record(TheirStream(0)); ready.wait(s1)
    copy(x, y, stream=s1)  # second


@racy("write after read")
def numpy_writes_what_a_kernel_reads(s1, x, y):
    copy(x, y, stream=s1)  # first
    # fixed by: s1.synchronize()
    qp.hazards.declare("np.add(…, out=x)", writes=[x], stream="host")  # second


@clean
def declared_and_ordered(s1, x, y, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait()
    qp.hazards.declare("their matmul", reads=[x], writes=[y])
    ready.record()
    ready.wait(s1)
    copy(y, x, stream=s1)
    s1.synchronize()
    qp.hazards.declare("NumPy", reads=[x], writes=[y], stream="host")
    ones(y, stream=s1)


@clean
def their_default_stream_is_ours(x, y):
    """Handle 0 is the default stream, whoever names it."""
    ramp(x)
    copy(x, y, stream=qp.Stream.from_handle(0))
    ones(x, stream=TheirStream(0))


@clean
def one_stream_with_two_names(s1, x, y):
    """A handle of quadpy's own; on the CPU, where all handles are 0, nobody can tell which stream is meant."""
    ramp(x, stream=s1)
    copy(x, y, stream=qp.Stream.from_handle(int(s1.handle)) if s1.handle else s1)


@clean
def an_array_that_comes_back(s1, x, y, ready):
    ramp(x, stream=s1)
    ready.record(s1)
    ready.wait()
    theirs = view(x, 0, 64)
    copy(theirs, y)


@clean
def exported_after_the_work(s1, x, y):
    """An export waits for all work on the array, and so does what comes after it on its stream."""
    ramp(x, stream=s1)
    theirs = view(x, 0, 64)
    copy(theirs, y)


@clean
def numpy_arrays(s1, s2, x):
    """Such a call returns when the result is there."""
    given, result = np.ones(64, np.float32), np.empty(64, np.float32)
    copy(given, x, stream=s1)
    copy(x, result, stream=s1)
    copy(result, x, stream=s2)
    given[...] = 2


@clean
def numpy_arrays_that_only_live_for_a_call(s1, s2, x, y):
    """Two arrays of NumPy, one after the other at the same address."""
    copy(np.ones(64, np.float32), x, stream=s1)
    copy(np.zeros(64, np.float32), y, stream=s2)


@clean
def their_array_in_each_call(s1, x, y):
    for _ in range(3):
        copy(TheirArray(x), y, stream=s1)
        s1.synchronize()
        ramp(x, stream=s1)
