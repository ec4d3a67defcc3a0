"""Every driver that this machine has; the same tests for each, and a skip that says why for the rest."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import NoDeviceError
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.cpu import CpuDriver
from quadpy.runtime.drivers.cuda_api import open_cuda_driver
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, Driver
from quadpy.runtime.drivers.hip_api import open_hip_driver

OPENERS = {"cpu": CpuDriver, "recording": RecordingDriver, "amdgpu": open_hip_driver, "cuda": open_cuda_driver}


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(feature): the driver must have this feature; others skip the test")


def pytest_generate_tests(metafunc):
    """A driver that is missing here is skipped once, by ``test_the_driver_is_here``."""
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", [name for name in OPENERS if why_missing(name) is None], indirect=True)


@functools.cache
def why_missing(name):
    try:
        OPENERS[name]()
    except NoDeviceError as error:
        return f"{name}: {error}"
    return None


@pytest.fixture(params=OPENERS)
def backend(request):
    """The name of each backend, and why it is missing or None."""
    return request.param, why_missing(request.param)


@pytest.fixture
def driver(request):
    """A driver, which leaves nothing open."""
    found = OPENERS[request.param]()
    needed = {mark.args[0] for mark in request.node.iter_markers("needs")}
    if missing := sorted(needed - found.features):
        pytest.skip(f"the {request.param} driver has no {', '.join(missing)}")
    yield found
    if isinstance(found, RecordingDriver):
        found.synchronize()
        assert set(found.left_open().values()) == {0}, found.left_open()


@pytest.fixture(params=["cache", "pool"])
def device(request, driver):
    """A device over each driver, with each allocator; closed at the end."""
    if request.param not in ("cache", *driver.features):
        pytest.skip(f"the {driver.name} driver has no pool")
    with Device(driver, request.param) as opened:
        yield opened


@dataclass
class Host:
    """Copies for tests over a bare driver, through pinned memory, in order on one stream."""

    driver: Driver

    def read(self, pointer, nbytes, stream=DEFAULT_STREAM):
        pinned = self.driver.alloc_pinned(nbytes)
        try:
            self.driver.copy_out(pinned, pointer, nbytes, stream)
            self.driver.stream_synchronize(stream)
            return ctypes.string_at(pinned, nbytes)
        finally:
            self.driver.free_pinned(pinned)

    def write(self, pointer, data, stream=DEFAULT_STREAM):
        pinned = self.driver.alloc_pinned(len(data))
        ctypes.memmove(pinned, data, len(data))
        self.driver.copy_in(pointer, pinned, len(data), stream)
        self.driver.stream_synchronize(stream)
        self.driver.free_pinned(pinned)


@pytest.fixture
def host(driver):
    return Host(driver)


@pytest.fixture
def read(device):
    """``read(pointer, nbytes, stream)``: the bytes after the stream's work."""

    def read(pointer, nbytes, stream=None):
        data = (ctypes.c_char * nbytes)()
        on = device.stream_for(stream)
        device.staging.download(ctypes.addressof(data), pointer, nbytes, on.handle)
        return data.raw

    return read
