"""Sorting: keys of every type, pairs, places, axes, segments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numbers_of_tests import ALL, LENGTHS, numbers, same

import quadpy as qp

al = qp.algorithms


def stable(x, *, descending=False):
    """The order that the guide defines."""
    if not descending:
        return np.argsort(x, kind="stable")
    return len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("descending", [False, True])
def test_order(rng, place, dtype, n, descending):
    x = numbers(rng, dtype, n)
    order = stable(x, descending=descending)
    found = al.sort(place(x), descending=descending).to_numpy()
    assert found.tobytes() == x[order].tobytes()  # equal keys, such as both zeros, stay in their order
    assert same(al.argsort(place(x), descending=descending), order.astype(np.int64))


def test_bf16(rng):
    x = rng.normal(size=1000).astype(np.float32)
    a = qp.ndarray(qp.bf16, 1000)
    a.from_numpy(x)
    assert same(al.sort(a), np.sort(a.to_numpy()))


@pytest.mark.parametrize("values", [np.bool_, np.int8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_pairs(rng, place, values, n):
    x, v = numbers(rng, np.int16, n) % 50, numbers(rng, values, n)
    keys, moved = al.sort_pairs(place(x), place(v))
    assert same(keys, np.sort(x))
    assert moved.to_numpy().tobytes() == v[np.argsort(x, kind="stable")].tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.int64])
@pytest.mark.parametrize("n", [1, 1000, 50_000])
def test_in_place(rng, place, dtype, n):
    x, v = numbers(rng, dtype, n), rng.integers(0, 1000, n)
    a = place(x)
    assert al.sort(a, out=a) is a
    assert same(a, np.sort(x))
    for keys_too, values_too in ((True, True), (True, False), (False, True)):
        a, b = place(x), place(v)
        out = (a if keys_too else place(x), b if values_too else place(v))
        al.sort_pairs(a, b, out=out)
        assert same(out[0], np.sort(x))
        assert same(out[1], v[stable(x)])
        assert keys_too or same(a, x)
        assert values_too or same(b, v)


@pytest.mark.parametrize(
    ("dtype", "n"), [(np.uint8, 2_100_001), (np.int32, 300_001), (np.float32, 270_000), (np.float64, 140_001)]
)
@pytest.mark.parametrize("descending", [False, True])
def test_more_than_the_caches_of_a_core_hold(rng, place, dtype, n, descending):
    x = numbers(rng, dtype, n)
    order = stable(x, descending=descending)
    a = place(x)
    assert same(al.argsort(a, descending=descending), order)
    assert al.sort(a, descending=descending, out=a).to_numpy().tobytes() == x[order].tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.uint64])
@pytest.mark.parametrize("extent", [2, 24, 25, 511, 513, 4100])
@pytest.mark.parametrize("descending", [False, True])
def test_rows(rng, place, dtype, extent, descending):
    x = numbers(rng, dtype, 7 * extent).reshape(7, extent)
    x[3] = 1
    order = np.stack([stable(row, descending=descending) for row in x])
    ordered = np.take_along_axis(x, order, 1)
    assert same(al.argsort(place(x), descending=descending), order)
    assert al.sort(place(x), descending=descending).to_numpy().tobytes() == ordered.tobytes()
    a, v = place(x), place(rng.random((7, extent)))
    expected = np.take_along_axis(v.to_numpy(), order, 1)
    al.sort_pairs(a, v, descending=descending, out=(a, v))
    assert a.to_numpy().tobytes() == ordered.tobytes()
    assert same(v, expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(3, 200, 5), (1, 1, 1), (300, 2, 3), (2, 5000, 1), (2, 0, 3), (1, 70_000, 1)])
def test_along_an_axis(rng, place, axis, shape):
    x = rng.integers(-100, 100, shape).astype(np.int32)
    v = rng.random(shape)
    order = np.argsort(x, axis, kind="stable")
    assert same(al.sort(place(x), axis=axis), np.sort(x, axis))
    assert same(al.argsort(place(x), axis=axis), order)
    keys, values = al.sort_pairs(place(x), place(v), axis=axis)
    assert same(keys, np.sort(x, axis))
    assert same(values, np.take_along_axis(v, order, axis))
    assert same(al.sort(place(x), axis=axis, descending=True), -np.sort(-x, axis))


@pytest.mark.parametrize("n", [0, 1, 100, 40_000])
@pytest.mark.parametrize("count", [1, 3, 300, 70_000])
@pytest.mark.parametrize("offsets", [np.int32, np.uint64])
def test_segments(rng, place, n, count, offsets):
    x = numbers(rng, np.float32, n)
    v = rng.integers(0, 100, n)
    ends = np.sort(rng.integers(0, n + 1, count + 1))
    ends[0], ends[-1] = 0, n
    order = np.concatenate([a + stable(x[a:b]) for a, b in itertools.pairwise(ends) if b > a] or [[]])
    order = order.astype(np.int64)
    given = place(ends.astype(offsets))
    assert same(al.sort(place(x), segments=given), x[order])
    assert same(al.argsort(place(x), segments=given), order)
    assert same(al.sort_pairs(place(x), place(v), segments=given)[1], v[order])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: al.sort([3, 1]), "x|keys"),
        (lambda x: al.sort(x, axis=1), "sort: an array with 1 axes has no axis 1"),
        (lambda x: al.sort(qp.ndarray(qp.f32, ())), "an array with 0 axes has no axis -1"),
        (lambda x: al.sort(x, out=qp.ndarray(qp.f64, 10)), "out takes an array of f32, not of f64"),
        (lambda x: al.sort(x, out=qp.ndarray(qp.f32, 11)), r"out takes an array of shape \(10,\), not \(11,\)"),
        (lambda x: al.sort_pairs(x, qp.ndarray(qp.f32, 9)), r"values of shape \(9,\) do not fit keys of shape \(10,\)"),
        (lambda x: al.sort_pairs(x, x, out=x), "out takes a tuple of two arrays"),
        (lambda x: al.sort_pairs(x, x, out=(x, x)), "the two arrays of out overlap"),
        (lambda x: al.sort(x, segments=x), "segments takes an array of integers"),
        (lambda x: al.sort(x, segments=qp.ndarray(qp.i32, 0)), "segments takes an array of integers"),
        (lambda x: al.sort(qp.ndarray(qp.f32, (2, 3)), segments=qp.ndarray(qp.i32, 2)), "keys with one axis, not 2"),
        (lambda x: al.argsort(x, out=x), "out takes an array of integers, not of f32"),
        (lambda x: al.sort(x, scratch=qp.ndarray(qp.u8, 10)), "scratch has 10 bytes, but this call needs"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(qp.ArgumentError, match=message):
        call(qp.ndarray(qp.f32, 10))
