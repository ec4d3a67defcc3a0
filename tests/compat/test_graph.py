"""``ti.graph``: what Taichi's users build graphs of, over quadpy's own."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti
from quadpy.errors import ArgumentError

ARRAY, SCALAR, MATRIX = ti.graph.ArgKind.NDARRAY, ti.graph.ArgKind.SCALAR, ti.graph.ArgKind.MATRIX


@ti.kernel
def scale(x: ti.types.ndarray(ndim=1), a: ti.f32):
    for i in x:
        x[i] *= a


@ti.kernel
def shift(x: ti.types.ndarray(ndim=1), y: ti.types.ndarray(ndim=1), d: ti.math.vec2):
    for i in x:
        y[i] = x[i] + d.x - d.y


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu)


@pytest.fixture
def graph():
    """x *= a three times, then y = x + d.x - d.y."""
    x, y = (ti.graph.Arg(ARRAY, name, ti.f32, ndim=1) for name in "xy")
    a, d = ti.graph.Arg(SCALAR, "a", ti.f32), ti.graph.Arg(MATRIX, "d", ti.math.vec2)
    builder = ti.graph.GraphBuilder()
    part = builder.create_sequential()
    part.dispatch(scale, x, a)
    for _ in range(3):
        builder.append(part)
    builder.dispatch(shift, x, y, d)
    return builder.compile()


def array(*values):
    made = ti.ndarray(ti.f32, len(values))
    made.from_numpy(np.array(values, np.float32))
    return made


def test_calls_run_in_their_order(graph):
    x, y = array(1, 2), array(0, 0)
    graph.run({"x": x, "y": y, "a": 2.0, "d": [1, 3]})
    assert x.to_numpy().tolist() == [8, 16]
    assert y.to_numpy().tolist() == [6, 14]


def test_each_run_has_the_arguments_that_it_was_given(graph):
    """Other numbers, other arrays, a vector that changed in place, and the first ones again."""
    x, y, d = array(1, 2), array(0, 0), ti.Vector([1.0, 0.0])
    arguments = {"x": x, "y": y, "a": 2.0, "d": d}
    expected = np.array([1, 2], np.float32)
    for a, step in [(2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (-0.0, 5.0), (0.0, 5.0), (1, 5.0)]:
        d[0] = step
        graph.run({**arguments, "a": a})
        expected = expected * np.float32(a) ** 3
        assert x.to_numpy().tobytes() == expected.tobytes()
        assert y.to_numpy().tolist() == (expected + step).tolist()
    other = array(5, 6, 7)
    graph.run({**arguments, "x": other, "y": (z := array(0, 0, 0)), "a": 1.0})
    assert z.to_numpy().tolist() == [10, 11, 12]
    x.fill(1.0)
    graph.run({**arguments, "a": 2.0})
    assert y.to_numpy().tolist() == [13, 13]


def test_a_run_that_fails_changes_nothing(graph):
    x, y = array(1, 2), array(0, 0)
    good = {"x": x, "y": y, "a": 2.0, "d": [0, 0]}
    graph.run(good)
    with pytest.raises(ArgumentError):
        graph.run({**good, "a": 3.0, "d": [1, 2, 3]})
    graph.run(good)
    assert x.to_numpy().tolist() == [64, 128]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "argument 'x' is missing"),
        ({"z": 1}, "has no argument 'z'; it has x, a, y, d"),
        ({"x": "plane"}, "'x' has 1 axes, and this array has 2"),
    ],
)
def test_arguments_that_do_not_fit(graph, change, message):
    arguments = {"x": array(1), "y": array(0), "a": 1.0, "d": [0, 0]} | change
    if arguments["x"] == "plane":
        arguments["x"] = ti.ndarray(ti.f32, (2, 2))
    with pytest.raises(ArgumentError, match=message):
        graph.run({name: value for name, value in arguments.items() if value is not None})


def test_what_cannot_be_dispatched():
    builder, x = ti.graph.GraphBuilder(), ti.graph.Arg(ARRAY, "x")
    with pytest.raises(ArgumentError, match="len is not a kernel"):
        builder.dispatch(len, x)
    with pytest.raises(ArgumentError, match=r"scale: 2\.0 is not a ti\.graph\.Arg"):
        builder.dispatch(scale, x, 2.0)
    with pytest.raises(ArgumentError, match="scale: missing a required argument: 'a'"):
        builder.dispatch(scale, x)


def test_quadpys_own_graphs_have_the_same_name():
    assert ti.graph.capture is qp.graph.capture
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = ti.graph.no_such_name
