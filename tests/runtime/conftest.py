"""Arrays on every device that this machine has, and on one that is simulated."""

from __future__ import annotations

import contextlib
import functools

import pytest
from simulated import current, simulated
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import NoDeviceError
from quadpy.runtime.device import devices

GPUS = ("recording", "amdgpu", "cuda")


@functools.cache
def why_missing(arch):
    """Why this machine has no such device; None where it has one."""
    try:
        if arch not in ("cpu", "recording"):
            devices.open_device(arch)
    except NoDeviceError as error:
        return f"{arch}: {error}"
    return None


def pytest_generate_tests(metafunc):
    """A device that is missing here is skipped once, by ``test_the_device_is_here``."""
    for name, archs in (("arch", ("cpu", *GPUS)), ("gpu", GPUS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [a for a in archs if why_missing(a) is None], indirect=True)


@pytest.fixture(autouse=True)
def cpu_unless_a_test_says_otherwise():
    """New arrays live on the CPU, whatever a test before, of another folder, chose in this process."""
    with current("cpu"):
        yield


@contextlib.contextmanager
def checked(arch):
    """As ``current``; on the simulated device nothing may race or stay allocated."""
    if arch != "recording":
        with current(arch) as device:
            yield device
        return
    driver = RecordingDriver()
    with simulated(driver) as device:
        yield device
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()


@pytest.fixture
def arch(request):
    """The backend on which new arrays live until the test ends."""
    with checked(request.param):
        yield request.param


@pytest.fixture
def gpu(request):
    """The device, other than the CPU, on which new arrays live until the test ends."""
    with checked(request.param) as device:
        yield device
