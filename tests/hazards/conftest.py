"""Each device of this machine, for programs with hazards: on the simulated one, nothing asserts that they have none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from simulated import AnyKernel, current, simulated
from simulated_gpu.driver import RecordingDriver

from ..runtime.conftest import (  # noqa: TID252 - pytest finds them by their names
    cpu_unless_a_test_says_otherwise,  # noqa: F401 - as above
    pytest_generate_tests,  # noqa: F401 - as above
)


def pytest_collection_modifyitems(items):
    """Hazards are the subject of these tests, and they turn the checker on and off themselves."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.quadpy_hazards(off="hazards are its subject"))


@contextlib.contextmanager
def device_for_hazards(arch):
    """Make ``arch`` the current backend; kernels of the simulated device do nothing."""
    if arch != "recording":
        with current(arch) as device:
            yield device
        return
    driver = RecordingDriver(history=False)
    driver.kernels = AnyKernel()
    with simulated(driver) as device:
        yield device


@pytest.fixture
def arch(request):
    """The backend on which new arrays live until the test ends."""
    with device_for_hazards(request.param):
        yield request.param
