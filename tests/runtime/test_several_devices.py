"""Two devices of one kind in one process: each has its own streams and memory, and events order them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.errors import DeviceError, StreamError
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def touch(x: F32):
    for i in x:
        x[i] = 1


@pytest.fixture
def two():
    """Devices 0 and 1; ``on(k)`` makes one current, as ``qp.init`` does."""
    before = current_config()
    first = RecordingDriver(0)
    drivers = (first, RecordingDriver(1, beside=first))
    for driver in drivers:
        devices._open["recording", driver.ordinal] = Device(driver)
        for task in touch.compile("gfx942").tasks:
            driver.kernels[task.symbol] = RecordedKernel(lambda block: None)
    opened = [devices._open["recording", k] for k in range(2)]
    try:
        yield opened
    finally:
        set_config(before)
        for k, device in enumerate(opened):
            del devices._open["recording", k]
            device.close()
    assert first.races() == []
    assert all(set(driver.left_open().values()) == {0} for driver in drivers)


def on(ordinal):
    set_config(Config(arch="recording", ordinal=ordinal))


def array_on(ordinal):
    on(ordinal)
    return qp.ndarray(qp.f32, 100)


def test_new_things_are_on_the_device_that_is_current(two):
    for ordinal in (1, 0):
        a = array_on(ordinal)
        f = qp.field(qp.f32, 4)
        f.fill(3)
        with qp.create_stream() as stream, qp.create_event() as event:
            assert {a.device, f.device, stream.device, event.device} == {two[ordinal]}
        assert two[ordinal].memory_stats().blocks == 2


@pytest.mark.quadpy_hazards(allow="of a call that fails, the checker does not know how far it came")
def test_a_kernel_takes_arrays_of_its_device_alone(two):
    a, b = array_on(0), array_on(1)
    touch(b)
    with pytest.raises(DeviceError, match=r"recording:0.*but the kernel runs on.*recording:1"):
        touch(a)
    on(0)
    touch(a)
    with pytest.raises(DeviceError, match=r"recording:1.*but the kernel runs on.*recording:0"):
        touch(b)


def test_a_stream_takes_work_on_its_device_alone(two):
    a, stream = array_on(0), two[1].create_stream()
    for use in (
        lambda: a.fill(1, stream=stream), lambda: a.to_numpy(stream=stream), lambda: touch(a, stream=stream),
        lambda: qp.ndarray(qp.f32, 3, stream=stream),
    ):  # fmt: skip
        with pytest.raises(StreamError, match="use a stream of its device"):
            use()


def test_copies_go_through_the_host(two):
    a, b = array_on(0), array_on(1)
    a.from_numpy(np.arange(100, dtype=np.float32))
    b.copy_from(a)
    assert (b.to_numpy() == np.arange(100)).all()
    with two[1].create_stream() as there:
        a.fill(7)
        b.copy_from(a, stream=there)
        assert b[99] == 7
    with two[0].create_stream() as here:
        b.fill(8)
        a.copy_from(b, stream=here)
        assert a[0] == 8


def test_a_stream_waits_for_an_event_of_the_other_device(two):
    first, second = two
    with first.create_stream() as s1, second.create_stream() as s2, first.create_event() as done:
        a = first.allocate(64, s1)
        first.driver.fill(a.pointer, 3, 64, s1.handle)
        done.record(s1)
        done.wait(s2)
        marker = second.create_event()
        marker.record(s2)
        assert not marker.query()
        marker.synchronize()
        assert done.query()  # as the other one waited for it


def test_the_current_stream_is_each_device_s_own(two):
    with two[0].create_stream() as s1, qp.use_stream(s1):
        on(1)
        assert qp.ndarray(qp.f32, 4).block.home is two[1].default_stream.timeline
        with two[1].create_stream() as s2, qp.use_stream(s2):
            assert qp.ndarray(qp.f32, 4).block.home is s2.timeline
            on(0)
            assert qp.ndarray(qp.f32, 4).block.home is s1.timeline


def test_threads_work_on_different_devices(two):
    arrays, errors = [array_on(0), array_on(1)], []

    def work(ordinal):
        try:
            with two[ordinal].create_stream() as stream:
                for value in range(20):
                    arrays[ordinal].fill(value, stream=stream)
                    assert arrays[ordinal].to_numpy(stream=stream)[5] == value
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(ordinal,)) for ordinal in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_closing_one_leaves_the_other(two):
    a = array_on(0)
    two[1].close()
    a.fill(2)
    assert a[4] == 2
