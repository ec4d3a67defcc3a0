"""Fields and arrays as notebooks show them."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def numbered(array):
    array.from_numpy(np.arange(array.size, dtype=np.float32).reshape(array.shape))
    return array


@pytest.mark.parametrize("make", [qp.ndarray, qp.field], ids=["ndarray", "field"])
def test_a_small_array_has_all_its_values(make):
    html = numbered(make(qp.f32, (2, 3)))._repr_html_()
    assert html.startswith(f"<code>{make.__name__}(f32, shape=(2, 3))</code> 24 bytes<pre>")
    assert "[[0. 1. 2.]\n [3. 4. 5.]]" in html


@pytest.mark.parametrize("make", [qp.ndarray, qp.field], ids=["ndarray", "field"])
def test_of_a_large_array_a_corner_is_read(make, monkeypatch):
    array = numbered(make(qp.f32, (100, 200)))
    monkeypatch.setattr(type(array), "to_numpy", None)
    html = array._repr_html_()
    assert "80,000 bytes, the first 6 along each axis" in html
    assert "[1000. 1001. 1002. 1003. 1004. 1005.]]" in html


def test_an_offset_does_not_move_the_corner():
    field = qp.field(qp.f32, (100, 20), offset=(-5, 7))
    field[-5, 7], field[0, 12] = 3.0, 4.0
    html = field._repr_html_()
    assert "[[3. " in html
    assert "4.]]" in html


def test_structs_by_their_members():
    point = qp.types.struct(mass=qp.f32, x=qp.math.vec2)
    points = point.field(2)
    points[1] = point(2.0, [3.0, 4.0])
    html = points._repr_html_()
    assert "<pre>mass = [0. 2.]</pre>" in html
    assert "<pre>x = [[0. 0.]\n     [3. 4.]]</pre>" in html
    assert "first 6" in qp.ndarray(point, 5000)._repr_html_()


def test_what_has_no_values():
    assert qp.field(qp.f32)._repr_html_() == "<code>field(f32, shape=None)</code>"
    builder = qp.FieldsBuilder()
    gone = qp.field(qp.f32)
    builder.dense(qp.i, 4).place(gone)
    builder.finalize().destroy()
    assert "<pre>" not in gone._repr_html_()
    assert "[]" in qp.ndarray(qp.f32, (0, 3))._repr_html_()


def test_a_kernel_whose_text_is_gone():
    names = {"qp": qp}
    lines = ["@qp.kernel", "def gone(x):", "    'A <b> c.'"]
    exec("\n".join(lines), names)
    assert names["gone"]._repr_html_() == "<b>kernel</b> <code>gone(x)</code><p>A &lt;b&gt; c.</p>"
