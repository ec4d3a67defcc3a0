"""Subnormal numbers, zeros of both signs, infinities and NaNs: atomic updates, arithmetic and casts keep their bits.

Some memory units of GPUs turn subnormal operands and results of sums into zeros, and some instructions do.
"""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
TYPES = [np.float16, np.float32, np.float64]


def edges(dtype, few=3):
    """Numbers around the ends of the subnormal ones, and of those from which a sum with any of them is exact."""
    info, rng = np.finfo(dtype), np.random.default_rng(7)
    word = np.dtype(f"u{info.dtype.itemsize}")
    tiny = [1, 2, 3, (1 << info.nmant) - 1, 1 << (info.nmant - 1), *rng.integers(1, 1 << info.nmant, few)]
    powers = [k << info.nmant for k in (1, 2, 3, info.nmant, info.nmant + 1, info.nmant + 2, info.nmant + 3)]
    near = [p + d for p in powers for d in (-1, 0, 1)]
    small = rng.integers(1 << info.nmant, (info.nmant + 5) << info.nmant, few)
    positive = np.array([*tiny, *near, *small], word).view(dtype)
    others = np.array([0.0, 1.0, 0.375, 1000.0, info.max, np.inf], dtype)
    return np.concatenate([positive, -positive, others, -others, np.array([np.nan], dtype)])


def pairs(dtype):
    x = edges(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def same_bits(found, expected):
    """Whether all bits are the same; NaNs are one."""
    word = f"u{expected.itemsize}"
    equal = (found.view(word) == expected.view(word)) | (np.isnan(found) & np.isnan(expected))
    at = int(np.argmin(equal))
    assert equal.all(), f"{(~equal).sum()} differ, the first at {at}: {found[at]!r}, not {expected[at]!r}"


def extreme(pick):
    """A number beats a NaN; -0 is below +0."""

    def choose(x, y):
        signs = np.signbit(x) if pick is np.fmin else ~np.signbit(x)
        return np.where((x == y) & (x == 0), np.where(signs, x, y), pick(x, y))

    return choose


@qp.kernel
def update(x: A(), v: A(), at: A(qp.i32, 1), op: qp.template()):
    for i in v:
        if qp.static(op == "+="):
            x[at[i]] += v[i]
        elif qp.static(op == "-="):
            x[at[i]] -= v[i]
        elif qp.static(op == "*="):
            x[at[i]] *= v[i]
        elif qp.static(op == "add"):
            qp.atomic_add(x[at[i]], v[i])
        elif qp.static(op == "sub"):
            qp.atomic_sub(x[at[i]], v[i])
        elif qp.static(op == "mul"):
            qp.atomic_mul(x[at[i]], v[i])
        elif qp.static(op == "min"):
            qp.atomic_min(x[at[i]], v[i])
        else:
            qp.atomic_max(x[at[i]], v[i])


@qp.kernel
def update_own(x: A(), v: A(), op: qp.template()):
    for i in v:
        if qp.static(op == "+="):
            x[i] += v[i]
        elif qp.static(op == "-="):
            x[i] -= v[i]
        elif qp.static(op == "*="):
            x[i] *= v[i]
        elif qp.static(op == "add"):
            qp.atomic_add(x[i], v[i])
        elif qp.static(op == "sub"):
            qp.atomic_sub(x[i], v[i])
        elif qp.static(op == "mul"):
            qp.atomic_mul(x[i], v[i])
        elif qp.static(op == "min"):
            qp.atomic_min(x[i], v[i])
        else:
            qp.atomic_max(x[i], v[i])


@qp.kernel
def update_in_blocks(x: A(), v: A(), op: qp.template()):
    qp.loop_config(block_dim=64)
    for i in range(v.shape[0] // 64 * 64):
        tile, t = qp.simt.block.SharedArray(64, x.dtype), i % 64
        tile[t] = x[i]
        qp.simt.block.sync()
        at = (t + 1) % 64
        w = v[i - t + at]
        if qp.static(op in ("+=", "add")):
            tile[at] += w
        elif qp.static(op in ("-=", "sub")):
            qp.atomic_sub(tile[at], w)
        elif qp.static(op in ("*=", "mul")):
            tile[at] *= w
        elif qp.static(op == "min"):
            qp.atomic_min(tile[at], w)
        else:
            qp.atomic_max(tile[at], w)
        qp.simt.block.sync()
        x[i] = tile[t]


OPERATIONS = {
    "+=": np.add, "-=": np.subtract, "*=": np.multiply, "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "min": extreme(np.fmin), "max": extreme(np.fmax),
}  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPERATIONS)
def test_updates(op, dtype):
    old, v = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = OPERATIONS[op](old, v)
    order = np.random.default_rng(1).permutation(len(old)).astype(np.int32)
    x = np.empty_like(old)
    x[order] = old
    update(x, v, order, op)
    same_bits(x[order], expected)
    x = old.copy()
    update_own(x, v, op)
    same_bits(x, expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPERATIONS)
def test_updates_of_shared_memory(op, dtype):
    old, v = pairs(dtype)
    whole = len(old) // 64 * 64
    with np.errstate(all="ignore"):
        expected = OPERATIONS[op](old, v)[:whole]
    x = old.copy()
    update_in_blocks(x, v, op)
    same_bits(x[:whole], expected)


@qp.kernel
def add_and_tell(x: A(), v: A(), at: A(qp.i32, 1), old: A()):
    for i in v:
        old[i] = qp.atomic_add(x[at[i]], v[i])


@pytest.mark.parametrize("dtype", TYPES)
def test_old_values(dtype):
    before, v = pairs(dtype)
    x, old = before.copy(), np.zeros_like(before)
    add_and_tell(x, v, np.arange(len(x), dtype=np.int32), old)
    same_bits(old, before)
    with np.errstate(all="ignore"):
        same_bits(x, before + v)


@qp.kernel
def gather(x: A(qp.f32, 1), v: A(qp.f32, 1), least: A(qp.f32, 1), most: A(qp.f32, 1)):
    for i in v:
        x[i * i % x.shape[0]] += v[i]
        qp.atomic_add(x[(i + 1) % x.shape[0]], -v[i])
        qp.atomic_min(least[i % 5], v[i])
        qp.atomic_max(most[i % 5], v[i])


@pytest.mark.parametrize("unit", [2.0**-149, 2.0**-128, 2.0**-110])
def test_many_iterations_on_one_element(unit):
    """Multiples of ``unit`` on either side of what the hardware may add; sums are exact, so that their order does not matter."""
    n, size = 30_000, 1_000_003
    k = np.random.default_rng(3).integers(-2048, 2048, n)
    i, v, whole = np.arange(n), (k * unit).astype(np.float32), np.zeros(size)
    np.add.at(whole, i * i % 11, k)
    np.add.at(whole, (i + 1) % 11, -k)
    x, least, most = np.zeros(11, np.float32), np.full(5, np.inf, np.float32), np.full(5, -np.inf, np.float32)
    gather(x, v, least, most)
    same_bits(x + np.float32(0), (whole[:11] * unit).astype(np.float32) + np.float32(0))
    same_bits(least, np.array([v[j::5].min() for j in range(5)]))
    same_bits(most, np.array([v[j::5].max() for j in range(5)]))


@qp.kernel
def operate(a: A(), b: A(), y: A()):
    for i in a:
        y[0, i] = a[i] + b[i]
        y[1, i] = a[i] - b[i]
        y[2, i] = a[i] * b[i]
        y[3, i] = a[i] / b[i]
        y[4, i] = qp.sqrt(a[i])
        y[5, i] = a[i] * b[i] + a[i]
        y[6, i] = b[i] - a[i] * b[i]
        y[7, i] = min(a[i], b[i])
        y[8, i] = max(a[i], b[i])
        y[9, i] = -a[i]
        y[10, i] = abs(a[i])
        y[11, i] = 1.0 / a[i]
        y[12, i] = qp.floor(a[i])
        y[13, i] = a[i] * 0.5
        y[14, i] = 2.0 if a[i] < b[i] else b[i]


@pytest.mark.parametrize("dtype", TYPES)
def test_arithmetic(dtype):
    """Nothing is fused, and nothing is approximate."""
    a, b = pairs(dtype)
    y = np.zeros((15, len(a)), dtype)
    operate(a, b, y)
    with np.errstate(all="ignore"):
        rows = [
            a + b, a - b, a * b, a / b, np.sqrt(a), a * b + a, b - a * b, extreme(np.fmin)(a, b), extreme(np.fmax)(a, b),
            -a, abs(a), dtype(1) / a, np.floor(a), a * dtype(0.5), np.where(a < b, dtype(2), b),
        ]  # fmt: skip
    for found, expected in zip(y, rows, strict=True):
        same_bits(found, expected.astype(dtype))


@qp.kernel
def convert(x: A(), y: A()):
    for i in x:
        y[i] = qp.cast(x[i], y.dtype)


@qp.kernel
def through_bf16(x: A(qp.f32, 1), y: A(qp.f32, 1)):
    for i in x:
        y[i] = qp.f32(qp.bf16(x[i]))


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_casts(source, target):
    with np.errstate(all="ignore"):
        x = np.concatenate([edges(t, 30).astype(source) for t in TYPES])
        y = np.zeros(len(x), target)
        convert(x, y)
        same_bits(y, x.astype(target))


def test_casts_to_bf16():
    x = edges(np.float32, 200)
    x = x[np.isfinite(x) & (abs(x) < 1e38)]
    y = np.zeros_like(x)
    through_bf16(x, y)
    bits = x.view(np.uint32)
    even = (bits >> 16) & 1
    same_bits(y, ((bits + 0x7FFF + even) >> 16 << 16).astype(np.uint32).view(np.float32))
