"""A device over every driver that this machine has, with memory, a kernel and a look at the driver's own graph."""

from __future__ import annotations

import ctypes
import functools
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.errors import NoDeviceError
from quadpy.graph import Graph
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.cpu import CpuDriver
from quadpy.runtime.drivers.cuda_api import open_cuda_driver
from quadpy.runtime.drivers.driver import Driver
from quadpy.runtime.drivers.hip_api import open_hip_driver
from quadpy.runtime.launch.launch import HostLaunch, KernelLaunch

OPENERS = {"cpu": CpuDriver, "recording": RecordingDriver, "amdgpu": open_hip_driver, "cuda": open_cuda_driver}
GPUS = ("recording", "amdgpu", "cuda")


@functools.cache
def why_missing(name):
    try:
        OPENERS[name]()
    except NoDeviceError as error:
        return f"{name}: {error}"
    return None


def pytest_generate_tests(metafunc):
    """A device that is missing here is skipped once, by ``test_the_device_is_here``."""
    for fixture, names in (("on", tuple(OPENERS)), ("gpu", GPUS)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [name for name in names if why_missing(name) is None], indirect=True)


@pytest.fixture(params=OPENERS)
def backend(request):
    """The name of each backend, and why it is missing or None."""
    return request.param, why_missing(request.param)


@qp.kernel
def add_value(v: qp.i32, x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in x:
        x[i] = x[i] + v


@dataclass
class On:
    """A device under test."""

    device: Device
    driver: Driver

    @property
    def is_cpu(self):
        return "host" in self.driver.features

    @property
    def is_simulated(self):
        return isinstance(self.driver, RecordingDriver)

    def graph(self):
        return Graph(self.device)

    def buffer(self, *numbers):
        """Device memory with these 32-bit integers."""
        data = np.array(numbers, np.int32)
        made = self.device.allocate(data.nbytes, self.device.default_stream)
        self.device.staging.upload(made.pointer, data.ctypes.data, data.nbytes, self.device.default_stream.handle)
        self.device.default_stream.synchronize()
        return made

    def numbers(self, buffer):
        """What is in device memory after all work."""
        self.device.synchronize()
        data = np.empty(buffer.nbytes // 4, np.int32)
        handle = self.device.default_stream.handle
        self.device.staging.download(data.ctypes.data, buffer.pointer, data.nbytes, handle)
        return data.tolist()

    def adder(self, buffer, value):
        """A launch that adds ``value`` to each number of ``buffer``."""
        count = buffer.nbytes // 4
        whole = ((buffer.pointer, buffer.nbytes),)
        if self.is_cpu:
            memory = (ctypes.c_int32 * count).from_address(buffer.pointer)

            def run():
                for i in range(count):
                    memory[i] += value

            return HostLaunch("add_value", run, whole, whole, (buffer,), None)
        function, pack, threads = self._kernel()
        block = (threads, 1, 1)
        arguments = pack(value, buffer.pointer, count)
        return KernelLaunch("add_value", function, (1, 1, 1), block, 0, arguments, whole, whole, (buffer,), None)

    @functools.cached_property
    def _kernel(self):
        if self.is_simulated:
            layout = struct.Struct("<iiQi")
            self.driver.kernels["add_value"] = RecordedKernel(_add, lambda block: (_touched(block), _touched(block)))
            module = self.driver.module_load(b"\x7fELF")
            function = self.driver.module_function(module, "add_value")
            self._module = module
            return lambda: (function, lambda v, p, n: layout.pack(v, 0, p, n), 64)
        code = add_value.compile(self.driver.info.arch)
        function = self.device.modules.load(code).function(code.tasks[0].symbol)
        pack = struct.Struct(code.layout.format).pack
        return lambda: (function, pack, code.tasks[0].block_dim)

    def driver_edges(self, exec_):
        """The edges of the driver's graph between quadpy's nodes, by their names."""
        built = exec_._owner.engine.graph
        names = {handle: node.name for node in exec_.nodes for handle in built.handles(node.name)}
        edges = {(names.get(a), names.get(b)) for a, b in built.graphs.edges(built.handle)}
        return sorted((a, b) for a, b in edges if a != b and None not in (a, b))

    def driver_roots(self, exec_):
        """How many nodes of the driver's graph come after none."""
        built = exec_._owner.engine.graph
        later = {after for _, after in built.graphs.edges(built.handle)}
        return len(set(built.graphs.nodes(built.handle)) - later)


def _touched(block):
    _, _, pointer, count = struct.unpack("<iiQi", block)
    return ((pointer, 4 * count),)


def _add(block):
    value, _, pointer, count = struct.unpack("<iiQi", block)
    memory = (ctypes.c_int32 * count).from_address(pointer)
    for i in range(count):
        memory[i] += value


def opened(name):
    driver = OPENERS[name]()
    with Device(driver) as device:
        made = On(device, driver)
        yield made
        if made.is_simulated and "_module" in vars(made):
            device.synchronize()
            driver.module_unload(made._module)
    if made.is_simulated:
        assert driver.races() == []
        assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.fixture
def on(request):
    """Each device."""
    yield from opened(request.param)


@pytest.fixture
def gpu(request):
    """Each device with graphs of the driver's, among them the simulated one."""
    yield from opened(request.param)


@pytest.fixture
def simulated():
    """The simulated device alone."""
    yield from opened("recording")
