"""The kernels for thread blocks, also on the CPU: the same bits as the CPU's own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numbers_of_tests import numbers, same

import quadpy as qp
from quadpy.algorithms.runs import forced_blocks

al = qp.algorithms


@qp.func
def last_nonzero(a, b):
    return qp.select(b != 0, b, a)


@pytest.fixture
def blocks():
    token = forced_blocks.set(True)
    yield
    forced_blocks.reset(token)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_scans_have_the_bits_of_the_cpu(rng, place, blocks, dtype):
    for n in (1, 31, 4096, 4097, 100_000, 1_100_000):
        x = numbers(rng, dtype, n, special=False)
        found = al.inclusive_scan(place(x)), al.exclusive_scan(place(x), initial=7)
        forced_blocks.set(False)
        expected = al.inclusive_scan(place(x)), al.exclusive_scan(place(x), initial=7)
        forced_blocks.set(True)
        for a, b in zip(found, expected, strict=True):
            assert a.to_numpy().tobytes() == b.to_numpy().tobytes()


def test_scans_by_functions_that_do_not_commute(rng, place, blocks):
    for n in (5, 5000, 600_000):
        x = (rng.integers(1, 1000, n) * (rng.random(n) < 0.001)).astype(np.int16)
        last = np.maximum.accumulate(np.where(x != 0, np.arange(n), -1))
        assert same(
            al.inclusive_scan(place(x), last_nonzero, identity=0), np.where(last >= 0, x[last], 0).astype(np.int16)
        )


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_sorting(rng, place, blocks, dtype):
    for n in (1, 1000, 1024, 1025, 20_000, 300_000):
        x, v = numbers(rng, dtype, n), rng.integers(0, 100, n).astype(np.uint32)
        order = np.argsort(x, kind="stable")
        assert al.sort(place(x)).to_numpy().tobytes() == x[order].tobytes()
        assert same(al.sort_pairs(place(x), place(v))[1], v[order])


def test_sorting_by_rows_and_segments(rng, place, blocks):
    x = rng.integers(-5, 5, (30, 400)).astype(np.float32)
    assert same(al.argsort(place(x)), np.argsort(x, kind="stable"))
    ends = np.array([0, 10, 10, 5000, 12_000])
    flat = x.reshape(-1)
    expected = np.concatenate([np.sort(flat[a:b]) for a, b in itertools.pairwise(ends)])
    assert same(al.sort(place(flat), segments=place(ends)), expected)


def test_many_runs_at_once(rng, place, blocks):
    """Blocks wait for each other in every order in which threads run them."""
    x = rng.integers(0, 1000, 60_000).astype(np.float32)
    expected, total = np.sort(x), np.cumsum(x, dtype=np.float64).astype(np.float32)
    a = place(x)
    for _ in range(40):
        assert same(al.sort(a), expected)
        assert np.allclose(al.inclusive_scan(a), total)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_they_compile_for_every_target(target):
    from quadpy.algorithms.kernels.onesweep import count_digits, shape_of_tile, sweep_digit
    from quadpy.algorithms.kernels.tiles import tile_scan
    from quadpy.algorithms.operators import add

    f32, u32, u64 = (qp.types.ndarray(t, 1) for t in (qp.f32, qp.u32, qp.u64))
    table = qp.types.ndarray(qp.u32, 2)
    tile_scan.compile(target, x=f32, y=f32, words=u64, op=add, neutral=-0.0, dtype=qp.f32, exclusive=False)
    rule = {"what": "keys", "kind": "float", "infinity": 0x7F800000, "descending": False}
    shared = {"offsets": u32, "counts": table, "words": u32, **rule}
    count_digits.compile(target, keys=u32, key_passes=4, group_passes=0, **shared)
    for keys, cell in ((u32, qp.u32), (u64, qp.u64)):
        threads, items = shape_of_tile(cell.nbytes)
        sizes = {"keys": keys, "sorted_keys": keys, "threads": threads, "items": items, "cell": cell}
        sweep_digit.compile(target, values=u32, sorted_values=u32, pairs=True, **sizes, **shared)
