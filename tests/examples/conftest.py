"""Every example runs on the CPU; after a test, the configuration is as before."""

import pytest

import quadpy as qp
from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    qp.init(arch=qp.cpu)
    yield
    set_config(before)
