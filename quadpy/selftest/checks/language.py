"""The language: its types and operations, compared with the reference to the bit."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.selftest.kernels import language as kernels
from quadpy.selftest.place import Place
from quadpy.selftest.table import slow_check

_INTEGERS: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_FLOATS: Final = ("f16", "f32", "f64", "bf16")
_BY_TYPE: Final = "compare kernels of this type with the CPU before you rely on them, and send the report"


def edges(name: str) -> Any:
    """Values of a type at which operations go wrong; those of bf16, which NumPy lacks, as f32."""
    if name == "u1":
        return np.array([False, True])
    if name == "bf16":
        return _BF16.view(np.float32)
    dtype = np.dtype({"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:])
    if dtype.kind == "f":
        info = np.finfo(dtype)
        extremes = [info.smallest_subnormal, -info.tiny / 2, info.max, np.inf, -np.inf, np.nan]
        return np.array([0.0, -0.0, 1.0, -1.5, 3.0, 0.1, *extremes], dtype)
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 7, 33, limits.max, limits.max - 1, limits.min, limits.min + 1, limits.max // 3]
    return np.array(values + ([-1, -7] if dtype.kind == "i" else []), dtype)


_BF16: Final = np.array(
    [0, 0x8000, 0x3F80, 0xBFC0, 0x4040, 0x3DCD, 1, 0x8040, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0], np.uint32
) << np.uint32(16)  # fmt: skip
"""The bits of the same numbers as those of the other floats."""


def pairs(name: str) -> tuple[Any, Any]:
    """Each edge with each other."""
    values = edges(name)
    left, right = zip(*itertools.product(values, values), strict=True)
    return np.array(left, values.dtype), np.array(right, values.dtype)


def array_of(name: str, values: Any) -> Any:
    """``values`` as an array that kernels take as one of this type."""
    if name != "bf16":
        return values
    made = qp.ndarray(qp.bf16, values.shape)
    made.from_numpy(values)
    return made


def _compare(place: Place, name: str, kernel: Any, rows: int, *counts: int) -> None:
    """``kernel`` of each edge with each other: it makes so many rows of this type, and so many of i32."""
    a, b = pairs(name)

    def made() -> list[Any]:
        out = [array_of(name, np.zeros((rows, a.size), a.dtype)), *(np.zeros((n, a.size), np.int32) for n in counts)]
        kernel(array_of(name, a), array_of(name, b), *out)
        return out

    place.compare(made)


@slow_check("integers of every width: arithmetic, bits, shifts, comparisons", "language", remedy=_BY_TYPE)
def integers(place: Place) -> None:
    for name in _INTEGERS:
        _compare(place, name, kernels.integer_operations, 17, 4)


@slow_check(
    "f16, bf16, f32 and f64: arithmetic with rounding, subnormals, infinities, NaN", "language", remedy=_BY_TYPE
)
def floats(place: Place) -> None:
    for name in _FLOATS:
        _compare(place, name, kernels.float_operations, 11, 1)


@slow_check("truth values: their operations, and arrays of them", "language", remedy=_BY_TYPE)
def truth(place: Place) -> None:
    _compare(place, "u1", kernels.truth, 8)


@slow_check("casts between all types, out of range and of NaN", "language", remedy=_BY_TYPE)
def casting(place: Place) -> None:
    types = (*_INTEGERS, *_FLOATS, "u1")
    for name in types:
        a = edges(name)

        def made(name: str = name, a: Any = a) -> list[Any]:
            out = [array_of(to, np.zeros(a.size, edges(to).dtype)) for to in types]
            kernels.casts(array_of(name, a), *out)
            return out

        place.compare(made)


@slow_check("the math library in f32 and f64", "language", remedy=_BY_TYPE)
def mathematics(place: Place) -> None:
    rng = np.random.default_rng(1)
    for name in ("f32", "f64"):
        many = 1 << 16 if place.is_gpu and not place.quick else 8
        with np.errstate(over="ignore"):
            some = rng.standard_normal(many) * 10.0 ** rng.integers(-6, 6, many)
        a = np.concatenate([edges(name), some.astype(edges(name).dtype)])

        def made(a: Any = a) -> list[Any]:
            out = np.zeros((len(kernels.FUNCTIONS + kernels.OF_TWO), a.size), a.dtype)
            kernels.functions(a, out)
            return [out]

        place.compare(made)


@slow_check("loops in steps, break, continue, while, conditional expressions, functions, unrolled loops", "language")
def control_flow(place: Place) -> None:
    def made() -> list[Any]:
        out = np.zeros((5, 7), np.int32)
        kernels.control(out)
        return [out]

    place.compare(made)


@slow_check("the same random numbers on every backend", "language")
def random_numbers(place: Place) -> None:
    def made() -> list[Any]:
        out, whole = np.zeros(64, np.float32), np.zeros(64, np.int32)
        kernels.draws(out, whole)
        return [out, whole]

    place.compare(made)


@slow_check("vectors and matrices: products, inverse, singular values", "language")
def linear_algebra(place: Place) -> None:
    def made() -> list[Any]:
        x, out = np.linspace(-2, 2, 9, dtype=np.float32), np.zeros((9, 5), np.float32)
        kernels.matrices(x, out)
        return [out]

    place.compare(made)


@slow_check("sums and extremes of a loop have the same bits on every backend", "language")
def reductions(place: Place) -> None:
    rng = np.random.default_rng(2)
    size = 300 if not place.is_gpu else 10_000 if place.quick else 1_000_003
    for dtype in (np.float32, np.float64, np.int32):
        x = (100 * rng.standard_normal(size)).astype(dtype)

        def made(x: Any = x) -> list[Any]:
            out = np.zeros(2, x.dtype)
            kernels.totals(x, out)
            return [out]

        place.compare(made)
