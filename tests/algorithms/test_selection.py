"""Selection, runs, histograms, permutations."""

from __future__ import annotations

import numpy as np
import pytest
from numbers_of_tests import ALL, LENGTHS, numbers, same

import quadpy as qp

al = qp.algorithms


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_select_and_partition(rng, place, dtype, n, share):
    x, flags = numbers(rng, dtype, n), rng.random(n) < share
    values, count = al.select(place(x), place(flags))
    assert count[None] == flags.sum()
    assert values.to_numpy()[: count[None]].tobytes() == x[flags].tobytes()
    values, count = al.partition(place(x), place(flags.astype(np.int32) * 6))
    assert count[None] == flags.sum()
    assert values.to_numpy().tobytes() == np.concatenate([x[flags], x[~flags]]).tobytes()


def test_what_does_not_fit_is_counted(place):
    out, count = qp.ndarray(qp.i32, 3), qp.ndarray(qp.i64, ())
    found = al.select(place(np.arange(10, dtype=np.int32)), place(np.ones(10, np.bool_)), out=out, count=count)
    assert found == (out, count)
    assert (out.to_numpy().tolist(), count[None]) == ([0, 1, 2], 10)


def distinct(x):
    """As ``numpy.unique``, with the first of equal numbers."""
    ordered = x[np.argsort(x, kind="stable")]
    return ordered[heads(ordered)]


def heads(x):
    return np.concatenate([[True], ~((x[1:] == x[:-1]) | ((x[1:] != x[1:]) & (x[:-1] != x[:-1])))])[: len(x)]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", LENGTHS)
def test_unique(rng, place, dtype, n):
    x = np.repeat(numbers(rng, dtype, n), 3)[:n]
    values, count = al.unique_consecutive(place(x))
    assert values.to_numpy()[: count[None]].tobytes() == x[heads(x)].tobytes()
    values, count = al.unique(place(x))
    assert count[None] == len(np.unique(x))
    assert values.to_numpy()[: count[None]].tobytes() == distinct(x).tobytes()


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("repeated", [1, 7, 5000])
def test_run_lengths(rng, place, n, repeated):
    x = np.repeat(rng.integers(0, 3, n // repeated + 1), repeated)[:n]
    runs = al.run_length_encode(place(x))
    starts = np.flatnonzero(heads(x))
    count = runs.count[None]
    assert count == len(starts)
    assert same(runs.values.to_numpy()[:count], x[starts])
    assert runs.lengths.to_numpy()[:count].tolist() == np.diff(np.append(starts, n)).tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 100, 50_000])
@pytest.mark.parametrize("bins", [1, 10, 777, 5000])
def test_even_bins(rng, place, dtype, n, bins):
    x = (rng.random(n) * 200).astype(dtype)
    wide = x.astype(np.float64)
    counts, edges = al.histogram(place(x), bins)
    expected, at = np.histogram(wide, bins)
    assert np.array_equal(edges.to_numpy(), at)
    assert same(counts, expected)
    counts, edges = al.histogram(place(x), bins, (20, 120.5))
    assert same(counts, np.histogram(wide, bins, (20, 120.5))[0])
    counts, _ = al.histogram(place(x), bins, (50, 50))
    assert same(counts, np.histogram(wide, bins, (50, 50))[0])


def test_numbers_that_are_in_no_bin(place):
    x = np.array([np.nan, -np.inf, np.inf, 0, 1, 0.5, -1, 2], np.float32)
    counts, _ = al.histogram(place(x), 2, (0, 1))
    assert counts.to_numpy().tolist() == [1, 2]
    counts, edges = al.histogram(place(x), place(np.array([0, 0.5, 1])))
    assert counts.to_numpy().tolist() == [1, 2]
    assert edges.to_numpy().tolist() == [0, 0.5, 1]
    counts, edges = al.histogram(place(x[:0]), 4)
    assert counts.to_numpy().tolist() == [0] * 4
    assert edges.to_numpy().tolist() == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
@pytest.mark.parametrize("edges", [[0, 1], [-50, -3, 0, 0, 0, 17, 99], list(range(-100, 100))])
def test_given_edges(rng, place, dtype, edges):
    x = (rng.random(5000) * 200 - 100).astype(dtype)
    counts, _ = al.histogram(place(x), place(np.array(edges, dtype)))
    assert same(counts, np.histogram(x, np.array(edges, dtype))[0].astype(np.int64))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("length", [0, 1, 100, 70_000])
def test_counts_of_integers(rng, place, n, length):
    x = rng.integers(-5, 300, n).astype(np.int32)
    expected = np.bincount(x[(x >= 0) & (x < length)], minlength=length)
    assert same(al.bincount(place(x), length), expected.astype(np.int64))


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 70_001])
def test_permutations(n):
    order = al.permutation(n, seed=5).to_numpy()
    assert np.array_equal(np.sort(order), np.arange(n))
    assert same(al.permutation(n, seed=5), order)
    assert n < 3 or not np.array_equal(al.permutation(n, seed=6).to_numpy(), order)


def test_permutations_are_the_same_on_every_target():
    """The values are part of the version."""
    assert al.permutation(12, seed=1).to_numpy().tolist() == PERMUTATION
    assert al.permutation(12, seed=1 + 2**64).to_numpy().tolist() == PERMUTATION


PERMUTATION = [7, 4, 8, 1, 2, 6, 10, 11, 5, 0, 9, 3]


def test_every_permutation_comes_as_often():
    found = np.zeros((6, 6), np.int64)
    rounds = 600
    for seed in range(rounds):
        found[np.arange(6), al.permutation(6, seed=seed).to_numpy()] += 1
    expected = rounds / 6
    assert ((found - expected) ** 2 / expected).sum() < 60  # 25 degrees of freedom: below 1 in 10,000


def test_shuffles_move_rows(rng, place):
    x = rng.random((500, 3)).astype(np.float32)
    order = al.permutation(500, seed=9).to_numpy()
    assert same(al.shuffle(place(x), seed=9), x[order])
    flags = rng.random(100) < 0.5
    assert al.shuffle(place(flags), seed=1).to_numpy().sum() == flags.sum()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: al.select(x, qp.ndarray(qp.u1, 9)), "flags takes 10 truth values or integers"),
        (lambda x: al.select(x, x), "flags takes 10 truth values or integers"),
        (lambda x: al.select(x, qp.ndarray(qp.u1, 10), out=x), "out and x overlap"),
        (lambda x: al.partition(x, qp.ndarray(qp.u1, 10), out=qp.ndarray(qp.f32, 5)), r"shape \(10,\), not \(5,\)"),
        (lambda x: al.unique(x, out=qp.ndarray(qp.f64, 10)), "out takes an array of f32, not of f64"),
        (lambda x: al.unique(x, count=qp.ndarray(qp.i32, ())), "count takes an array of i64, not of i32"),
        (lambda x: al.histogram(x, 0), "at least 1 bin, not 0"),
        (lambda x: al.histogram(x, 3, (1, 0)), "two finite numbers, the lower one first"),
        (lambda x: al.histogram(x, 3, (0, float("inf"))), "two finite numbers"),
        (lambda x: al.histogram(x, 3, 5), "range takes two numbers, not 5"),
        (lambda x: al.histogram(x, qp.ndarray(qp.f32, 1)), "an array of at least 2 edges"),
        (lambda x: al.histogram(x, qp.ndarray(qp.f32, 3), (0, 1)), "range is for bins of the same width"),
        (lambda x: al.bincount(x, 5), "bincount: x takes an array of integers, not of f32"),
        (lambda x: al.bincount(qp.ndarray(qp.i32, 3), -1), "length takes a number of counts, not -1"),
        (lambda x: al.permutation(-1), "n takes a number of elements, not -1"),
        (lambda x: al.permutation(300, dtype=qp.u8), "an integer type in which 299 fits, not u8"),
        (lambda x: al.permutation(3, seed=0.5), "seed takes an integer, not 0.5"),
        (lambda x: al.shuffle(x, out=x), "out and x overlap"),
        (lambda x: al.shuffle(qp.ndarray(qp.f32, ())), "an array without axes has no order"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(qp.ArgumentError, match=message):
        call(qp.ndarray(qp.f32, 10))
