"""Random kernels against forward mode, differences and the dot-product test; ``tests/support/random_derivatives.py`` tries more."""

from __future__ import annotations

import pytest
from random_derivatives import tried

import quadpy as qp


@pytest.fixture(autouse=True)
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def test_random_kernels(request):
    outcomes = [tried(seed) for seed in range(request.config.getoption("--random-kernels"))]
    assert outcomes.count("right") >= 0.7 * len(outcomes), outcomes
