"""The type in which two operands meet: every pair of types, in arithmetic, in comparisons and in select."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import quadpy as qp
from quadpy.core.dtypes import SCALARS, promote
from quadpy.lang.arguments import Options, ScalarArg
from quadpy.lang.source import FunctionSource
from quadpy.lang.trace import trace_kernel

A = qp.types.ndarray

# Rows and columns in the order of NAMES; written out by hand from the rules of the language's reference.
NAMES = ["u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]
TABLE = """
u1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
i8   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
i16  i16  i16  i32  i64  i16  u16  u32  u64  f16  bf16 f32  f64
i32  i32  i32  i32  i64  i32  i32  u32  u64  f16  bf16 f32  f64
i64  i64  i64  i64  i64  i64  i64  i64  u64  f16  bf16 f32  f64
u8   u8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
u16  u16  u16  i32  i64  u16  u16  u32  u64  f16  bf16 f32  f64
u32  u32  u32  u32  i64  u32  u32  u32  u64  f16  bf16 f32  f64
u64  u64  u64  u64  u64  u64  u64  u64  u64  f16  bf16 f32  f64
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
MEET = {
    (row, column): cell
    for row, line in zip(NAMES, TABLE.split("\n")[1:-1], strict=True)
    for column, cell in zip(NAMES, line.split(), strict=True)
}
SCALAR = st.sampled_from(SCALARS)


@given(SCALAR, SCALAR)
def test_the_table_does_not_depend_on_order(a, b):
    assert promote(a, b) == promote(b, a)
    assert promote(a, b).name == MEET[a.name, b.name]


@given(SCALAR)
def test_a_type_meets_itself(t):
    assert promote(t, t) == t


def add(x, y):
    return x + y, qp.select(x == y, x, y)


@pytest.mark.parametrize("a", SCALARS, ids=str)
def test_operands_meet_as_the_table_says(a):
    for b in SCALARS:
        traced = trace_kernel(FunctionSource(add), {"x": ScalarArg(a), "y": ScalarArg(b)}, Options())
        total = "i32" if a.name == b.name == "u1" else MEET[a.name, b.name]
        assert [t.name for t in traced.kernel.results] == [total, MEET[a.name, b.name]]


@qp.kernel
def literals(b: qp.i8, u: qp.u8, h: qp.f16, d: qp.f64, y: A(qp.f64, 1)):
    y[0] = b + 100
    y[1] = u + 250
    y[2] = h + 1
    y[3] = d + 0.1
    tenth = 0.1
    y[4] = tenth
    y[5] = b * 2.5
    y[6] = -u
    y[7] = True + b


def test_literals_have_the_default_types_and_are_rounded_once():
    y = np.zeros(8)
    literals(100, 250, 2048.0, 1.0, y)
    assert y.tolist() == [200, 500, 2048, 1.0 + 0.1, float(np.float32(0.1)), 250, 6, 101]


@qp.kernel
def wraps(b: qp.i8, c: qp.i8, u: qp.u32, i: qp.i32, y: A(qp.i64, 1)):
    y[0] = b + c
    y[1] = u + i
    y[2] = i < u
    y[3] = b * c


def test_narrow_types_stay_narrow_and_mixed_signs_are_unsigned():
    y = np.zeros(4, np.int64)
    wraps(100, 100, 5, -6, y)
    assert y.tolist() == [-56, 2**32 - 1, 0, 16]
