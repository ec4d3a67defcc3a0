"""Scans: running sums, extremes and products, by key too."""

from __future__ import annotations

import numpy as np
import pytest
from numbers_of_tests import ALL, LENGTHS, numbers, same

import quadpy as qp

al = qp.algorithms


@qp.func
def plus(a, b):
    return a + b


@qp.func
def last_nonzero(a, b):
    return qp.select(b != 0, b, a)


def wide(x):
    return np.uint64 if x.dtype.kind == "u" else np.int64


@pytest.mark.parametrize("dtype", [d for d in ALL if np.dtype(d).kind in "biu"])
@pytest.mark.parametrize("n", LENGTHS)
def test_running_sums_of_integers(rng, place, dtype, n):
    x = numbers(rng, dtype, n)
    expected = np.cumsum(x, dtype=wide(x))
    assert same(al.inclusive_scan(place(x)), expected)
    assert same(al.exclusive_scan(place(x)), (expected - x.astype(wide(x))).astype(wide(x)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [*LENGTHS, 600_000])
def test_running_sums_of_floats(rng, place, dtype, n):
    x = (numbers(rng, dtype, n, special=False) / 100).astype(dtype)
    expected = np.cumsum(x, dtype=np.float64)
    allowed = 8 * np.finfo(dtype).eps * (np.cumsum(abs(x.astype(np.float64))) + 1)
    assert (abs(al.inclusive_scan(place(x)).to_numpy() - expected) <= allowed).all()
    assert (abs(al.exclusive_scan(place(x)).to_numpy() - (expected - x)) <= allowed).all()


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", LENGTHS)
def test_running_extremes(rng, place, dtype, n):
    x = numbers(rng, dtype, n)
    low, high = (np.logical_and, np.logical_or) if dtype is np.bool_ else (np.fmin, np.fmax)
    assert same(al.inclusive_scan(place(x), "min"), low.accumulate(x))
    assert same(al.inclusive_scan(place(x), "max"), high.accumulate(x))


@pytest.mark.parametrize("n", [1, 100, 5000])
def test_what_an_exclusive_scan_begins_with(rng, place, n):
    x = rng.integers(-5, 5, n).astype(np.int32)
    assert same(al.exclusive_scan(place(x), initial=7), (7 + np.cumsum(x) - x).astype(np.int64))
    greatest = np.concatenate([[3], np.maximum(np.maximum.accumulate(x), 3)[:-1]]).astype(np.int32)
    assert same(al.exclusive_scan(place(x), "max", initial=3), greatest)
    assert al.exclusive_scan(place(x), "min")[0] == 2**31 - 1
    assert al.exclusive_scan(place(x.astype(np.float32)), "max")[0] == -np.inf
    first = al.exclusive_scan(place(x.astype(np.float32))).to_numpy()[0]
    assert first.tobytes() == bytes(4)


@pytest.mark.parametrize("n", LENGTHS)
def test_functions_of_users_need_not_be_commutative(rng, place, n):
    x = (rng.integers(1, 1000, n) * (rng.random(n) < 0.01)).astype(np.int32)
    expected, last = np.zeros_like(x), 0
    for i, value in enumerate(x):
        last = value or last
        expected[i] = last
    assert same(al.inclusive_scan(place(x), last_nonzero, identity=0), expected)
    assert same(al.inclusive_scan(place(x), plus, identity=0), np.cumsum(x, dtype=np.int32))


def test_negative_zeros_stay(place):
    x = np.full(300, -0.0, np.float32)
    assert np.signbit(al.inclusive_scan(place(x)).to_numpy()).all()


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(3, 200, 5), (1, 1, 1), (300, 2, 3), (4, 5000, 1), (2, 0, 3)])
def test_along_an_axis(rng, place, axis, shape):
    x = rng.integers(-100, 100, shape).astype(np.int32)
    expected = np.cumsum(x, axis, np.int64)
    assert same(al.inclusive_scan(place(x), axis=axis), expected)
    assert same(al.exclusive_scan(place(x), axis=axis), expected - x)


@pytest.mark.parametrize("n", [1, 4097, 70001])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_in_place(rng, place, n, dtype):
    x = rng.integers(-9, 9, n).astype(dtype)
    for scan, expected in ((al.inclusive_scan, np.cumsum(x)), (al.exclusive_scan, np.cumsum(x) - x)):
        a = place(x)
        assert scan(a, out=a) is a
        assert same(a, expected.astype(dtype))


@pytest.mark.parametrize("n", [1000, 70001, 1 << 20])
def test_any_number_of_threads_gives_the_same_bits(rng, arch, n):
    x = rng.normal(size=n).astype(np.float32)
    found = set()
    for threads in (1, 2, 3):
        qp.init(arch=arch, cpu_max_num_threads=threads)
        a = qp.ndarray(qp.f32, n)
        a.from_numpy(x)
        found.add(al.inclusive_scan(a).to_numpy().tobytes() + al.inclusive_scan(a, "mul").to_numpy().tobytes())
    qp.init(arch=arch, cpu_max_num_threads=2)
    assert len(found) == 1


def model(x, op, neutral, start, *, exclusive):
    """The fixed shape of running sums, as the guide describes it."""
    n = len(x)
    padded = np.full(-(-n // 4096) * 4096, neutral, x.dtype)
    padded[:n] = x
    rows = padded.reshape(-1, 32, 4)

    def lanes_of(rows):
        lanes = op(op(op(rows[:, :, 0], rows[:, :, 1]), rows[:, :, 2]), rows[:, :, 3])
        for step in (1, 2, 4, 8, 16):
            lanes = np.concatenate([lanes[:, :step], op(lanes[:, :-step], lanes[:, step:])], axis=1)
        before = np.concatenate([np.full((len(lanes), 1), neutral, x.dtype), lanes[:, :-1]], axis=1)
        return before, lanes[:, -1]

    def running(totals, first):
        before = [np.broadcast_to(np.asarray(first, x.dtype), totals[:, 0].shape)]
        for k in range(totals.shape[1]):
            before.append(op(before[-1], totals[:, k]))
        return np.stack(before[:-1], axis=1), before[-1]

    lanes, totals = lanes_of(rows)
    strips, totals = running(totals.reshape(-1, 4), neutral)
    tiles, totals = running(totals.reshape(-1, 8), neutral)
    count = len(totals)
    groups = np.full(-(-count // 128) * 128, neutral, x.dtype)
    groups[:count] = totals
    groups = groups.reshape(-1, 32, 4)
    group_lanes, group_totals = lanes_of(groups)
    before, _ = running(group_totals.reshape(1, -1), start)
    offsets = op(before.reshape(-1, 1), group_lanes)
    within, _ = running(groups.reshape(-1, 4), neutral)
    offsets = op(offsets.reshape(-1, 1), within).reshape(-1)[:count]
    first = op(op(offsets[:, None], tiles).reshape(-1, 1), strips.reshape(-1, 4))
    now = op(first.reshape(-1, 1), lanes)
    out = []
    for k in range(4):
        following = op(now, rows[:, :, k])
        out.append(now if exclusive else following)
        now = following
    return np.stack(out, axis=2).reshape(-1)[:n]


@pytest.mark.parametrize("n", [1, 5, 127, 500, 4095, 4097, 40_000, 600_001, 1_200_000])
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_sums_have_the_documented_shape(rng, place, n, exclusive):
    """So they are the same on every device."""
    x = rng.normal(size=n).astype(np.float32)
    scan, start = (al.exclusive_scan, 0.0) if exclusive else (al.inclusive_scan, -0.0)
    found = scan(place(x)).to_numpy()
    assert found.tobytes() == model(x, np.add, np.float32(-0.0), start, exclusive=exclusive).tobytes()


def by_key(keys, values, one_run):
    equal = (keys[1:] == keys[:-1]) | ((keys[1:] != keys[1:]) & (keys[:-1] != keys[:-1]))
    starts = np.flatnonzero(np.concatenate([[True], ~equal])) if len(keys) else []
    parts = [one_run(part) for part in np.split(values, starts[1:])] if len(keys) else [values]
    return np.concatenate(parts), starts


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float32])
@pytest.mark.parametrize("n", [*LENGTHS, 5000])
@pytest.mark.parametrize("repeated", [1, 5, 3000])
def test_by_key(rng, place, dtype, n, repeated):
    keys = np.repeat(numbers(rng, dtype, n // repeated + 1), repeated)[:n]
    values = rng.integers(-100, 100, n).astype(np.int32)
    expected, starts = by_key(keys, values, lambda part: np.cumsum(part, dtype=np.int64))
    assert same(al.inclusive_scan_by_key(place(keys), place(values)), expected.astype(np.int64))
    before, _ = by_key(keys, values, lambda part: np.cumsum(part, dtype=np.int64) - part + 5)
    assert same(al.exclusive_scan_by_key(place(keys), place(values), initial=5), before.astype(np.int64))
    most, _ = by_key(keys, values, np.maximum.accumulate)
    assert same(al.inclusive_scan_by_key(place(keys), place(values), "max"), most)
    reduced = al.reduce_by_key(place(keys), place(values))
    count = reduced.count[None]
    assert count == len(starts)
    ends = np.append(starts, n)[1:].astype(int) - 1 if n else []
    assert same(reduced.values.to_numpy()[:count], expected.astype(np.int64)[ends] if n else expected.astype(np.int64))
    assert same(reduced.keys.to_numpy()[:count], keys[starts] if n else keys)


def test_reduced_functions_by_key(place):
    keys, values = np.array([1, 1, 2, 1, 1], np.int32), np.array([0.5, 2, 3, 4, 0.25], np.float32)
    reduced = al.reduce_by_key(place(keys), place(values), "mul")
    assert reduced.count[None] == 3
    assert reduced.values.to_numpy()[:3].tolist() == [1, 3, 1]
    assert reduced.keys.to_numpy()[:3].tolist() == [1, 2, 1]
    last = al.inclusive_scan_by_key(place(keys), place(values), last_nonzero, identity=0.0)
    assert same(last, values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: al.inclusive_scan("abc"), "x takes an array of numbers, not str"),
        (lambda x: al.inclusive_scan(x, "xor"), "'xor' is not an operator"),
        (lambda x: al.inclusive_scan(x, axis=3), "inclusive_scan: an array with 1 axes has no axis 3"),
        (lambda x: al.inclusive_scan(qp.ndarray(qp.f32, ())), "an array with 0 axes has no axis 0"),
        (lambda x: al.exclusive_scan(x, initial="a"), "'a' is not a number"),
        (lambda x: al.exclusive_scan(qp.ndarray(qp.u8, 3), "max", initial=300), "does not fit u8"),
        (lambda x: al.inclusive_scan(x, out=qp.ndarray(qp.f32, 9)), r"out takes an array of shape \(10,\)"),
        (lambda x: al.inclusive_scan_by_key(x, qp.ndarray(qp.f32, 9)), "there are 10 keys, but 9 values"),
        (lambda x: al.reduce_by_key(x, 5), "values takes an array of numbers, not int"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(qp.ArgumentError, match=message):
        call(qp.ndarray(qp.f32, 10))


def test_an_output_that_overlaps_the_input_in_part_is_refused(place):
    x = place(np.zeros(100, np.float32))
    whole = np.zeros(101, np.float32) if x.device is None else None
    if whole is None:
        pytest.skip("a part of an array has a name on the host only")
    with pytest.raises(qp.ArgumentError, match="out and x overlap"):
        al.inclusive_scan(whole[:100], out=whole[1:])
