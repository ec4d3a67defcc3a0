"""Every example runs on the CPU, under the hazard checker; after a test, the configuration is as before."""

import pytest

import quadpy as qp
from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    qp.init(arch=qp.cpu)
    with qp.hazards.check() as found:
        yield
    set_config(before)
    assert not found.possible, str(found)
