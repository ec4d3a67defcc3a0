"""Arrays of the host are cast to the type of the array that takes them, with a warning, as in Taichi."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti
from quadpy.errors import ArgumentError


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu)


def _in_blocks(dtype):
    f = ti.field(dtype)
    ti.root.dense(ti.i, 2).dense(ti.ij, (1, 2)).place(f)
    return f


MAKERS = {
    "field": lambda dtype: ti.field(dtype, (2, 2)),
    "ndarray": lambda dtype: ti.ndarray(dtype, (2, 2)),
    "vectors": lambda dtype: ti.Vector.field(2, dtype, 2),
    "blocks": _in_blocks,
    "part": lambda dtype: qp.BufferView(ti.Vector.ndarray(2, dtype, 5), 1, 2),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_floats_are_cut_off(make):
    x = make(ti.i8)
    with pytest.warns(RuntimeWarning, match="an array of float64 is cast to i8, as in Taichi") as found:
        x.from_numpy(np.array([[1.0, -2.75], [3.5, 1000.0]]))
    assert x.to_numpy().tolist() == [[1, -2], [3, 127]]
    assert found[0].filename == __file__


def test_integers_that_do_not_fit_wrap():
    x = ti.field(ti.u8, 3)
    with pytest.warns(RuntimeWarning, match="int64 is cast to u8"):
        x.from_numpy(np.array([1, 257, -1]))
    assert x.to_numpy().tolist() == [1, 1, 255]


def test_members_of_structs_and_other_arrays():
    s, y = ti.types.struct(a=ti.i32, b=ti.f32).field(shape=2), ti.field(ti.f64, 2)
    y.from_numpy(np.array([1.5, 2.5]))
    with pytest.warns(RuntimeWarning, match="float64 is cast to i32"):
        s.from_numpy({"a": np.array([1.5, -2.5]), "b": np.array([1.5, -2.5])})
    with pytest.warns(RuntimeWarning, match="float64 is cast to i32"):
        s.a.copy_from(y)
    assert s.a.to_numpy().tolist() == [1, 2]
    assert s.b.to_numpy().tolist() == [1.5, -2.5]


def test_nothing_is_said_of_rounding_or_what_fits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype, values in ((ti.f32, np.ones(2)), (ti.i64, np.ones(2, np.int8)), (ti.f32, np.ones(2, np.int64)),
                              (ti.i32, np.ones(2, np.bool_))):  # fmt: skip
            x = ti.field(dtype, 2)
            x.from_numpy(values)
            assert x.to_numpy().tolist() == [1, 1]


def test_a_line_says_it_once():
    x = ti.field(ti.i32, 2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            x.from_numpy(np.ones(2))
    assert len(found) == 1


def test_quadpys_own_rule_is_stricter():
    qp.init(arch=qp.cpu)
    with pytest.raises(ArgumentError, match="would be truncated to i32"):
        qp.field(qp.i32, 2).from_numpy(np.ones(2))


def test_what_is_not_numeric_is_refused():
    with pytest.raises(ArgumentError, match="not numeric"):
        ti.field(ti.i32, 2).from_numpy(np.array(["a", "b"]))
