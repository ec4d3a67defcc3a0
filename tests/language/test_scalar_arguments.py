"""Numbers and vectors by value: what is taken, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.dtypes import SCALARS

A = qp.types.ndarray


def echo(load, t):
    return load(f"@qp.kernel\ndef echo(x: qp.{t}) -> qp.{t}:\n    return x\n").echo


@pytest.mark.parametrize("t", SCALARS, ids=str)
def test_numbers_of_every_type(load, t):
    kernel = echo(load, t)
    values = [0, 1, True] if t == qp.u1 else [0.0, -1.5, 2, math.inf, True] if t.is_float else [t.min_int, 0, t.max_int]
    for value in values:
        assert kernel(value) == value
        assert type(kernel(value)) is (bool if t == qp.u1 else float if t.is_float else int)
    assert kernel(np.int8(1)) == 1
    assert kernel(np.float64(1.0)) == 1


@pytest.mark.parametrize("t", [t for t in SCALARS if t.kind in ("int", "uint")], ids=str)
def test_integers_that_do_not_fit(load, t):
    kernel = echo(load, t)
    for value in (t.min_int - 1, t.max_int + 1, 10**30):
        with pytest.raises(qp.ArgumentError, match=f"{value} does not fit {t}"):
            kernel(value)
    with pytest.raises(qp.ArgumentError, match="takes an integer"):
        kernel(1.5)
    assert kernel(2.0) == 2


def test_floats_are_rounded(load):
    assert echo(load, qp.f32)(0.1) == np.float32(0.1)
    assert echo(load, qp.f16)(0.1) == np.float16(0.1)
    assert echo(load, qp.f32)(1e300) == math.inf
    assert math.isnan(echo(load, qp.bf16)(math.nan))
    assert echo(load, qp.f64)(2**53) == 2.0**53


@pytest.mark.parametrize("t", ["u1", "i32", "f16", "f32", "f64"])
@pytest.mark.parametrize("value", ["1", None, [1], 1j, {}, object()], ids=lambda value: type(value).__name__)
def test_what_is_no_number(load, t, value):
    with pytest.raises(qp.ArgumentError, match="x takes a number"):
        echo(load, t)(value)


@qp.kernel
def defaults(a: int, b: float, c: bool, d: qp.i64 = 7, *, e: qp.f64 = 0.5) -> qp.f64:
    return a * 1000.0 + b + c + d + e


def test_defaults_and_keywords():
    assert defaults(1, 2.0, True) == 1010.5
    assert defaults(c=False, b=1, a=0, e=0.25) == 8.25
    assert defaults(0, 0, c=0, d=100) == 100.5


vec2 = qp.types.vector(2, qp.f32)
mat2 = qp.types.matrix(2, 2, qp.i16)


@qp.kernel
def by_value(v: vec2, m: mat2) -> vec2:
    v.x += 1.0
    return v * m[1, 0] + m[0, 1]


@pytest.mark.parametrize("v", [qp.Vector([1.0, 2.0]), [1, 2.0], (1.0, 2), np.array([1, 2])], ids=repr)
def test_vectors_and_matrices(v):
    assert by_value(v, [[0, 10], [3, 0]]).to_list() == [16.0, 16.0]


def test_vectors_that_do_not_fit():
    with pytest.raises(qp.ArgumentError, match=r"v takes shape \(2,\), not \(3,\)"):
        by_value([1, 2, 3], [[0, 1], [2, 3]])
    with pytest.raises(qp.ArgumentError, match="40000 does not fit i16"):
        by_value([1, 2], [[0, 40000], [2, 3]])


@qp.kernel
def assigned(n: qp.i32, x: A(qp.i32, 1)) -> qp.i32:
    n *= 2
    for i in x:
        x[i] = n
    n += 1
    return n


def test_a_parameter_may_be_assigned():
    x = np.zeros(3, np.int32)
    assert assigned(5, x) == 11
    assert x.tolist() == [10, 10, 10]


@pytest.mark.parametrize("t", [qp.f16, qp.bf16, qp.f32, qp.f64], ids=str)
def test_large_integers_are_rounded_once(load, t):
    kernel = load(
        f"@qp.kernel\ndef echo(x: qp.{t}, v: qp.types.vector(2, qp.{t})) -> tuple[qp.{t}, qp.{t}]:\n    return x, v[1]\n"
    ).echo
    digits = {qp.f16: 11, qp.bf16: 8, qp.f32: 24, qp.f64: 53}[t]
    for top in (14,) if t == qp.f16 else (60, 62, 100):
        half = 1 << (top - digits)  # of the unit in the last place
        for extra, units in ((half, 0), (half + 1, 2), (half - 1, 0), (3 * half, 4), (3 * half - 1, 2)):
            for given in ((1 << top) + extra, -(1 << top) - extra):
                want = ((1 << top) + units * half) * (1 if given > 0 else -1)
                assert kernel(given, [0, 0])[0] == want
                assert top > 62 or kernel(0, [0, given] if t != qp.f64 else [0, float(given)])[1] == want
    assert kernel(1 + 2.0**-8 + 2.0**-40, [0, 0])[0] == {qp.f16: 1 + 2.0**-8, qp.bf16: 1 + 2.0**-7,
                                                         qp.f32: 1 + 2.0**-8}.get(t, 1 + 2.0**-8 + 2.0**-40)  # fmt: skip
    with pytest.raises(qp.ArgumentError, match="does not fit"):
        kernel(10**400, [0, 0])


def test_a_parameter_called_stream_is_refused_where_the_kernel_is_made(load):
    with pytest.raises(qp.KernelSyntaxError, match="cannot be named stream"):
        load("@qp.kernel\ndef kernel(x: qp.i32, stream: qp.i32):\n    pass\n")
    assert load("@qp.kernel\ndef kernel(self: qp.i32) -> qp.i32:\n    return self\n").kernel(self=3) == 3
