"""Plans hand out what their launches touch."""

from __future__ import annotations

import numpy as np
import pytest
from touches import touches_of

import quadpy as qp
from quadpy.ir.nodes import Access


@qp.kernel
def shift(x: qp.types.ndarray(qp.f32, ndim=1), y: qp.types.ndarray(qp.f32, ndim=1)):
    for i in range(1, x.shape[0]):
        y[i] = x[i - 1]
    for i in y:
        y[i] += 1.0


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


def test_each_launch_has_what_it_touches():
    x = np.zeros(8, np.float32)
    first, second = touches_of(shift, x, x.copy())
    assert {(t.footprint.array, t.footprint.access) for t in first} == {("x", Access.READ), ("y", Access.WRITE)}
    assert {(t.footprint.array, t.footprint.access) for t in second} == {("y", Access.READ), ("y", Access.WRITE)}
    lines = {t.footprint.location.line for t in first}
    assert lines == {shift.source.span.line + 3}
