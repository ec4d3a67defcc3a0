"""One setup for tests on a simulated GPU: it is the current device, and its kernels are functions in Python."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct

import numpy as np
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.runtime.cpu.loader import load_object
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def add(x: F32, y: F32):
    for i in x:
        y[i] = x[i] + y[i]


def as_add(x, y):
    """The body of ``add``, for ``stand_in``."""
    y += x


@contextlib.contextmanager
def current(arch):
    """Make ``arch`` the current backend inside the block."""
    before = current_config()
    set_config(Config(arch=arch))
    try:
        yield devices.current_device()
    finally:
        set_config(before)


@contextlib.contextmanager
def simulated(driver, allocator=None):
    """Make a device of ``driver`` the current one inside the block, and close it at the end."""
    device = devices._open["recording", 0] = Device(driver, allocator)
    try:
        with current("recording"):
            yield device
    finally:
        del devices._open["recording", 0]
        device.close()


def stand_in(driver, kernel, *bodies):
    """Let each task of ``kernel`` run its body on the recording driver; arrays are f32, and NumPy arrays in the body."""
    code = compiled(kernel, driver.info.arch)

    def arguments(block):
        """The values of each parameter: a number, or the address and extent of an array."""
        values = struct.unpack(code.layout.format, block[: struct.calcsize(code.layout.format)])
        found = {}
        for slot, value in zip(code.layout.values, values, strict=True):
            found.setdefault(slot.param, []).append(value)
        return found

    def recorded(effects, body):
        def run(block):
            body(*(memory(*v) if len(v) == 2 else v[0] for v in arguments(block).values()))

        def touches(block):
            ranges = {name: (v[0], 4 * v[1]) for name, v in arguments(block).items() if len(v) == 2}
            reads = [ranges[name] for name in ranges if "r" in effects.get(name, "")]
            return reads, [ranges[name] for name in ranges if effects.get(name, "r") != "r"]

        return RecordedKernel(run, touches)

    for task, body in zip(code.tasks, bodies, strict=True):
        driver.kernels[task.symbol] = recorded(dict(task.effects), body)


@functools.cache
def compiled(kernel, target):
    return kernel.compile(target)


def memory(pointer, extent):
    return np.ctypeslib.as_array((ctypes.c_float * extent).from_address(pointer))


class AnyKernel(dict):
    """Contains every kernel; ``log`` has the argument block of each launch."""

    def __init__(self):
        self.log = []

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        def touches(block):
            self.log.append((name, block))
            return (), ()

        return RecordedKernel(lambda block: None, touches)


@contextlib.contextmanager
def gpu():
    """Make a simulated device that has every kernel the current one; at the end, everything must be given back."""
    driver = RecordingDriver()
    driver.kernels = AnyKernel()
    with simulated(driver) as device:
        yield device
    assert set(driver.left_open().values()) == {0}


def launched(device) -> list[tuple[object, ...]]:
    """Each launch: the task, its block of arguments, its grid, its stream."""
    calls = [call.arguments for call in device.driver.calls if call.verb == "launch"]
    return [(*logged, call[1], call[4]) for logged, call in zip(device.driver.kernels.log, calls, strict=True)]


def run_here(driver, kernel, touches):
    """Let the tasks of a kernel, compiled for the CPU, run on the recording driver; the first task runs all.

    ``touches`` takes the code and an argument block, and gives the ranges of memory that the kernel reads and writes.
    """
    code, host = compiled(kernel, driver.info.arch), compiled(kernel, "cpu")
    loaded = load_object(host.image)
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)(
        loaded.address(host.entry)
    )

    def run(block):
        scratch = (ctypes.c_uint64 * max(1, host.slots))()
        assert entry(block[: code.layout.size], scratch, 0) == -1, loaded

    first, *others = code.tasks
    driver.kernels[first.symbol] = RecordedKernel(run, functools.partial(touches, code))
    for task in others:
        driver.kernels[task.symbol] = RecordedKernel(lambda block: None, functools.partial(touches, code))


def run_printing(driver, kernel):
    """As ``run_here``, for a kernel that prints."""

    def touches(code, block):
        (ring,) = (value.offset for value in code.layout.values if value.param == "$print")
        (address,) = struct.unpack_from("Q", block, ring)
        both = [(address, 64 + current_config().print_buffer // 8 * 8)]
        return both, both

    run_here(driver, kernel, touches)
