"""Components of elements that a run-time number names: one store, to the right place, and to none out of range."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.ir import nodes as ir
from quadpy.ir.passes.choose_components import choose_components
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

VECTORS = qp.types.ndarray(qp.types.vector(3, qp.f64), 1)
MATRICES = qp.types.ndarray(qp.types.matrix(2, 3, qp.i32), 1)
NUMBERS = qp.types.ndarray(qp.i32, 1)
P = qp.types.struct(mass=qp.f32, v=qp.types.vector(3, qp.f32))


@qp.kernel
def one_number(x: VECTORS, k: qp.i32):
    for i in x:
        x[i][k] = i + 1.0


@qp.kernel
def by_element(x: VECTORS, m: MATRICES, keys: NUMBERS):
    for i in x:
        x[i][keys[i]] = i + 1.0
        m[i][keys[i], 1] = i
        x[i][keys[i]] *= 2.0


@qp.kernel
def whole_rows(m: MATRICES, k: qp.u32):
    for i in m:
        m[i][k] = [i, i + 1, i + 2]


def stores(kernel, place=ir.Element):
    made = choose_components(trace_for(kernel, {}).kernel)
    return [n.place for n in walk(made) if isinstance(n, ir.Store)]


def test_there_is_one_store():
    (place,) = stores(one_number)
    assert place.chosen is not None


@pytest.mark.parametrize("k", [0, 1, 2, 3, -1, -3, -4, 2**31 - 1])
@pytest.mark.parametrize("layout", ["ndarray", qp.Layout.AOS, qp.Layout.SOA])
def test_the_component_is_stored_and_nothing_else(k, layout, init):
    n = 37
    expected = np.full((n, 3), -1.0)
    if -3 <= k < 3:
        expected[:, k] = np.arange(1, n + 1)
    if layout == "ndarray":
        whole = np.full((n + 2, 3), -1.0)
        one_number(whole[1:-1], k)
        assert (whole[[0, -1]] == -1).all(), "out of range"
        found = whole[1:-1]
    else:
        field = qp.Vector.field(3, qp.f64, shape=n, layout=layout)
        field.fill(-1)

        @qp.kernel
        def of_field(k: qp.i32):
            for i in field:
                field[i][k] = i + 1.0

        of_field(k)
        found = field.to_numpy()
    np.testing.assert_array_equal(found, expected)


def test_numbers_that_differ(init):
    n = 50
    keys = np.random.default_rng(0).integers(-4, 5, n).astype(np.int32)
    x, m = np.zeros((n, 3)), np.full((n, 2, 3), -1, np.int32)
    by_element(x, m, keys)
    expected, rows = np.zeros((n, 3)), np.full((n, 2, 3), -1)
    for i, k in enumerate(keys):
        if -3 <= k < 3:
            expected[i, k] = 2 * (i + 1)
        if -2 <= k < 2:
            rows[i, k, 1] = i
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(m, rows)


def test_rows(init):
    m = np.zeros((5, 2, 3), np.int32)
    whole_rows(m, 1)
    assert m[:, 1].tolist() == [[i, i + 1, i + 2] for i in range(5)]
    assert not m[:, 0].any()


def test_strided_arrays_and_members(init):
    wide = np.zeros((20, 3))
    one_number(wide[::2], 2)
    assert wide[::2, 2].tolist() == [*range(1, 11)]
    assert not wide[1::2].any()
    assert not wide[:, :2].any()
    points = P.field(shape=4)

    @qp.kernel
    def members(k: qp.i32):
        for i in points:
            points[i].v[k] = i + 1.0

    members(1)
    assert points.v.to_numpy().tolist() == [[0, i + 1, 0] for i in range(4)]
    assert not points.mass.to_numpy().any()


wide = qp.types.matrix(3, 4, qp.i32)


@qp.func
def change_columns(m: qp.template(), i: qp.i32, j: qp.i32):
    m[:, j] *= 2
    m[1:, j] += [5, 6]
    m[i, 1:3] = [i, j]
    m[i, ::-1] = m[i, :]
    m[::2, j] = m[::2, j] + m[0:2, i]


def columns_by_numpy(m, i, j):
    m = m.copy()
    m[:, j] *= 2
    m[1:, j] += [5, 6]
    m[i, 1:3] = [i, j]
    m[i, ::-1] = m[i, :].copy()
    m[::2, j] = m[::2, j] + m[0:2, i]
    return m


@qp.kernel
def change_variable(m: wide, i: qp.i32, j: qp.i32) -> wide:
    change_columns(m, i, j)
    return m


@qp.kernel
def change_elements(x: qp.template(), y: qp.types.ndarray(qp.types.struct(n=qp.i32, m=wide), 1), i: qp.i32, j: qp.i32):
    for e in range(2):
        change_columns(x[e], i, j)
        change_columns(y[e].m, i, j)


def test_columns_and_parts_of_rows_that_are_chosen_at_run_time(init):
    start = np.arange(12, dtype=np.int32).reshape(3, 4)
    field = qp.Matrix.field(3, 4, qp.i32, 2, layout=qp.Layout.SOA)
    structs = qp.ndarray(qp.types.struct(n=qp.i32, m=wide), 2)
    for debug in (False, True):
        init(debug=debug)
        for i, j in [(0, 0), (-1, -1), (1, 3), (2, 1)]:
            expected = columns_by_numpy(start, i, j)
            np.testing.assert_array_equal(change_variable(qp.Matrix(start), i, j).to_numpy(), expected)
            field.from_numpy(np.stack([start, start]))
            structs.from_numpy({"n": np.zeros(2, np.int32), "m": np.stack([start, start])})
            change_elements(field, structs, i, j)
            for found in (field.to_numpy(), structs.to_numpy()["m"]):
                np.testing.assert_array_equal(found[1], expected)
    with pytest.raises(qp.KernelIndexError, match="index 4 of axis 1 is out of range"):
        change_variable(qp.Matrix(start), 0, 4)
    init()
    np.testing.assert_array_equal(change_variable(qp.Matrix(start), 0, 9).to_numpy()[1:], start[1:])
