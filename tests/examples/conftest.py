"""Every example runs on the CPU as its command line would run it."""

import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()
