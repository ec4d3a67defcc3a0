"""Kernels that run on every device of this machine, and on the simulated device, where Python functions replace them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from backends import is_here
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import CAPTURES

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def add(v: qp.i32, x: I32):
    for i in x:
        x[i] = x[i] + v


@qp.kernel
def mix(v: qp.i32, x: I32, y: I32):
    for i in range(min(x.shape[0], y.shape[0])):
        y[i] = 3 * y[i] + x[i] + v


@qp.kernel
def twice(v: qp.i32, x: I32):
    for i in x:
        x[i] = x[i] + v
    for i in x:
        x[i] = x[i] * 2


@qp.kernel(graph=True)
def branch(v: qp.i32, x: I32, y: I32):
    with qp.graph.parallel_context():
        with qp.graph.parallel():
            for i in x:
                x[i] = x[i] + v
        with qp.graph.parallel():
            for i in y:
                y[i] = y[i] * 2
    for i in range(min(x.shape[0], y.shape[0])):
        y[i] = y[i] + x[i]


def _simulated(code, bodies):
    """The Python function for each symbol; ``bodies`` get the scalars and the elements of each array."""
    layout = struct.Struct(code.layout.format)
    slots = [(slot.param, slot.part) for slot in code.layout.values]

    def decoded(block):
        values = dict(zip(slots, layout.unpack_from(block), strict=True))
        names = list(dict.fromkeys(name for name, _ in slots))
        scalars = [
            values[name, part]
            for name in names
            for part in [p for n, p in slots if n == name]
            if part not in ("pointer", "extent")
        ]
        arrays = {
            name: (values[name, "pointer"], 4 * values[name, "extent"]) for name in names if (name, "pointer") in values
        }
        return scalars, arrays

    def kernel(task, body):
        effects = dict(task.effects)

        def run(block):
            scalars, arrays = decoded(block)
            views = [
                np.frombuffer((ctypes.c_char * n).from_address(p), np.int32) if n else np.zeros(0, np.int32)
                for p, n in arrays.values()
            ]
            body(*scalars, *views)

        def touches(block):
            _, arrays = decoded(block)
            touched = {name: part for name, part in arrays.items() if part[1] and name in effects}
            return list(touched.values()), [part for name, part in touched.items() if effects[name] != "r"]

        return RecordedKernel(run, touches)

    return {task.symbol: kernel(task, body) for task, body in zip(code.tasks, bodies, strict=True)}


def _add(v, x):
    x += v


def _mix(v, x, y):
    n = min(len(x), len(y))
    y[:n] = 3 * y[:n] + x[:n] + v


def _double(v, x):
    x *= 2


def _add_first(v, x, y):
    x += v


def _double_second(v, x, y):
    y *= 2


def _add_both(v, x, y):
    n = min(len(x), len(y))
    y[:n] += x[:n]


def simulate(driver):
    """Register the kernels of this file with the simulated device."""
    branches = [_add_first, _double_second, _add_both]
    for kernel, bodies in ((add, [_add]), (mix, [_mix]), (twice, [_add, _double]), (branch, branches)):
        driver.kernels |= _simulated(_compiled(kernel), bodies)


@functools.cache
def _compiled(kernel):
    return kernel.compile("gfx942")


ARCHS = ["cpu", "recording", *(arch for arch in ("amdgpu", "cuda") if is_here(arch))]


def settle(here, seed):
    """Wait for all work; the simulated device runs what is ready in an order that depends on ``seed``."""
    if here.is_simulated:
        random, simulation = Random(seed), here.driver.simulation
        while ready := simulation.ready():
            simulation.step(random.choice(ready))
    here.device.synchronize()


def without_races(here):
    """Wait for all work, and check that nothing raced on the simulated device."""
    if here.is_simulated:
        here.device.synchronize()
        races = here.driver.races()
        here.driver.simulation.ops.clear()
        assert races == []


@contextlib.contextmanager
def current(name):
    """Make the device ``name`` current in the block; on the simulated device nothing may race or leak."""
    before, driver = current_config(), None
    if name == "recording":
        driver = RecordingDriver()
        simulate(driver)
        devices._open["recording", 0] = Device(driver)
    set_config(Config(arch=name))
    device = devices.current_device()
    try:
        yield device
        device.synchronize()
    finally:
        set_config(before)
        if driver is not None:
            devices._open.pop(("recording", 0)).close()
    if driver is not None:
        assert driver.races() == []
        assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.fixture(params=ARCHS)
def here(request):
    """The current device with ``add``, ``mix`` and ``twice``; on the simulated device nothing may race or leak."""
    with current(request.param) as device:
        found = SimpleNamespace(
            name=request.param, device=device, driver=device.driver, add=add, mix=mix, twice=twice, branch=branch,
            array=array, is_cpu=request.param == "cpu", is_simulated=request.param == "recording",
        )  # fmt: skip
        found.settle, found.without_races = functools.partial(settle, found), functools.partial(without_races, found)
        yield found


def array(*numbers):
    made = qp.ndarray(qp.i32, len(numbers))
    made.from_numpy(np.array(numbers, np.int32))
    if not CAPTURES.count:
        qp.sync()  # tests use it on other streams
    return made


@pytest.fixture
def simulated_device():
    """A simulated device of its own."""
    with Device(RecordingDriver()) as device:
        yield device
