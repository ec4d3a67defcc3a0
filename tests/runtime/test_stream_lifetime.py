"""Streams, events and devices at their ends: leaks, forks, exit with work pending, several devices, borrowed streams."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from unittest import mock

import pytest
from simulated import simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import DeviceError, NoDeviceError, StreamError
from quadpy.runtime.device import devices
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.cpu import CpuDriver
from quadpy.runtime.streams.stream import Stream, use_stream


def test_a_hundred_thousand_handles_leave_nothing():
    driver = RecordingDriver(history=False)
    with Device(driver) as device:
        for turn in range(100_000 // 4):
            stream, event = device.create_stream(), device.create_event()
            event.record(stream)
            buffer = device.allocate(64, stream)
            del stream, event, buffer
            device.reaper.drain()
            if turn % 64 == 0:
                device.synchronize()
        device.synchronize()
        device.memory.trim()
        left = driver.left_open()
        assert (left["streams"], left["memory"]) == (0, 0)
        assert left["events"] <= 64  # kept for the next marks: as many as were out at once
        assert not driver.simulation.ready()
    assert set(driver.left_open().values()) == {0}


def test_closing_frees_what_is_still_held():
    driver = RecordingDriver()
    device = Device(driver)
    stream, event = device.create_stream(), device.create_event()
    buffer = device.allocate(64, stream)
    device.memory.use([buffer.block], device.default_stream.timeline)
    dead = device.create_stream()
    dead_timeline = dead.timeline
    dead.destroy()
    device.staging.upload(buffer.pointer, buffer.pointer, 64, 0)
    device.close()
    assert set(driver.left_open().values()) == {0}
    del stream, event, buffer, dead_timeline
    gc.collect()
    assert len(device.reaper) <= 4  # queued and never run: the driver would refuse them


def test_a_destroyed_stream_s_work_completes_before_its_memory_is_free():
    driver = RecordingDriver()
    with Device(driver) as device:
        stream = device.create_stream()
        buffer = device.allocate(64, stream)
        driver.fill(buffer.pointer, 3, 64, stream.handle)
        stream.destroy()
        del buffer, stream
        device.memory.trim()
        assert driver.races() == []


def test_errors_of_the_driver_leave_a_stream_usable():
    driver = RecordingDriver()
    with Device(driver) as device, device.create_stream() as stream:
        driver.failures["stream_synchronize"] = DeviceError("once")
        with pytest.raises(DeviceError):
            stream.synchronize()
        stream.synchronize()
        assert stream.query()


def test_two_devices_of_one_process():
    first, second = RecordingDriver(0), RecordingDriver(1)
    with Device(first) as one, Device(second) as two:
        a, b, event = one.create_stream(), two.create_stream(), one.create_event()
        with use_stream(a), use_stream(b):
            assert one.current_stream() is a
            assert two.current_stream() is b
        with pytest.raises(StreamError, match="cannot be recorded"):
            event.record(b)


def test_a_foreign_stream_is_borrowed_and_outlives_the_borrowing():
    driver = RecordingDriver()
    with Device(driver) as device:
        handle = driver.foreign_stream()
        with Stream.from_handle(handle, device) as stream, Stream.from_handle(handle, device) as again:
            assert stream.handle == again.handle == handle
            buffer = device.allocate(64, stream)
            driver.fill(buffer.pointer, 1, 64, handle)
            with use_stream(stream):
                assert device.current_stream() is stream
            again.destroy()
            stream.synchronize()
        assert ("stream_destroy", (handle,)) not in [(call.verb, call.arguments) for call in driver.calls]
        with pytest.raises(StreamError, match="is not a stream of this device"):
            device.streams.synchronize_stream(handle)
        with pytest.raises(StreamError, match="not quadpy's to destroy"), Stream.from_handle(handle, device):
            device.streams.destroy_stream(handle)
        driver.stream_destroy(handle)
        del buffer
        device.synchronize()


def test_a_borrowed_stream_that_is_dropped_is_never_asked_again():
    """Its owner may have destroyed it by the time that the device drains; its memory still waits for its work."""
    driver = RecordingDriver()
    with Device(driver) as device:
        handle = driver.foreign_stream()
        stream = Stream.from_handle(handle, device)
        buffer = device.allocate(64, stream)
        driver.fill(buffer.pointer, 1, 64, handle)
        del stream
        gc.collect()
        driver.stream_destroy(handle)
        del buffer
        again = device.allocate(64, device.default_stream)
        driver.fill(again.pointer, 2, 64, 0)
        device.synchronize()
    assert driver.races() == []


def test_an_object_that_lends_its_stream_lives_as_long_as_it_is_needed():
    driver = RecordingDriver()
    with Device(driver) as device:

        class Theirs:
            def __init__(self):
                self.handle = driver.foreign_stream()

            def __cuda_stream__(self):
                return 0, self.handle

            def __del__(self):
                driver.stream_destroy(self.handle)

        for _ in range(10):
            stream = device.stream_for(Theirs())
            buffer = device.allocate(64, stream)
            driver.fill(buffer.pointer, 1, 64, stream.handle)
            del stream, buffer
            device.reaper.drain()
        device.synchronize()
        assert "synchronize" not in [call.verb for call in driver.calls[:-1]]
    assert driver.races() == []


def test_a_foreign_stream_of_another_device_is_refused():
    driver = RecordingDriver()
    with Device(driver) as device:
        handle = driver.foreign_stream(device=3)
        with pytest.raises(StreamError, match="belongs to device 3"):
            Stream.from_handle(handle, device)
        driver.stream_destroy(handle)


def test_the_current_device_is_the_cpu_by_default():
    before = devices.memory_stats().blocks  # of other tests' arrays
    with devices.create_stream() as stream, devices.create_event(timing=True) as event:
        event.record(stream)
        assert stream.device is devices.current_device()
        assert stream.handle == event.handle == 0
    assert Stream.from_handle(0).device.driver.name == "cpu"
    assert devices.memory_stats().blocks == before


def test_a_closed_device_is_opened_anew():
    before = devices.current_device()
    stream = devices.create_stream()
    before.close()
    assert devices.current_device() is not before
    with pytest.raises(StreamError, match="was closed"):
        stream.synchronize()


def test_devices_that_are_not_there():
    with pytest.raises(NoDeviceError, match="no cpu device 1"):
        devices.open_device("cpu", 1)
    with pytest.raises(NoDeviceError, match="no driver for 'tpu'"):
        devices.open_device("tpu")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_refused_a_gpu_and_keeps_the_cpu():
    with Device(RecordingDriver()) as gpu, Device(CpuDriver()) as cpu:
        stream = gpu.create_stream()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forking a process with threads
            child = os.fork()
        if child == 0:
            try:
                os._exit(_in_child(gpu, stream, cpu))
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stream.synchronize()


def _in_child(gpu, stream, cpu) -> int:
    """How many calls the child made of the GPU's driver."""
    before = len(gpu.driver.calls)
    for use in (stream.synchronize, gpu.create_stream, gpu.synchronize, gpu.streams.create_event):
        with pytest.raises(DeviceError, match="forked"):
            use()
    stream.destroy()
    gpu.close()
    cpu.create_stream().synchronize()
    return len(gpu.driver.calls) - before


EXIT = """
import quadpy.runtime.device.devices as devices
from simulated_gpu.driver import RecordingDriver
driver = RecordingDriver()
devices._DRIVERS["recording"] = lambda ordinal: driver
device = devices.open_device("recording")
stream = device.create_stream()
event = device.create_event()
buffer = device.allocate(1000, stream)
driver.fill(buffer.pointer, 1, 1000, stream.handle)
event.record(stream)
import atexit
atexit.register(lambda: None)
{end}
"""


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)", "del stream, event, buffer", "stream.destroy()"])
def test_exit_with_work_pending_is_quiet(end):
    child = subprocess.run(
        [sys.executable, "-c", EXIT.format(end=end)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.parametrize("end", ["init", "reset"])
def test_what_was_made_before_init_or_reset_stays_valid(end):
    """They choose where new things go; a device, and what belongs to it, ends when it is closed."""
    with simulated(RecordingDriver()) as device:
        stream, event, array = qp.create_stream(), qp.create_event(), qp.ndarray(qp.f32, 4)
        with use_stream(stream):
            qp.init(arch=qp.cpu) if end == "init" else qp.reset()
            assert qp.create_stream().device.driver.name == "cpu"
            assert device.current_stream() is stream
            array.fill(3)
            event.record(stream)
            event.synchronize()
            assert array[2] == 3
            host = qp.ndarray(qp.f32, 4)
            host.copy_from(array)
            assert host[1] == 3
    with pytest.raises(StreamError, match="was closed"):
        stream.synchronize()
    with pytest.raises(DeviceError, match="was closed"):
        array.fill(1)


@pytest.mark.parametrize(("threads", "left"), [(1, 0), (2, 1)])
def test_a_process_that_ends_destroys_nothing_that_a_thread_may_use(threads, left):
    driver = RecordingDriver()
    with simulated(driver) as device:
        stream = device.create_stream()
        with mock.patch("threading.active_count", return_value=threads):
            device.close_at_exit()
        assert driver.left_open()["streams"] == left
        with pytest.raises(StreamError, match="was closed"):
            stream.synchronize()


def test_threads_open_no_device_while_the_process_ends():
    found = []

    def other():
        try:
            devices.open_device("cpu")
        except NoDeviceError as error:
            found.append(error.message)

    with mock.patch.object(devices, "_process_ends", threading.Event()) as ends:
        ends.set()
        devices.open_device("cpu")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == ["the process is ending"]
