"""fill: one element into all of an array, of any size and layout, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.memory import filling

SIZES = [0, 1, 5, 1000, 2049, 100_003, 800_001]
"""Below and above where fill takes other ways, with and without a rest."""


@pytest.fixture(autouse=True)
def on_the_host():
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [qp.f32, qp.f64, qp.u8, qp.bf16], ids=repr)
def test_vectors_and_matrices(n, dtype):
    v = qp.Vector.ndarray(3, dtype, shape=n)
    v.fill(qp.Vector([1, 2, 3]))
    assert (v.to_numpy() == [1, 2, 3]).all()
    v.fill(7)
    assert (v.to_numpy() == 7).all()
    m = qp.Matrix.ndarray(2, 2, dtype, shape=(3, n // 8))
    m.fill(qp.Matrix([[1, 2], [3, 4]]))
    assert (m.to_numpy() == [[1, 2], [3, 4]]).all()


@pytest.mark.parametrize("n", SIZES)
def test_only_what_is_asked_for(n):
    """Memory before and after the view keeps what it holds."""
    memory = np.arange(3 * n + 60, dtype=np.float32)
    view = memory[30 : 30 + 3 * n].reshape(n, 3)
    filling.fill(view, np.array([-1, -2, -3], np.float32))
    assert (view == [-1, -2, -3]).all()
    assert (memory[:30] == np.arange(30)).all()
    assert (memory[30 + 3 * n :] == np.arange(30 + 3 * n, 60 + 3 * n)).all()


@pytest.mark.parametrize("n", [1, 1000, 300_001])
def test_fields_that_lie_apart_or_among_others(n):
    apart = qp.Vector.field(3, qp.f32, shape=n, layout=qp.Layout.SOA)
    first, second = qp.Vector.field(2, qp.f32), qp.field(qp.f32)
    qp.root.dense(qp.i, n).place(first, second)
    second.fill(9.0)
    first.fill(qp.Vector([1.0, 2.0]))
    apart.fill(qp.Vector([1.0, 2.0, 3.0]))
    assert (apart.to_numpy() == [1, 2, 3]).all()
    assert (first.to_numpy() == [1, 2]).all()
    assert (second.to_numpy() == 9).all()


def test_one_number_in_a_large_array_and_an_array_without_axes():
    x, y = qp.ndarray(qp.i64, shape=300_007), qp.Vector.field(3, qp.f32, shape=())
    x.fill(-5)
    y.fill(qp.Vector([1.0, 2.0, 3.0]))
    assert (x.to_numpy() == -5).all()
    assert y.to_numpy().tolist() == [1, 2, 3]
