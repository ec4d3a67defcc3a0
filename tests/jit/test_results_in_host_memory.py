"""Results that a kernel writes into pinned memory, where the device can: no copy brings them."""

from __future__ import annotations

import ctypes
import struct

import pytest
from simulated import simulated
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.errors import DriverError


@qp.kernel
def halves(n: qp.i32) -> qp.types.vector(2, qp.f32):
    return qp.Vector([0.5 * n, 0.25 * n])


def body(block):
    """Writes the results; of the block only the number counts, and the address after that of scratch memory."""
    (n,) = struct.unpack_from("i", block)
    _, results = struct.unpack_from("QQ", block, 8)
    for slot, value in enumerate((0.5 * n, 0.25 * n)):
        ctypes.c_float.from_address(results + 8 * slot).value = value


@pytest.fixture(params=[True, False], ids=["mapped", "copied"])
def driver(request):
    made = RecordingDriver()
    if request.param:
        made.features |= {"mapped"}
    made.kernels["halves_t0"] = RecordedKernel(body)
    with simulated(made):
        yield made
    halves.forget()


def test_results(driver):
    for n in (2, 4, 6):
        before = len(driver.calls)
        assert halves(n).to_list() == [n / 2, n / 4]
        copies = [call.verb for call in driver.calls[before:] if call.verb == "copy_out"]
        assert copies == ([] if "mapped" in driver.features and n > 2 else ["copy_out"])


def test_each_call_has_memory_of_its_own_until_it_is_read(driver):
    """A finalizer may call the kernel while another call waits."""
    halves(2)
    halves(2)
    inner = []
    synchronize = driver.stream_synchronize

    def interrupted(stream):
        synchronize(stream)
        if not inner:
            inner.append(None)
            inner[0] = halves(8).to_list()

    driver.stream_synchronize = interrupted
    assert halves(4).to_list() == [2, 1]
    assert inner == [[4, 2]]


def test_the_host_waits_for_a_kernel_that_is_broken_off(driver):
    halves(2)
    halves(2)
    waits = []
    synchronize = driver.stream_synchronize

    def interrupted(stream):
        waits.append(stream)
        if len(waits) == 1:
            raise KeyboardInterrupt
        synchronize(stream)

    driver.stream_synchronize = interrupted
    with pytest.raises(KeyboardInterrupt):
        halves(4)
    assert len(waits) == 2
    assert halves(6).to_list() == [3, 1.5]


def test_a_launch_that_is_refused_leaves_the_next_one_as_it_was(driver):
    halves(2)
    halves(2)
    driver.failures["launch"] = DriverError("launch failed")
    with pytest.raises(DriverError, match="launch failed"):
        halves(4)
    assert halves(6).to_list() == [3, 1.5]
