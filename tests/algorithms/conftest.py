"""Each test of algorithms runs on each backend that is here."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from backends import backends

import quadpy as qp

sys.path.insert(0, str(Path(__file__).parent))  # for random_calls.py


@pytest.fixture(scope="session", autouse=True, params=backends())
def arch(request):
    qp.init(arch=request.param, cpu_max_num_threads=2)
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def place(arch):
    """A NumPy array as an ndarray on the device."""

    def made(values):
        array = qp.ndarray(DTYPES[np.dtype(values.dtype)], values.shape)
        array.from_numpy(values)
        qp.sync()  # tests use it on other streams
        return array

    return made


DTYPES = {
    np.dtype(name): getattr(qp, short)
    for name, short in {
        "bool": "u1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
        "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64",
    }.items()
}  # fmt: skip
