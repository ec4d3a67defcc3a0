"""Reductions: sums, extremes, places, functions of users."""

from __future__ import annotations

import numpy as np
import pytest
from numbers_of_tests import ALL, LENGTHS, numbers, same

import quadpy as qp

al = qp.algorithms


@qp.func
def larger(a, b):
    return qp.max(a, b)


@qp.func
def plus(a, b):
    return a + b


@qp.func
def first(a, b):
    """Associative, not commutative: the left operand, unless it is 0."""
    return qp.select(a != 0, a, b)


def exact_sum(x):
    return np.add.reduce(x.astype(object)) if x.size else 0


@pytest.mark.parametrize("dtype", [d for d in ALL if np.dtype(d).kind in "biu"])
@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_integers_wrap_at_64_bits(rng, place, dtype, n):
    x = numbers(rng, dtype, n)
    total = al.reduce(place(x))
    assert total.shape == ()
    assert total.dtype == (qp.u64 if np.dtype(dtype).kind == "u" else qp.i64)
    assert (int(total[None]) - int(exact_sum(x))) % 2**64 == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_floats_are_close(rng, place, dtype, n):
    x = numbers(rng, dtype, n, special=False)
    total = al.reduce(place(x))
    assert total.dtype.name == f"f{np.dtype(dtype).itemsize * 8}"
    expected = x.astype(np.float64).sum()
    assert abs(float(total[None]) - expected) <= 4 * np.finfo(dtype).eps * (1 + abs(x.astype(np.float64)).sum())


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", [n for n in LENGTHS if n])
@pytest.mark.parametrize(("op", "expected"), [("min", np.fmin), ("max", np.fmax)])
def test_extremes_ignore_nans(rng, place, dtype, n, op, expected):
    x = numbers(rng, dtype, n)
    oracle = expected.reduce(x) if x.dtype.kind != "b" else getattr(np, op)(x)
    found = al.reduce(place(x), op).to_numpy()
    assert same(found, np.asarray(oracle, x.dtype))


@pytest.mark.parametrize("op", ["min", "max"])
def test_the_extreme_of_nans_is_a_nan(place, op):
    x = np.full(500, np.nan, np.float32)
    assert np.isnan(al.reduce(place(x), op)[None])
    assert np.isnan(al.reduce(place(x.reshape(5, 100)), op, axis=1).to_numpy()).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_functions_of_users(rng, place, n):
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    assert al.reduce(place(x), larger, identity=-(2**31))[None] == max(x, default=-(2**31))
    assert al.reduce(place(x), plus, identity=0, dtype=qp.i64)[None] == x.sum()


@pytest.mark.parametrize("n", LENGTHS)
def test_functions_need_not_be_commutative(rng, place, n):
    x = rng.integers(1, 1000, n).astype(np.int32) * (rng.random(n) < 0.01)
    x = x.astype(np.int32)
    nonzero = x[x != 0]
    assert al.reduce(place(x), first, identity=0)[None] == (nonzero[0] if nonzero.size else 0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(3, 200, 5), (1, 1, 1), (300, 2, 3), (4, 5000, 1), (2, 3, 131)])
def test_along_an_axis(rng, place, axis, shape):
    x = rng.integers(-100, 100, shape).astype(np.int32)
    y = rng.normal(size=shape).astype(np.float32)
    assert same(al.reduce(place(x), axis=axis), x.sum(axis, dtype=np.int64))
    assert same(al.reduce(place(y), "max", axis=axis), y.max(axis))
    assert np.allclose(al.reduce(place(y), axis=axis), y.sum(axis, dtype=np.float64), atol=1e-3)
    assert same(al.argmin(place(y), axis=axis), y.argmin(axis))
    assert same(al.argmax(place(x), axis=axis), x.argmax(axis))


def test_along_an_axis_without_numbers(place):
    x = np.zeros((3, 0, 2), np.float32)
    assert same(al.reduce(place(x), axis=1), np.zeros((3, 2), np.float32))
    assert al.reduce(place(x), axis=0).shape == (0, 2)
    with pytest.raises(qp.ArgumentError, match="an empty array has no min"):
        al.reduce(place(x), "min", axis=1)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", [n for n in LENGTHS if n])
def test_places(rng, place, dtype, n):
    x = numbers(rng, dtype, n)
    least = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    most = np.where(np.isnan(x), -np.inf, x) if x.dtype.kind == "f" else x
    if np.isnan(x.astype(np.float64)).all():
        assert al.argmin(place(x))[None] == al.argmax(place(x))[None] == 0
        return
    assert al.argmin(place(x))[None] == least.argmin()
    assert al.argmax(place(x))[None] == most.argmax()


@pytest.mark.parametrize("n", [4095, 4096, 4097, 8200])
def test_places_in_several_chunks(rng, n):
    x = np.full(n, np.nan, np.float32)
    assert al.argmin(x)[None] == al.argmax(x)[None] == 0
    x[n - 1] = np.inf  # the worst number, in the last chunk
    assert al.argmin(x)[None] == n - 1
    x[n - 2] = 5.0
    assert [al.argmin(x)[None], al.argmax(x)[None]] == [n - 2, n - 1]
    for dtype in (np.uint8, np.int64):
        y = rng.integers(0, 3, n).astype(dtype)
        assert [al.argmin(y)[None], al.argmax(y)[None]] == [y.argmin(), y.argmax()]
        y[:] = np.iinfo(dtype).max
        assert al.argmin(y)[None] == 0


def test_places_among_infinities_and_nans(place):
    x = np.array([np.nan, np.inf, np.nan, np.inf], np.float32)
    assert al.argmin(place(x))[None] == 1
    assert al.argmax(place(-x))[None] == 1
    assert al.argmin(place(x[None]), axis=1)[0] == 1


def test_of_all_axes(rng, place):
    x = rng.integers(0, 9, (7, 11, 3)).astype(np.int16)
    assert al.reduce(place(x))[None] == x.sum()
    assert al.argmax(place(x))[None] == x.argmax()


@pytest.mark.parametrize("n", [1000, 70001, 1 << 20])
def test_any_number_of_threads_gives_the_same_bits(rng, arch, n):
    x = rng.normal(size=n).astype(np.float32)
    found = set()
    for threads in (1, 2, 3):
        qp.init(arch=arch, cpu_max_num_threads=threads)
        a = qp.ndarray(qp.f32, n)
        a.from_numpy(x)
        sums = al.reduce(a), al.reduce(a, plus, identity=0.0), al.reduce(a, "mul")
        found.add(tuple(s.to_numpy().tobytes() for s in sums))
    qp.init(arch=arch, cpu_max_num_threads=2)
    assert len(found) == 1


def test_products(place):
    x = np.array([2, 3, -4, 5], np.int8)
    assert al.reduce(place(x), "mul")[None] == -120
    assert al.reduce(place(x.astype(np.float64)), "mul")[None] == -120.0


def test_type_and_place_of_the_result(place):
    x = np.full(100, 100, np.uint8)
    assert al.reduce(place(x), dtype=qp.u8)[None] == 10_000 % 256
    out = qp.ndarray(qp.f32, ())
    assert al.reduce(place(x), out=out) is out
    assert out[None] == 10_000.0
    one = qp.ndarray(qp.i32, 1)
    al.reduce(place(x), out=one)
    assert one[0] == 10_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: al.reduce(3), "x takes an array of numbers, not int"),
        (lambda x: al.reduce(None), "x takes an array of numbers, not NoneType"),
        (lambda x: al.reduce(x, "sub"), "'sub' is not an operator"),
        (lambda x: al.reduce(x, plus), "a function needs identity="),
        (lambda x: al.reduce(x, "add", identity=0), "'add' has its own identity"),
        (lambda x: al.reduce(x, axis=1), "an array with 1 axes has no axis 1"),
        (lambda x: al.reduce(x, axis="x"), "has no axis 'x'"),
        (lambda x: al.reduce(x, dtype="f32"), "dtype takes a scalar type"),
        (lambda x: al.reduce(x, out=qp.ndarray(qp.f32, 3)), r"out takes an array of shape \(\), not \(3,\)"),
        (lambda x: al.reduce(x, dtype=qp.f32, out=qp.ndarray(qp.f64, ())), "out takes an array of f32, not of f64"),
        (lambda x: al.reduce(qp.ndarray(qp.f32, 0), "max"), "an empty array has no max"),
        (lambda x: al.argmin(qp.ndarray(qp.f32, 0)), "argmin: an empty array has no such index"),
        (lambda x: al.reduce(qp.ndarray(qp.types.vector(3, qp.f32), 5)), "x takes an array of numbers"),
        (lambda x: al.reduce(x, scratch=3), "scratch takes a qp.ndarray on the device"),
        (lambda x: al.reduce(x, scratch=qp.ndarray(qp.u8, 1)), "scratch has 1 bytes, but this call needs"),
        (lambda x: al.reduce(x, stream=3), "stream"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(qp.QuadpyError, match=message):
        call(qp.ndarray(qp.f32, 10))
