"""Bad input of the runtime, a row each: the exception, what it says is wrong and where, and what it says to do."""

from __future__ import annotations

import os
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from simulated import simulated
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.errors import (
    ArgumentError,
    DeviceError,
    DriverError,
    EventError,
    NoDeviceError,
    OutOfDeviceMemory,
    StreamError,
    UnknownTargetError,
)
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers import hip_api
from quadpy.runtime.drivers.rocm_library import INSTALL, LibraryMissing
from quadpy.runtime.streams.stream import Stream

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def touch(x: F32):
    for i in x:
        x[i] = 1


@pytest.fixture
def here():
    """The simulated device that arrays lie on, and another one beside it: two GPUs of one process."""
    with simulated(RecordingDriver(0, capacity=64 << 20)) as first, Device(RecordingDriver(1)) as second:
        for task in touch.compile("gfx942").tasks:
            first.driver.kernels[task.symbol] = RecordedKernel(lambda block: None)
        yield SimpleNamespace(first=first, second=second)


class Nowhere:
    """Says that it has memory, and of its place nothing that can be read."""

    def __dlpack__(self, **_options):
        raise AssertionError("nobody should ask for it")

    def __dlpack_device__(self):
        return "there"


def destroyed(thing):
    thing.destroy()
    return thing


def array_of(device):
    """An array on ``device``, which is not the current one."""
    current = devices._open["recording", 0]
    devices._open["recording", 0] = device
    try:
        return qp.ndarray(qp.f32, 4)
    finally:
        devices._open["recording", 0] = current


def elapsed(device, *, timing=True, record=True, done=True):
    start, end = device.create_event(timing=timing), device.create_event(timing=timing)
    with device.create_stream() as stream:
        if record:
            start.record(stream)
            end.record(stream)
        if done:
            stream.synchronize()
        return start.elapsed_time(end)


def other_gpu_s_code(device):
    device.modules.load(touch.compile("gfx1100"))


ROWS = {
    "a device number out of range, of the CPU": (
        lambda on: devices.open_device("cpu", 7), NoDeviceError, "no cpu device 7", "the CPU is one device, number 0"),
    "a backend that is none": (
        lambda on: qp.init(arch="tpu"), NoDeviceError, "no backend 'tpu'", "qp.cpu, qp.python, qp.amdgpu, qp.cuda"),
    "a code object for another GPU": (
        lambda on: other_gpu_s_code(on.first), DriverError, "for gfx1100, and recorded device is a gfx942",
        "compile the kernel for gfx942"),
    "a code object that is none": (
        lambda on: on.first.driver.module_load(b"not one"), DriverError, "is not a code object", ""),
    "a destroyed stream, of a launch": (
        lambda on: touch(qp.ndarray(qp.f32, 4), stream=destroyed(on.first.create_stream())), StreamError,
        "the stream was destroyed", "create a new one"),
    "a destroyed stream, of a fill": (
        lambda on: qp.ndarray(qp.f32, 4).fill(1, stream=destroyed(on.first.create_stream())), StreamError,
        "the stream was destroyed", "create a new one"),
    "a stream of another device, of a launch": (
        lambda on: touch(qp.ndarray(qp.f32, 4), stream=on.second.create_stream()), StreamError,
        "recording:1.*cannot run work.*recording:0", "use a stream of its device"),
    "a stream of another device, of a new array": (
        lambda on: qp.ndarray(qp.f32, 4, stream=on.second.create_stream()), StreamError, "recording:1",
        "use a stream of its device"),
    "a stream of a device that was closed": (
        lambda on: on.second.close() or on.second.default_stream.synchronize(), StreamError, "was closed",
        "create a new one"),
    "no stream at all": (
        lambda on: touch(qp.ndarray(qp.f32, 4), stream="fast"), StreamError, "'fast' is not a stream",
        "qp.create_stream makes one"),
    "a foreign stream that is none of the device": (
        lambda on: Stream.from_handle(on.first.driver.foreign_stream(device=1), on.first), StreamError,
        "belongs to device 1, not to <recording:0", "a stream of this device"),
    "a handle that was destroyed": (
        lambda on: on.first.streams.query_stream(0x7777), StreamError, "0x7777 is not a stream of this device",
        "Stream.from_handle"),
    "a destroyed event": (
        lambda on: destroyed(on.first.create_event()).record(), EventError, "the event was destroyed", "create a new one"),
    "an event on a stream of another device": (
        lambda on: on.first.create_event().record(on.second.create_stream()), StreamError,
        "event of <recording:0.*stream of <recording:1", "wait"),
    "an event handle that is none": (
        lambda on: on.first.streams.query_event(0x7777), EventError, "0x7777 is not an event of this device", "create_event"),
    "elapsed time without timing": (
        lambda on: elapsed(on.first, timing=False), EventError, "with timing", r"create_event\(timing=True\)"),
    "elapsed time of an event that was never recorded": (
        lambda on: elapsed(on.first, record=False), EventError, "never recorded", "record"),
    "elapsed time of an event that is not complete": (
        lambda on: elapsed(on.first, done=False), EventError, "not complete", "synchronize"),
    "elapsed time between two devices": (
        lambda on: on.first.create_event(timing=True).elapsed_time(on.second.create_event(timing=True)), EventError,
        "two events of one device", "one device"),
    "elapsed time to what is not an event": (
        lambda on: on.first.create_event(timing=True).elapsed_time(on.first.default_stream), EventError, "is not an event",
        "the event that was recorded last"),
    "a dtype that compares like an array": (
        lambda on: qp.ndarray(np.zeros(3), 4), ArgumentError, "is not a scalar type", "use one of"),
    "a dtype that NumPy has not": (
        lambda on: qp.ndarray(qp.f32, 4).to_numpy("single4"), ArgumentError, "'single4' is not a NumPy dtype",
        "numpy.float32"),
    "axes in an order that is no text": (
        lambda on: qp.field(qp.f32, (2, 2), order=1.5), ArgumentError, "order=1.5 must name each", "for example"),
    "no tensor": (
        lambda on: qp.ndarray(qp.f32, 4).from_torch(np.zeros(4)), ArgumentError, "not a torch tensor", "from_numpy"),
    "elements of no shape": (
        lambda on: qp.from_dlpack(np.zeros(4, np.float32), 1.5), ArgumentError, "1.5 is not a shape", ""),
    "an array that lies nowhere": (
        lambda on: touch(Nowhere()), ArgumentError, "the __dlpack_device__ of Nowhere cannot be used", "correctly"),
    "a consumer's stream that is none": (
        lambda on: qp.ndarray(qp.f32, 4).__dlpack__(stream="fast"), StreamError, "'fast' is not a handle", "pass an int"),
    "a consumer's version that is none": (
        lambda on: qp.ndarray(qp.f32, 4).__dlpack__(max_version=(1,)), ArgumentError, "not a DLPack version", "two"),
    "a target that is no text": (
        lambda on: touch.compile(None), UnknownTargetError, "there is no target 'None'", "gfx"),
    "an array of another device": (
        lambda on: touch(array_of(on.second)), DeviceError, "recording:1.*but the kernel runs on.*recording:0", "copy"),
    "out of memory": (
        lambda on: qp.ndarray(qp.f32, 1 << 26), OutOfDeviceMemory,
        r"recording device 0 has no 256.0 MiB left: 64.0 MiB of 64.0 MiB are free, and quadpy uses 0 bytes in 0", "drop arrays"),
    "a dtype that kernels have not": (
        lambda on: touch(np.zeros(4, complex)), ArgumentError, "touch: x: kernels have no complex numbers, and this is an array of complex128", "np.float64"),
    "a dtype of another byte order": (
        lambda on: touch(np.zeros(4, ">f4")), ArgumentError, "foreign byte order '>f4'", "newbyteorder"),
    "a dtype that is not the parameter's": (
        lambda on: touch(np.zeros(4)), ArgumentError, "takes elements of f32, not f64", "convert the array"),
    "no array": (lambda on: touch(3), ArgumentError, "x takes an array, not int", ""),
    "memory that is freed twice": (
        lambda on: on.first.streams.free_async(0x1234, 0), DeviceError, "not an allocation of this device", "freed before"),
    "a negative size": (lambda on: on.first.streams.malloc_async(-1, 0), ArgumentError, "-1 bytes", ""),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_bad_input(here, row):
    use, error, says, hint = ROWS[row]
    with pytest.raises(error, match=f"(?s){says}") as caught:
        use(here)
    assert type(caught.value) is error
    if hint:
        assert caught.value.hint, f"{row}: {caught.value} says nothing to do"
        assert re.search(hint, caught.value.hint), f"{caught.value.hint!r} has no {hint!r}"
    touch(qp.ndarray(qp.f32, 4))  # all goes on


def test_a_bad_call_reaches_no_driver(here):
    """What can be known before the driver is asked is: a driver given these would crash."""
    stream, event = destroyed(here.first.create_stream()), destroyed(here.first.create_event())
    before = len(here.first.driver.calls)
    for use in (
        stream.synchronize, stream.query, event.query, event.synchronize, event.record, event.wait,
        lambda: here.first.streams.synchronize_stream(0x7777), lambda: here.first.streams.destroy_event(0x7777),
        lambda: here.first.streams.stream_wait_event(0, 0x7777), lambda: here.first.streams.free_async(8, 0x7777),
    ):  # fmt: skip
        with pytest.raises((StreamError, EventError)):
            use()
    assert len(here.first.driver.calls) == before


# what is missing


def test_no_rocm(monkeypatch):
    def missing():
        raise LibraryMissing("libamdhip64.so.7 is in none of the places where quadpy looks")

    monkeypatch.setattr(hip_api, "hip_binding", missing)
    hip_api.hip_api.cache_clear()
    with pytest.raises(NoDeviceError, match=r"HIP cannot be used: libamdhip64\.so\.7 is in none") as caught:
        hip_api.open_hip_driver()
    assert caught.value.hint == f"install ROCm: {INSTALL}"


def test_no_gpu_falls_back_to_the_cpu_with_a_warning_or_says_so(monkeypatch):
    def missing(_ordinal):
        raise NoDeviceError("HIP sees no device", hint="is the user in the group render?")

    for name in ("amdgpu", "cuda"):
        monkeypatch.setitem(devices._DRIVERS, name, missing)
        monkeypatch.delitem(devices._open, (name, 0), raising=False)
    with pytest.raises(NoDeviceError, match="HIP sees no device") as caught:
        qp.init(arch=qp.gpu, enable_fallback=False)
    assert "quadpy doctor" in caught.value.hint
    try:
        with pytest.warns(RuntimeWarning, match=r"quadpy uses the CPU \(amdgpu: HIP sees no device"):
            qp.init(arch=qp.gpu)
        x = np.zeros(4, np.float32)
        touch(x)
        assert x.all()
    finally:
        set_config(Config())


# a forked child


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_launch_from_a_forked_child(here):
    x = qp.ndarray(qp.f32, 4)
    uses = [lambda: touch(x), lambda: x.fill(1), lambda: x[0], lambda: qp.ndarray(qp.f32, 4), qp.create_stream, qp.sync]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forking a process with threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            before = len(here.first.driver.calls)
            for use in uses:
                with pytest.raises(DeviceError, match="forked from the one that opened the GPU") as caught:
                    use()
                assert "spawn" in caught.value.hint
            code = len(here.first.driver.calls) - before  # none: the first one would end the process
            set_config(Config())
            y = np.zeros(4, np.float32)
            touch(y)  # the CPU goes on working
            assert y.all()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(DeviceError, match="recording"):
        touch(array_of(here.second))
    x.fill(2)
    assert x[1] == 2
