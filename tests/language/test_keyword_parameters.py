"""Parameters after ``*`` are given by keyword, in every kind of call."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

pytestmark = pytest.mark.usefixtures("arch")


@qp.kernel
def scale(x: qp.Array1D[qp.f32], *, by: qp.f32, offset: qp.f32 = 1.0):
    for i in x:
        x[i] = x[i] * by + offset


@qp.kernel
def scale_gradient(x: qp.Template, *, by: qp.f32):
    for i in x:
        x.grad[i] = x[i] * by


@qp.data_oriented
class Scaled:
    def __init__(self, n):
        self.x = qp.field(qp.f32, n)

    @qp.kernel
    def fill(self, *, value: qp.f32):
        for i in self.x:
            self.x[i] = value


@pytest.fixture
def x():
    x = qp.ndarray(qp.f32, 3)
    x.fill(2.0)
    return x


@pytest.mark.parametrize("calls", [1, 3])
def test_they_are_given_by_keyword(x, calls):
    for _ in range(calls):
        scale(x, by=3.0)
    expected = {1: 7.0, 3: 67.0}[calls]
    assert x.to_numpy().tolist() == [expected] * 3
    scale(by=0.0, offset=5.0, x=x)
    assert x.to_numpy().tolist() == [5.0] * 3


@pytest.mark.parametrize("calls_before", [0, 2])
def test_by_position_they_are_refused_and_nothing_runs(x, calls_before):
    for _ in range(calls_before):
        scale(x, by=1.0, offset=0.0)
    for args in ((x, 3.0), (x, 3.0, 1.0)):
        with pytest.raises(
            qp.ArgumentError,
            match=r"(?s)scale: too many positional arguments: it takes 1, not [23].*it takes x, by=..., offset=...",
        ):
            scale(*args)
        with pytest.raises(
            qp.ArgumentError,
            match=r"(?s)scale: too many positional arguments: it takes 1, not [23].*it takes x, by=..., offset=...",
        ):
            scale.prepare(*args)
    with pytest.raises(qp.ArgumentError, match="'by'"):
        scale(x)
    assert x.to_numpy().tolist() == [2.0] * 3


def test_methods_and_members_of_arguments():
    scaled = Scaled(3)
    scaled.fill(value=4.0)
    with pytest.raises(qp.ArgumentError, match="too many positional arguments: it takes 0, not 1"):
        scaled.fill(4.0)
    assert scaled.x.to_numpy().tolist() == [4.0] * 3
    field = qp.field(qp.f32, 3, needs_grad=True)
    field.fill(2.0)
    for by in (3.0, 4.0):
        scale_gradient(field, by=by)
        assert field.grad.to_numpy().tolist() == [2.0 * by] * 3


def test_graphs_and_replays(x):
    graph = qp.graph.Graph()
    node = graph.add_kernel(scale, x, by=2.0, offset=0.0)
    ready = graph.instantiate()
    ready.launch()
    ready.update(node.name, x, by=3.0, offset=0.0)
    ready.launch()
    qp.sync()
    assert x.to_numpy().tolist() == [12.0] * 3

    @qp.graph.replay
    def step(by):
        scale(x, by=by, offset=0.0)
        scale(x, by=1.0)

    for by in (1.0, 1.0, 2.0, 1.0):
        step(by)
    qp.sync()
    np.testing.assert_array_equal(x.to_numpy(), [((12.0 + 1 + 1) * 2 + 1) + 1] * 3)
