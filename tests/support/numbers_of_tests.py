"""Numbers of every type for tests: with repetitions, extremes, NaNs and both zeros."""

from __future__ import annotations

import numpy as np

ALL = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64,
]  # fmt: skip
LENGTHS = [0, 1, 2, 129, 4096, 70001]


def numbers(rng, dtype, n, *, special=True):
    """``n`` numbers of ``dtype``."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, n, dtype, endpoint=True)
        few = rng.integers(0, 5, n).astype(dtype)
        return np.where(rng.random(n) < 0.3, few, x)
    x = rng.normal(0, 100, n).astype(dtype)
    if special:
        for value in (np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal):
            x[rng.random(n) < 0.03] = value
    return x


def with_subnormals(rng, x):
    """``x``, of which a third are subnormal numbers if it has floats."""
    if x.dtype.kind != "f":
        return x
    info = np.finfo(x.dtype)
    tiny = rng.integers(1, 1 << info.nmant, x.size).astype(f"u{x.itemsize}").view(x.dtype)
    return np.where(rng.random(x.size) < 1 / 3, np.where(rng.random(x.size) < 0.5, tiny, -tiny), x)


def same(found, expected):
    """Whether two arrays have the same type, shape and numbers, where a NaN is a NaN, and -0 is 0."""
    found = np.asarray(found)
    return (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")
    )
