"""Settings that several tests of distributed programs share."""

from __future__ import annotations

import pytest

import quadpy as qp


@pytest.fixture
def debug():
    qp.init(arch=qp.cpu, debug=True)
    yield
    qp.reset()


@pytest.fixture(params=[False, True], ids=["plain", "debug"])
def any_debug(request: pytest.FixtureRequest):
    qp.init(arch=qp.cpu, debug=request.param)
    yield
    qp.reset()
