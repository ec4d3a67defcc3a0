"""Settings that several tests of distributed programs share."""

from __future__ import annotations

import pytest

import quadpy as qp


@pytest.fixture
def debug():
    qp.init(arch=qp.cpu, debug=True)
    yield
    qp.reset()
