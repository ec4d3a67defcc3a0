"""Exact remainders, against Python's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy_ops import load
from samples import spread

FUNCTIONS = {"fmod": math.fmod, "py_mod": lambda a, b: a % b, "py_floordiv": lambda a, b: a // b}


def operands(dtype):
    rng = np.random.default_rng(4)
    groups = [spread(dtype, 200), rng.uniform(-50, 50, 300).astype(dtype), rng.integers(-30, 30, 300).astype(dtype)]
    return np.concatenate(groups), np.concatenate([rng.permutation(group) for group in groups])


def python_says(name, a, b):
    try:
        return FUNCTIONS[name](float(a), float(b))
    except (ZeroDivisionError, ValueError):  # quadpy gives NaN, but for a // 0, which is a / 0
        return math.copysign(math.inf, a) * math.copysign(1, b) if name == "py_floordiv" and a and a == a else math.nan


@pytest.mark.parametrize(("name", "dtype"), [
    ("fmod", np.float32), ("fmod", np.float64), ("py_mod", np.float32), ("py_mod", np.float64), ("py_floordiv", np.float64),
])  # fmt: skip
def test_same_bits_as_python(name, dtype):
    function = getattr(load("rounding", dtype), name)
    for a, b in zip(*operands(dtype), strict=True):
        with np.errstate(all="ignore"):
            got, expected = float(function(a, b)), float(dtype(python_says(name, a, b)))
        assert got == expected or (math.isnan(got) and math.isnan(expected)), (a, b)
        assert math.isnan(got) or math.copysign(1, got) == math.copysign(1, expected), (a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_quotients_end(dtype):
    function = load("rounding", dtype).fmod
    info = np.finfo(dtype)
    least, most = info.smallest_subnormal, info.max
    for a, b in ((most, least), (most, 3 * least), (most / 3, 7 * least), (most, info.tiny), (info.tiny, least)):
        with np.errstate(all="ignore"):
            assert float(function(dtype(a), dtype(b))) == math.fmod(float(dtype(a)), float(dtype(b)))


def test_f32_floor_division_is_within_its_bound():
    function = load("rounding", np.float32).py_floordiv
    for a, b in zip(*operands(np.float32), strict=True):
        with np.errstate(all="ignore"):
            got, expected = function(a, b), python_says("py_floordiv", a, b)
            assert math.isnan(expected) or abs(got) == np.inf or abs(float(got) - expected) <= np.spacing(abs(got)), (
                a,
                b,
            )
