"""Writes to fields and copies of fields during a capture, for every layout of the fields."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import CaptureError


def plain(*shape):
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


def launched(g, *fields):
    with g.instantiate() as run:
        for _ in range(2):
            for f in fields:
                f.fill(0)
            run.launch()
    return [f.to_numpy().tolist() for f in fields]


@pytest.mark.parametrize("options", [{"order": "ij"}, {"order": "ji"}], ids=str)
def test_numbers_of_a_field_are_one_copy(here, options):
    f = qp.field(qp.f64, shape=(100, 100), **options)
    with qp.graph.capture() as g:
        f.from_numpy(plain(100, 100))
    assert [node.kind for node in g] == ["memcpy"]
    assert launched(g, f) == [plain(100, 100).tolist()]


def test_three_axes_in_another_order(here):
    f = qp.field(qp.i32, shape=(5, 1, 7), order="kij")
    with qp.graph.capture() as g:
        f.from_numpy(plain(5, 1, 7).astype(np.int32))
        f[4, 0, 6] = -1
    assert len(g) == 2
    expected = plain(5, 1, 7)
    expected[4, 0, 6] = -1
    assert launched(g, f) == [expected.tolist()]


@pytest.mark.parametrize("layout", qp.Layout, ids=str)
def test_vectors_in_another_order(here, layout):
    f = qp.Vector.field(3, qp.f32, shape=(8, 50), order="ji", layout=layout)
    g_ = qp.Vector.field(3, qp.f32, shape=(8, 50), order="ji", layout=layout)
    with qp.graph.capture() as g:
        f.from_numpy(plain(8, 50, 3))
        g_.copy_from(f)
        f.fill(qp.Vector([1.0, 2.0, 0.1]))
    assert len(g) == 3
    assert launched(g, f, g_) == [np.full((8, 50, 3), [1, 2, 0.1], np.float32).tolist(), plain(8, 50, 3).tolist()]


@pytest.mark.parametrize("value", [2.0, 0.1])
def test_a_fill_in_another_order(here, value):
    f = qp.field(qp.f64, shape=(100, 100), order="ji")
    with qp.graph.capture() as g:
        f.fill(value)
    assert len(g) == 1
    assert launched(g, f) == [np.full((100, 100), value).tolist()]


def test_a_copy_between_orders_is_as_many_nodes_as_runs(here):
    rows, columns = qp.field(qp.i32, shape=(4, 6)), qp.field(qp.i32, shape=(4, 6), order="ji")
    rows.from_numpy(plain(4, 6).astype(np.int32))
    with qp.graph.capture() as g:
        columns.copy_from(rows)
    assert len(g) == 24
    with g.instantiate() as run:
        run.launch()
    assert columns.to_numpy().tolist() == plain(4, 6).tolist()


def interleaved(n, m=1):
    x, y = qp.field(qp.f32, name="x"), qp.field(qp.f32, name="y")
    qp.root.dense(qp.i, n).dense(qp.i, m).place(x, y) if m > 1 else qp.root.dense(qp.i, n).place(x, y)
    return x, y


def test_few_numbers_of_interleaved_fields(here):
    x, y = interleaved(8)
    with qp.graph.capture() as g:
        x.from_numpy(plain(8))
        y.fill(3)
        y[0] = 4
    assert launched(g, x, y) == [plain(8).tolist(), [4.0, *[3.0] * 7]]
    with qp.graph.capture() as g:
        y.copy_from(x)
    x.from_numpy(plain(8))
    with g.instantiate() as run:
        run.launch()
    assert (y.to_numpy().tolist(), x.to_numpy().tolist()) == (plain(8).tolist(), plain(8).tolist())


def test_many_numbers_of_interleaved_fields_are_refused(here):
    x, y = interleaved(10_000)
    for attempt in (lambda: x.from_numpy(plain(10_000)), lambda: x.fill(1), lambda: x.copy_from(y)):
        with pytest.raises(CaptureError, match=r"the field 'x', whose numbers form 10000 separate pieces") as raised:  # noqa: SIM117 - one line would be too long
            with qp.graph.capture():
                attempt()
        assert "kernel" in str(raised.value)
        assert __file__ in str(raised.value)
    x.fill(1)
    assert not y.to_numpy().any()
