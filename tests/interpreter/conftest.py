"""Each test finds the defaults of the CPU again."""

import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, cpu_max_num_threads=2)
    yield
    qp.init(arch=qp.cpu)
