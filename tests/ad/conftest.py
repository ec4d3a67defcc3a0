from __future__ import annotations

import pytest
from backends import backends

import quadpy as qp


@pytest.fixture(params=[*backends(), "python"])
def each_backend(request):
    """Each backend in turn, and Python as the interpreter of kernels."""
    qp.init(arch=request.param)
    yield
    qp.init(arch=qp.cpu)
