"""Ctrl-C at every place of programs that use streams, events, memory and graphs: what must hold afterwards.

No lock is held, no capture is open, the thread is on its default stream, the same calls work and give the right numbers,
and nothing is left open once the device is closed.  ``--interrupts=0`` tries every place, not a sample.
"""

from __future__ import annotations

import contextlib
import gc
import linecache

import numpy as np
import pytest
from simulated import F32, add, as_add, run_printing, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.runtime.launch.capturing import CAPTURES, thread_captures
from quadpy.runtime.memory.allocators.cache import CachingAllocator

from ..support.interrupts import interrupt, places_of, sample  # noqa: TID252

N = 8


@qp.kernel
def both(x: F32, y: F32):
    with qp.stream_parallel():
        for i in x:
            x[i] = x[i] + 1
    with qp.stream_parallel():
        for i in y:
            y[i] = y[i] + 1


@qp.kernel
def say(n: qp.i32):
    print("say", n)


def as_plus_one(x):
    x += 1


def streams(x, y):
    with qp.create_stream() as one, qp.create_stream() as two:
        add(x, y, stream=one)
        one.query()
        one.synchronize()
        add(x, y, stream=two)
        two.synchronize()


def events(x, y):
    with qp.create_stream() as stream, qp.create_event() as event:
        event.record()
        event.wait(stream)
        add(x, y, stream=stream)
        event.record(stream)
        event.wait()
        event.synchronize()


def dropped(x, y):
    stream, event = qp.create_stream(), qp.create_event()
    event.record(stream)
    add(x, y, stream=stream)
    del stream, event
    qp.sync()
    gc.collect()


def by_handle(x, y):
    """Handles are the user's to give back; so only what quadpy itself has of them may not be lost."""
    manager = x.device.streams
    stream, event = manager.create_stream(), manager.create_event()
    pointer = manager.malloc_async(64, stream)
    manager.record_event(event, stream)
    manager.stream_wait_event(0, event)
    manager.free_async(pointer, 0)
    manager.destroy_event(event)
    manager.destroy_stream(stream)


def arrays(x, y):
    z = qp.ndarray(qp.f32, N)
    z.copy_from(x)
    z[1] = 3
    assert z.to_numpy()[1] == 3
    del z
    w = qp.ndarray(qp.f32, 3 * N)
    w.fill(2)


def arrays_in_turn(x, y):
    """Each takes the memory of the one before, which has just died."""
    for n in range(3):
        z = qp.ndarray(qp.f32, N)
        assert not z.to_numpy().any(), n
        z.fill(1)
        add(x, z)


def shared_arrays(x, y):
    """Made on one stream, used on another, dropped while that one is busy, and taken again."""
    with qp.create_stream() as stream:
        z = qp.ndarray(qp.f32, N)
        z.fill(1)
        qp.sync()
        add(z, y, stream=stream)
        del z
        z = qp.ndarray(qp.f32, N)
        z.fill(2)
        stream.synchronize()
        qp.sync()


def fields(x, y):
    f = qp.field(qp.f32, N)
    f.fill(1)
    f[2] = 5
    f.from_numpy(np.ones(N, np.float32))
    assert f.to_numpy()[2] == 1


def host_arrays(x, y):
    add(np.ones(N, np.float32), y)
    given = np.ones((N, 2), np.float32)
    add(x, given[:, 0].copy())


def current_streams(x, y):
    stream = qp.create_stream()
    with qp.use_stream(stream):
        add(x, y)
        qp.sync()
    stream.destroy()


def sections(x, y):
    """A kernel whose branches run on streams of their own."""
    both(x, y)
    qp.sync()
    with qp.create_stream() as stream:
        both(x, y, stream=stream)
        stream.synchronize()


class Tensor:
    """An array as another library shows it."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def dlpack(x, y):
    add(Tensor(x), y)
    x.__dlpack__()


def prints(x, y):
    """Rings are taken, read, emptied and given to the next launch."""
    say(1)
    with qp.create_stream() as stream:
        say(2, stream=stream)
        say(3, stream=stream)
        stream.synchronize()
    say(4)
    qp.sync()


PROGRAMS = [
    streams,
    events,
    dropped,
    by_handle,
    arrays,
    arrays_in_turn,
    shared_arrays,
    fields,
    host_arrays,
    current_streams,
    sections,
    dlpack,
    prints,
]


@contextlib.contextmanager
def prepared(program, allocator="cache"):
    """A simulated device with two arrays; at the end it is closed, and nothing is left open."""
    driver = RecordingDriver()
    with simulated(driver, allocator) as device:
        stand_in(driver, add, as_add)
        stand_in(driver, both, lambda x, y: as_plus_one(x), lambda x, y: as_plus_one(y))
        run_printing(driver, say)
        x, y = qp.ndarray(qp.f32, N), qp.ndarray(qp.f32, N)
        program(x, y)
        gc.collect()
        qp.sync()
        yield device, x, y
        del x, y
    assert set(driver.left_open().values()) == {0}, driver.left_open()
    assert driver.races() == []


def check(device, program, x, y, steady):
    assert not CAPTURES.count
    assert device.life.direct or CAPTURES.observer is not None
    assert not thread_captures().sessions
    assert not thread_captures().streams
    assert device.current_stream() is device.default_stream
    for _ in range(2):
        qp.sync()
        program(x, y)
    qp.sync()
    x.fill(1)
    y.fill(1)
    add(x, y)
    assert (y.to_numpy() == 2).all()
    gc.collect()
    qp.sync()
    if program is not by_handle:
        assert open_things(device) == steady


def open_things(device):
    """What is there, but for streams of branches, events and memory that quadpy keeps for the next ones."""
    streams = device.driver.left_open()["streams"] - len(device.branches._free)
    return streams, device.memory.stats().used, device.memory.stats().blocks


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_ctrl_c_at_every_place(program, request):
    with prepared(program) as (device, x, y):
        places = places_of(lambda: program(x, y))
        gc.collect()
        qp.sync()
        steady = open_things(device)
    assert len(places) > 100
    found = [broken_by(program, place, steady) for place in sample(places, request.config.getoption("--interrupts"), 0)]
    assert not any(found), "\n".join(filter(None, found))


def broken_by(program, place, steady):
    """What does not hold after Ctrl-C at ``place``, in a line; None where all is well."""
    try:
        with prepared(program) as (device, x, y):
            gc.disable()
            try:
                interrupt(lambda: program(x, y), place)
            finally:
                gc.enable()
            check(device, program, x, y, steady)
    except Exception as error:  # noqa: BLE001 - it fails the test with all others
        return f"{place}: {type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def line_at(place):
    lines = [line for start, end, line in place.code.co_lines() if start <= place.offset < end]
    return linecache.getline(place.code.co_filename, lines[0])


def test_ctrl_c_while_memory_is_put_back_loses_none():
    """Between the block's place in a list and the note of which list has something."""
    release = CachingAllocator._await.__code__
    with prepared(by_handle) as (_, x, y):
        places = [place for place in places_of(lambda: by_handle(x, y)) if place.code is release]
    noted = [place for place in places if "_keepers.add" in line_at(place)]
    assert len(noted) > 8
    found = [broken_by(by_handle, place, None) for place in sample(noted, 8, 0)]
    assert not any(found), "\n".join(filter(None, found))
