"""Every example runs on the CPU; what ``qp.init`` set before a test holds again after it."""

import pytest

import quadpy as qp
from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    qp.init(arch=qp.cpu)
    yield
    set_config(before)
