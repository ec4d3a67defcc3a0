"""Graphs that are pickled: what arrives does the same with the arrays that came along; what cannot travel says why."""

from __future__ import annotations

import contextlib
import pickle
import random
import re

import numpy as np
import pytest
import shared_kernels
from shared_kernels import Tank, raise_levels, scale_into, square, take_down

import quadpy as qp
from quadpy.core.public import frames_of, is_own_frame
from quadpy.errors import CaptureError, GraphError, NoDeviceError
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config


def here(arch):
    try:
        devices.open_device(arch)
    except NoDeviceError:
        return False
    return True


@pytest.fixture(params=[arch for arch in ("cpu", "amdgpu", "cuda") if here(arch)])
def arch(request):
    before = current_config()
    set_config(Config(arch=request.param))
    yield request.param
    set_config(before)


@qp.kernel
def transposed(f: qp.template()):
    for i, j in qp.ndrange(2, 2):
        if i < j:
            f[i, j], f[j, i] = f[j, i], f[i, j]


def numbers(*values):
    x = qp.ndarray(qp.f32, len(values))
    x.from_numpy(np.array(values, np.float32))
    return x


def sent(*things):
    return pickle.loads(pickle.dumps(things))


def launch(graph):
    with graph.instantiate() as x:
        x.launch()
        x.synchronize()


def shape_of(graph):
    return [(node.name, node.kind, node.after, node.derived, node.barrier, node.asked, node.span) for node in graph]


def check(graph, *arrays):
    """A pickled graph does to its own arrays what ``graph`` does to ``arrays``."""
    again, *copies = sent(graph, *arrays)
    assert shape_of(again) == shape_of(graph)
    for _ in range(2):
        launch(graph)
    after_ours = [array.to_numpy() for array in copies]
    for _ in range(2):
        launch(again)
    for array, copy, before in zip(arrays, copies, after_ours, strict=True):
        np.testing.assert_array_equal(copy.to_numpy(), array.to_numpy())
        assert not np.array_equal(before, array.to_numpy()), "the graph does nothing"
    return again


def test_a_graph_of_every_kind_of_node_that_travels(arch):
    x, y, level = numbers(1, 2, 3, 4), numbers(0, 0, 0, 0), qp.field(qp.f32, 4)
    inner = qp.graph.Graph()
    inner.add_kernel(square, y, name="inner")
    g = qp.graph.Graph()
    fork = g.add_empty(name="fork")
    one = g.add_kernel(scale_into, x, y, by=0.5, deps=[fork])
    g.add_memset(level, 3.0, deps=[fork], name="level")
    g.add_kernel(scale_into, level, x, deps=[one, "level"])
    g.add_child(inner)
    g.add_memcpy(level, x)
    g.add_memset(x, 0x3F, element=1, nbytes=3, rows=2, pitch=8)
    check(g, x, y, level)


def test_slices_travel(arch):
    first, last = numbers(1, 2, 3, 4)[1:3], numbers(5, 6, 7, 8)[2:]
    g = qp.graph.Graph()
    g.add_kernel(square, first)
    g.add_memcpy(last, first, nbytes=4)
    check(g, first, last)


def test_a_captured_graph_travels_with_its_arrays(arch):
    x, y = numbers(1, 2, 3, 4), numbers(4, 3, 2, 1)
    with qp.graph.capture() as g:
        x.fill(1.5)
        made = qp.ndarray(qp.f32, 4)
        scale_into(x, y=made, by=3.0)
        y.copy_from(made)
        y[1:3] = [7.0, -1.0]
        scale_into(made, y)
        made[0] = 8.0
    again = check(g, x, y, made)
    check(again)  # what arrived can be sent on


def test_arrays_of_numpy_travel_on_the_cpu():
    before = current_config()
    set_config(Config(arch="cpu"))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    g = qp.graph.Graph()
    g.add_kernel(scale_into, x, y)
    g.add_memcpy(x, y)
    again, x1, y1 = sent(g, x, y)
    launch(again)
    np.testing.assert_array_equal([x1, y1, x, y], [[2] * 4, [2] * 4, [1] * 4, [0] * 4])
    set_config(before)


def test_methods_travel_with_their_object(arch):
    tank, x = Tank(), numbers(1, 2, 3, 4)
    g = qp.graph.Graph()
    g.add_memset(tank.level, 1.0)
    g.add_kernel(tank.fill, x)
    again, there = sent(g, tank)
    launch(again)
    np.testing.assert_array_equal(there.level.to_numpy(), [2, 3, 4, 5])
    np.testing.assert_array_equal(tank.level.to_numpy(), 0)


def test_functions_of_the_host_travel(arch):
    log, x = [], numbers(1, 2)
    g = qp.graph.Graph()
    g.add_kernel(square, x)
    g.add_host(take_down, log, reads=[x])
    again, theirs = sent(g, log)
    launch(again)
    assert (log, theirs) == ([], [0])
    assert again["take_down"].after == ("square",)


def test_a_graph_that_arrived_goes_on(arch):
    """Later nodes are ordered after those that touch the same memory, and names stay unique."""
    x, y = numbers(1, 2), numbers(1, 2)
    g = qp.graph.Graph()
    g.add_kernel(square, x)
    again, x1, y1 = sent(g, x, y)
    assert again.add_kernel(square, x1).name == "square.1"
    assert again["square.1"].after == ("square",)
    assert again.add_kernel(square, y1).after == ()
    with again.instantiate() as launchable:
        launchable.update("square", y1)
        launchable.launch()
        launchable.synchronize()
    np.testing.assert_array_equal([x1.to_numpy(), y1.to_numpy()], [[1, 4], [1, 16]])


@pytest.fixture
def levels(arch, monkeypatch):
    """The field that ``raise_levels`` names, on this device."""
    monkeypatch.setattr(shared_kernels, "LEVELS", qp.field(qp.f32, 4))
    return shared_kernels.LEVELS


def test_a_kernel_that_names_a_field_has_that_of_the_other_process(levels):
    x = numbers(1, 2, 3, 4)
    levels.fill(0.0)
    g = qp.graph.Graph()
    g.add_kernel(raise_levels, x)
    launch(sent(g)[0])  # in this process it is the same one
    np.testing.assert_array_equal(levels.to_numpy(), [1, 2, 3, 4])


def address(g, x):
    g.add_memcpy(x, x.pointer + 8, nbytes=8)


def event(g, x):
    g.add_event_record(qp.create_event())


def allocation(g, x):
    g.add_alloc(64)


def prepared(g, x):
    g.add_kernel(square.prepare(x))


def named(g, x):
    g.add_kernel(raise_levels, x)
    g.add_memset(shared_kernels.LEVELS, 0.0)


def gradient(g, x):
    y = qp.ndarray(qp.f32, 4, needs_grad=True)
    g.add_kernel(scale_into, x, y)
    g.add_memset(y.grad, 0.0)


def column_major(g, x):
    f = qp.field(qp.f32, (2, 2), order="ji")
    with qp.graph.capture() as inner:
        transposed(f)
        f.fill(1.0)  # wherever it is, all of it is 1
        f[0, 1] = 2.0
    g.add_child(inner)


def unknown(g, x):
    with qp.graph.capture() as inner:
        x.fill(0.0)
    g.add_child(inner)


def inside(g, x):
    inner = qp.graph.Graph()
    event(inner, x)
    g.add_child(inner)


REFUSED = {
    address: ("'memcpy': it was made with an address", "add_memcpy(x, x.pointer"),
    event: ("'event_record': a node of kind event_record belongs to this process", "add_event_record"),
    allocation: ("'alloc': a node of kind alloc belongs", "add_alloc"),
    prepared: ("'square(, square_t0)?': its launches were prepared", "add_kernel(square.prepare"),
    named: ("'raise_levels': it names .*field.*, which another node has as an argument", "add_kernel(raise_levels"),
    gradient: ("ndarray.* and ndarray.*, which share memory", ""),
    column_major: ("'memset.1': it touches bytes of .*another order of axes", "f[0, 1] = 2.0"),
    unknown: ("'memset': it uses memory that no kernel of the graph takes as an argument", "x.fill(0.0)"),
    inside: ("'event_record': a node of kind event_record", "add_event_record"),
}


@pytest.mark.parametrize("build", REFUSED, ids=lambda each: each.__name__)
def test_what_cannot_travel_says_why_and_where(levels, build):
    words, line = REFUSED[build]
    g = qp.graph.Graph()
    x = numbers(1, 2, 3, 4)
    build(g, x)
    with pytest.raises(GraphError, match=words) as caught:
        pickle.dumps(g)
    assert "the graph cannot be pickled" in str(caught.value)
    assert line in str(caught.value)
    assert "qp.graph.replay" in caught.value.hint
    own = [frame for frame in frames_of(caught.value.__traceback__) if is_own_frame(frame)]
    assert len(own) == 1


def test_views_of_one_array_do_not_become_two():
    before = current_config()
    set_config(Config(arch="cpu"))
    x = np.ones(8, np.float32)
    g = qp.graph.Graph()
    g.add_kernel(scale_into, x[:4], x[4:])
    sent(g)  # no byte is in both
    g.add_kernel(square, x[2:6])
    with pytest.raises(GraphError, match=re.escape("an array of shape (4,) and an array of shape (4,), which share")):
        pickle.dumps(g)
    set_config(before)


def test_a_graph_that_is_not_complete(arch):
    with qp.graph.capture() as g, pytest.raises(CaptureError, match="being captured"):
        pickle.dumps(g)
    with contextlib.suppress(ZeroDivisionError), qp.graph.capture() as g:
        _ = 1 / 0
    with pytest.raises(CaptureError, match="aborted"):
        pickle.dumps(g)


def test_an_executable_graph_says_to_pickle_its_graph(arch):
    g = qp.graph.Graph()
    g.add_kernel(square, numbers(1, 2))
    with g.instantiate() as x, pytest.raises(GraphError, match="cannot be pickled") as caught:
        pickle.dumps(x)
    assert "pickle its Graph" in caught.value.hint


def random_graph(rng, arrays, depth=1):
    g = qp.graph.Graph()
    for _ in range(rng.randint(1, 7)):
        a, b = rng.sample(arrays, 2)
        match rng.randrange(6 if depth else 5):
            case 0:
                made = g.add_kernel(square, a)
            case 1:
                made = g.add_kernel(scale_into, a, b, rng.choice([0.5, -1.0]))
            case 2:
                made = g.add_memcpy(a, b)
            case 3:
                made = g.add_memset(a, rng.choice([0.0, 1.5]))
            case 4:
                made = g.add_empty(deps=rng.sample(list(g), rng.randint(0, len(g))))
            case _:
                made = g.add_child(random_graph(rng, arrays, depth - 1))
        assert made in g
    return g


def test_graphs_at_random(arch, request):
    for seed in range(4 * request.config.getoption("--random-graphs")):
        rng = random.Random(seed)
        arrays = [numbers(*(rng.uniform(-1, 1) for _ in range(5))) for _ in range(3)]
        g = random_graph(rng, arrays)
        again, copies = sent(g, arrays)
        assert shape_of(again) == shape_of(g), seed
        for graph in (g, again, again, g):
            launch(graph)
        for ours, theirs in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(ours.to_numpy(), theirs.to_numpy(), err_msg=str(seed))
