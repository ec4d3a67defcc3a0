"""Each device of this machine, and a simulated one on which time is counted in operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated import add, as_add, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.memory.accounting import Accounting

from ..runtime.conftest import (  # noqa: TID252 - pytest finds them by their names
    arch,  # noqa: F401 - as above
    cpu_unless_a_test_says_otherwise,  # noqa: F401 - as above
    why_missing,
)


def pytest_collection_modifyitems(items):
    """These tests turn observers on and off themselves, and none may be left."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.quadpy_hazards(off="it needs to be the only observer"))


def pytest_generate_tests(metafunc):
    """Each device that computes; the simulated one has tests of its own."""
    if "arch" in metafunc.fixturenames:
        metafunc.parametrize("arch", [a for a in ("cpu", "amdgpu", "cuda") if why_missing(a) is None], indirect=True)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert CAPTURES.observer is None
    assert not CAPTURES.watched
    assert Accounting.told is None


@pytest.fixture
def recording():
    """A simulated GPU that can run ``add``; nothing may race or stay allocated."""
    driver = RecordingDriver()
    stand_in(driver, add, as_add)
    with simulated(driver) as device:
        yield device
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}, driver.left_open()
