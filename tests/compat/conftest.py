"""Options that hold below the names of the other projects end with the test that asked for them."""

from __future__ import annotations

import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def own_options():
    yield
    qp.init(arch=qp.cpu)
