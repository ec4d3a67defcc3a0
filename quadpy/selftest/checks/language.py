"""The language: every type and operation, compared with the reference to the bit."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.selftest.place import Place
from quadpy.selftest.table import check

_INTEGERS: Final = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_FLOATS: Final = ("f16", "f32", "f64")
_A: Final = qp.types.ndarray(ndim=1)
_ROWS: Final = qp.types.ndarray(ndim=2)
_BY_TYPE: Final = "compare kernels of this type with the CPU before you rely on them, and send the report"


def edges(name: str) -> Any:
    """Values of a type at which operations go wrong."""
    dtype = np.dtype({"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:])
    if dtype.kind == "f":
        info = np.finfo(dtype)
        values = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            3.0,
            0.1,
            info.smallest_subnormal,
            -info.tiny / 2,
            info.max,
            np.inf,
            -np.inf,
            np.nan,
        ]
    else:
        limits = np.iinfo(dtype)
        values = [0, 1, 2, 7, 33, limits.max, limits.max - 1, limits.min, limits.min + 1, limits.max // 3]
        values += [-1, -7] if dtype.kind == "i" else []
    return np.array(values).astype(dtype) if dtype.kind != "f" else np.array(values, dtype)


def pairs(name: str) -> tuple[Any, Any]:
    """Each edge with each other."""
    values = edges(name)
    left, right = zip(*itertools.product(values, values), strict=True)
    return np.array(left, values.dtype), np.array(right, values.dtype)


@qp.kernel
def integer_operations(a: _A, b: _A, out: _ROWS):
    for i in a:
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x - y
        out[2, i] = x * y
        out[3, i] = x // y
        out[4, i] = x % y
        out[5, i] = x & y
        out[6, i] = x | y
        out[7, i] = x ^ y
        out[8, i] = x << y
        out[9, i] = x >> y
        out[10, i] = min(x, y)
        out[11, i] = max(x, y)
        out[12, i] = -x
        out[13, i] = ~x
        out[14, i] = abs(x)


@qp.kernel
def comparisons(a: _A, b: _A, out: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in a:
        x, y = a[i], b[i]
        found = 0
        if x < y:
            found += 1
        if x <= y:
            found += 2
        if x == y:
            found += 4
        if x != y and not (x > y):
            found += 8
        if x >= y or y > x:
            found += 16
        out[i] = found + (32 if x else 0)


@qp.kernel
def float_operations(a: _A, b: _A, out: _ROWS):
    for i in a:
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x - y
        out[2, i] = x * y
        out[3, i] = x / y
        out[4, i] = x // y
        out[5, i] = x % y
        out[6, i] = min(x, y)
        out[7, i] = max(x, y)
        out[8, i] = -x
        out[9, i] = abs(x)
        out[10, i] = x * y + x


@qp.kernel
def functions(a: _A, out: _ROWS):
    for i in a:
        x = a[i]
        out[0, i] = qp.sqrt(x)
        out[1, i] = qp.exp(x)
        out[2, i] = qp.log(x)
        out[3, i] = qp.sin(x)
        out[4, i] = qp.cos(x)
        out[5, i] = qp.tan(x)
        out[6, i] = qp.asin(x)
        out[7, i] = qp.acos(x)
        out[8, i] = qp.atan2(x, 0.7)
        out[9, i] = qp.tanh(x)
        out[10, i] = qp.floor(x)
        out[11, i] = qp.ceil(x)
        out[12, i] = qp.round(x)
        out[13, i] = x**2.5
        out[14, i] = qp.rsqrt(x)
        out[15, i] = qp.erf(x)
        out[16, i] = qp.cbrt(x)
        out[17, i] = qp.fma(x, x, 0.1)


@qp.kernel
def casts(a: _A, i8: _A, i16: _A, i32: _A, i64: _A, u8: _A, u16: _A, u32: _A, u64: _A, f16: _A, f32: _A, f64: _A):
    for i in a:
        i8[i] = qp.i8(a[i])
        i16[i] = qp.i16(a[i])
        i32[i] = qp.i32(a[i])
        i64[i] = qp.i64(a[i])
        u8[i] = qp.u8(a[i])
        u16[i] = qp.u16(a[i])
        u32[i] = qp.u32(a[i])
        u64[i] = qp.u64(a[i])
        f16[i] = qp.f16(a[i])
        f32[i] = qp.f32(a[i])
        f64[i] = qp.f64(a[i])


@qp.func
def collatz(start: qp.i32) -> qp.i32:
    steps, n = 0, start
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 200:
            break
    return steps


@qp.kernel
def control(out: qp.types.ndarray(dtype=qp.i32, ndim=2)):
    for i, j in qp.ndrange(out.shape[0], out.shape[1]):
        total = 0
        for k in range(j, -i, -2):
            if k == 3:
                continue
            if k < -7:
                break
            total += k
        for k in qp.static(range(3)):
            total = total * 3 + k
        out[i, j] = total + collatz(i * out.shape[1] + j + 1)


@qp.kernel
def draws(out: qp.types.ndarray(dtype=qp.f32, ndim=1), whole: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in out:
        out[i] = qp.random(qp.f32) + qp.randn()
        whole[i] = qp.random(qp.i32)


@qp.kernel
def matrices(x: qp.types.ndarray(dtype=qp.f32, ndim=1), out: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i in x:
        v = qp.Vector([x[i], 1.0, -x[i] * x[i]])
        m = qp.Matrix([[2.0, x[i], 0.0], [0.5, 1.0, x[i]], [x[i], 0.0, 3.0]])
        w = m @ v
        n = m.inverse()
        out[i, 0] = w.norm()
        out[i, 1] = m.determinant()
        out[i, 2] = n[1, 2]
        out[i, 3] = (v.cross(w)).sum()
        u, s, t = qp.svd(m)
        out[i, 4] = (u @ s @ t.transpose() - m).norm()


@qp.kernel
def totals(x: _A, out: _A):
    for i in x:
        out[0] += x[i]
    for i in x:
        qp.atomic_max(out[1], x[i])


@check("integers of every width: arithmetic, bits, shifts, comparisons", "language", remedy=_BY_TYPE)
def integers(place: Place) -> None:
    for name in _INTEGERS:
        a, b = pairs(name)

        def made(a: Any = a, b: Any = b) -> tuple[Any, ...]:
            out, found = np.zeros((15, a.size), a.dtype), np.zeros(a.size, np.int32)
            integer_operations(a, b, out)
            comparisons(a, b, found)
            return out, found

        place.compare(made)


@check("floats of every width: arithmetic with rounding, subnormals, infinities, NaN", "language", remedy=_BY_TYPE)
def floats(place: Place) -> None:
    for name in _FLOATS:
        a, b = pairs(name)

        def made(a: Any = a, b: Any = b) -> tuple[Any, ...]:
            out, found = np.zeros((11, a.size), a.dtype), np.zeros(a.size, np.int32)
            float_operations(a, b, out)
            comparisons(a, b, found)
            return out, found

        place.compare(made)


@check("casts between all types, out of range and of NaN", "language", remedy=_BY_TYPE)
def casts_(place: Place) -> None:
    for name in (*_INTEGERS, *_FLOATS):
        a = edges(name)

        def made(a: Any = a) -> list[Any]:
            out = [np.zeros(a.size, edges(to).dtype) for to in (*_INTEGERS, *_FLOATS)]
            casts(a, *out)
            return out

        place.compare(made)


@check("the math library in f32 and f64", "language", remedy=_BY_TYPE)
def mathematics(place: Place) -> None:
    rng = np.random.default_rng(1)
    for name in ("f32", "f64"):
        many = 1 << 16 if place.is_gpu and not place.quick else 8
        with np.errstate(over="ignore"):
            some = rng.standard_normal(many) * 10.0 ** rng.integers(-6, 6, many)
        a = np.concatenate([edges(name), some.astype(edges(name).dtype)])

        def made(a: Any = a) -> list[Any]:
            out = np.zeros((18, a.size), a.dtype)
            functions(a, out)
            return [out]

        place.compare(made)


@check("loops in steps, break, continue, while, conditional expressions, functions, unrolled loops", "language")
def control_flow(place: Place) -> None:
    def made() -> list[Any]:
        out = np.zeros((5, 7), np.int32)
        control(out)
        return [out]

    place.compare(made)


@check("the same random numbers on every backend", "language")
def random_numbers(place: Place) -> None:
    def made() -> list[Any]:
        out, whole = np.zeros(64, np.float32), np.zeros(64, np.int32)
        draws(out, whole)
        return [out, whole]

    place.compare(made)


@check("vectors and matrices: products, inverse, singular values", "language")
def linear_algebra(place: Place) -> None:
    def made() -> list[Any]:
        x, out = np.linspace(-2, 2, 9, dtype=np.float32), np.zeros((9, 5), np.float32)
        matrices(x, out)
        return [out]

    place.compare(made)


@check("sums and extremes of a loop have the same bits on every backend", "language")
def reductions(place: Place) -> None:
    rng = np.random.default_rng(2)
    size = 300 if not place.is_gpu else 10_000 if place.quick else 1_000_003
    for dtype in (np.float32, np.float64, np.int32):
        x = (100 * rng.standard_normal(size)).astype(dtype)

        def made(x: Any = x) -> list[Any]:
            out = np.zeros(2, x.dtype)
            totals(x, out)
            return [out]

        place.compare(made)
