"""Integer arithmetic: it wraps, and no operation is undefined.  Python's unbounded integers are the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.dtypes import SCALARS

A = qp.types.ndarray
INTEGERS = [t for t in SCALARS if t.kind in ("int", "uint")]


@qp.kernel
def operate(a: A(), b: A(), y: A()):
    for i in a:
        y[i, 0] = a[i] + b[i]
        y[i, 1] = a[i] - b[i]
        y[i, 2] = a[i] * b[i]
        y[i, 3] = a[i] // b[i]
        y[i, 4] = a[i] % b[i]
        y[i, 5] = a[i] & b[i]
        y[i, 6] = a[i] | b[i]
        y[i, 7] = a[i] ^ b[i]
        y[i, 8] = a[i] << b[i]
        y[i, 9] = a[i] >> b[i]
        y[i, 10] = -a[i]
        y[i, 11] = ~a[i]
        y[i, 12] = abs(a[i])
        y[i, 13] = min(a[i], b[i])
        y[i, 14] = max(a[i], b[i])
        y[i, 15] = qp.raw_div(a[i], b[i])
        y[i, 16] = qp.raw_mod(a[i], b[i])
        y[i, 17] = qp.bit_shr(a[i], b[i])


def exact(a, b, t):
    """The results as unbounded integers."""
    unsigned = a % (1 << t.bits)
    inside = 0 <= b < t.bits
    quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return [
        a + b, a - b, a * b, a // b if b else 0, a % b if b else 0, a & b, a | b, a ^ b,
        a << b if inside else 0, a >> b if inside else (-1 if a < 0 else 0), -a, ~a, abs(a), min(a, b), max(a, b),
        quotient, a - b * quotient if b else 0, unsigned >> b if inside else 0,
    ]  # fmt: skip


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_every_operator(t):
    rng = np.random.default_rng(7)
    dtype = np.dtype(f"{t.kind}{t.bits // 8}"[0] + str(t.bits // 8))
    edges = [v for v in (t.min_int, t.min_int + 1, -7, -1, 0, 1, 2, 7, t.bits - 1, t.bits, t.max_int) if v >= t.min_int]
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [tuple(row) for row in rng.integers(t.min_int, t.max_int, (200, 2), dtype=dtype, endpoint=True).tolist()]
    a, b = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    y = np.zeros((len(pairs), 18), dtype)
    operate(a, b, y)
    for (p, q), row in zip(pairs, y.tolist(), strict=True):
        want = [(v - t.min_int) % (1 << t.bits) + t.min_int for v in exact(p, q, t)]
        assert row == want, f"{t}: {p}, {q}"


@qp.kernel
def with_literals(x: qp.i32, y: A(qp.i32, 1)):
    y[0] = x // 0
    y[1] = x % 0
    y[2] = x // -1
    y[3] = x % -1
    y[4] = x << 32
    y[5] = x >> 40
    y[6] = x // -7
    y[7] = x % -7
    y[8] = x % 8
    y[9] = 7 // 0
    y[10] = x << -1


@pytest.mark.parametrize("x", [-(2**31), -8, -1, 0, 5, 2**31 - 1])
def test_literal_operands(x):
    y = np.zeros(11, np.int32)
    with_literals(x, y)
    wrapped = (-x + 2**31) % 2**32 - 2**31
    assert y.tolist() == [0, 0, wrapped, 0, 0, -1 if x < 0 else 0, x // -7, x % -7, x % 8, 0, 0]


@qp.kernel
def powers(x: qp.i32, n: qp.i32, y: A(qp.i32, 1)):
    y[0] = x**0
    y[1] = x**5
    y[2] = x**n
    y[3] = pow(x, 3)


@pytest.mark.parametrize(("x", "n"), [(0, 0), (3, 4), (-3, 5), (7, 13), (2, 40), (-1, -3), (1, -2), (5, -1), (0, -1)])
def test_integer_powers(x, n):
    y = np.zeros(4, np.int32)
    powers(x, n, y)
    third = (x**n + 2**31) % 2**32 - 2**31 if n >= 0 else {1: 1, -1: -1 if n % 2 else 1}.get(x, 0)
    assert y.tolist() == [1, x**5 if abs(x) < 7 else 16807, third, x**3]


@qp.kernel
def count_bits(x: A(), y: A(qp.i32, 2)):
    for i in x:
        y[i, 0] = qp.popcnt(x[i])
        y[i, 1] = qp.clz(x[i])
        y[i, 2] = qp.ffs(x[i])


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.uint8, np.int16])
def test_bit_counts(dtype):
    width = np.dtype(dtype).itemsize * 8
    x = np.array([0, 1, 2, 40, 127, np.iinfo(dtype).max], dtype)
    y = np.zeros((6, 3), np.int32)
    count_bits(x, y)
    for value, row in zip(x.tolist(), y.tolist(), strict=True):
        assert row == [value.bit_count(), width - value.bit_length(), (value & -value).bit_length()]


@qp.kernel
def widened(x: qp.types.ndarray(dtype=qp.i16, ndim=1), y: qp.types.ndarray(dtype=qp.i32, ndim=2)):
    for i in range(x.shape[0]):
        y[i, 0] = -x[i]
        y[i, 1] = qp.abs(x[i])
        y[i, 2] = 70000 + (-x[i])


def test_the_least_integer_is_its_own_negative_where_it_is_widened():
    x = np.array([-32768, -32767, -1, 0, 32767], np.int16)
    y = np.zeros((5, 3), np.int32)
    widened(x, y)
    negative = np.array([-32768, 32767, 1, 0, -32767])
    np.testing.assert_array_equal(y, np.stack([negative, [-32768, 32767, 1, 0, 32767], 70000 + negative], axis=1))
