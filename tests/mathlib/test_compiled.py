"""Compiled on the CPU, every function gives the bits of its definition."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import applied
from numpy_ops import load
from samples import around

import quadpy as qp
from quadpy.core.dtypes import f32
from quadpy.mathlib.registry import HOMES, overloads

FUNCTIONS = [
    function
    for name, home in HOMES.items()
    if home != "random"
    for function in overloads(name)
    if not isinstance(function.result, tuple)
]


@pytest.fixture(scope="module", autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def assert_same_bits(result, expected):
    unsigned = f"u{result.dtype.itemsize}"
    same = (result.view(unsigned) == expected.view(unsigned)) | (np.isnan(result) & np.isnan(expected))
    assert same.all(), f"{np.count_nonzero(~same)} differ, first at {np.argmin(same)}"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.name}-{f.width}")
def test_same_bits(function):
    dtype = np.float32 if function.width == f32 else np.float64
    is_loop = HOMES[function.name] == "rounding"  # which NumPy runs number by number
    x = around(dtype, -4, 4, 1000 if is_loop else 20_000)
    arguments = [x, np.random.default_rng(8).permutation(x)][: len(function.params)]
    result = applied(function, *arguments)
    definition = getattr(load(HOMES[function.name], dtype), function.name)
    with np.errstate(all="ignore"):
        if is_loop:
            expected = np.array([definition(*row) for row in zip(*arguments, strict=True)], dtype)
        else:
            expected = definition(*arguments)
    assert_same_bits(result, expected)
