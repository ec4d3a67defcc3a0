"""A hundred thousand launches, streams, events and arrays, made and dropped: memory and handles are where they were."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import numpy as np
import pytest
from simulated import current, simulated
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp

from .conftest import why_missing

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
MANY = 100_000
SLACK = 4 << 20  # bytes: what allocators of the process keep; a leak of 100 bytes a turn is more than twice that
DEVICES = [name for name in ("cpu", "recording", "cuda") if why_missing(name) is None]  # an emulated one is too slow

STATM = Path("/proc/self/statm")

pytestmark = pytest.mark.skipif(not STATM.exists(), reason="needs Linux to tell its memory")


@qp.kernel
def touch(x: F32):
    for i in x:
        x[i] = 1


@qp.kernel
def count(n: qp.i32) -> qp.i32:
    total = 0
    for _i in range(n):
        total += 1
    return total


@pytest.fixture(params=DEVICES)
def device(request):
    with contextlib.ExitStack() as stack:
        if request.param == "recording":
            driver = RecordingDriver(history=False)
            for kernel in (touch, count):
                for task in kernel.compile(driver.info.arch).tasks:
                    driver.kernels[task.symbol] = RecordedKernel(lambda block: None)
            yield stack.enter_context(simulated(driver))
        else:
            yield stack.enter_context(current(request.param))


def resident():
    """Bytes of the process that lie in memory."""
    gc.collect()
    return int(STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def handles(device):
    """What the device counts; the events kept for the next marks stop growing, and are no leak."""
    gc.collect()  # what earlier tests left
    device.synchronize()
    stats = device.memory_stats()
    left = device.driver.left_open() if isinstance(device.driver, RecordingDriver) else {}
    left.pop("events", None)
    return (
        device.streams.live(),
        stats.used,
        stats.blocks,
        stats.reserved,
        left,
        len(device.deferred),
        len(device.reaper),
    )


def launch(device, x, _turn):
    touch(x)


def launch_on_a_stream(device, x, _turn):
    with qp.create_stream() as stream:
        touch(x, stream=stream)


def launch_with_a_host_array(device, x, turn):
    if turn % 10 == 0:  # these copy, and wait
        touch(np.zeros(4, np.float32))


def launch_with_a_result(device, x, turn):
    if turn % 10 == 0:
        count(3)


def drop_streams_and_events(device, x, _turn):
    stream, event = qp.create_stream(), qp.create_event()
    event.record(stream)
    event.wait()


def destroy_streams_and_events(device, x, _turn):
    with qp.create_stream() as stream, qp.create_event(timing=True) as event:
        event.record(stream)


def arrays(device, x, turn):
    if turn % 4 == 0:
        y = qp.ndarray(qp.f32, 64)
        y.fill(1)


def capsules(device, x, turn):
    if turn % 4 == 0:
        qp.from_dlpack(x)
        x.__dlpack__()


USES = [launch, launch_on_a_stream, launch_with_a_host_array, launch_with_a_result, drop_streams_and_events,
        destroy_streams_and_events, arrays, capsules]  # fmt: skip


@pytest.mark.quadpy_hazards(off="it measures what is left of work on many streams, which nothing orders")
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_hundred_thousand_leave_nothing(device, use):
    x = qp.ndarray(qp.f32, 4)

    def run(turns):
        for turn in range(turns):
            use(device, x, turn)
            if turn % 64 == 0:
                device.synchronize()

    run(2000)  # what is made once is made here
    before = handles(device)
    events = events_of(device)
    memory = resident()
    slow = isinstance(device.driver, RecordingDriver) and "stream" in use.__name__  # there, a search for a free handle
    run(MANY // 5 if slow else MANY)
    assert handles(device) == before
    assert events_of(device) <= events + 64  # marks that are out at once
    assert resident() - memory < SLACK


def events_of(device):
    return device.driver.left_open()["events"] if isinstance(device.driver, RecordingDriver) else 0
