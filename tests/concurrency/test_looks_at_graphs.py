"""Every look at a graph while another thread adds nodes to it, or a capture that fails removes them."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from shared_kernels import square

import quadpy as qp

NODES = 200
LOOKS = {
    "clone": lambda graph: graph.clone(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "iteration": list,
    "names": lambda graph: [node.name for node in graph],
    "len": lambda graph: range(len(graph)),
    "str": str,
    "repr": repr,
    "inspect": lambda graph: graph.inspect().nodes,
    "edges": lambda graph: graph.inspect().edges,
    "to_dot": lambda graph: graph.to_dot(),
    "picture": lambda graph: graph._repr_svg_(),
    "has_memory": lambda graph: graph.has_memory,
    "instantiate": lambda graph: graph.instantiate().nodes,
    "pickle": lambda graph: pickle.loads(pickle.dumps(graph)),
    "child": lambda graph: qp.graph.Graph().add_child(graph).nodes,
    "missing name": lambda graph: "nothing" in graph or graph["nothing"],
}
WITH_NODES = ("clone", "copy", "deepcopy", "iteration", "instantiate", "pickle", "child")


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def add_nodes(graph, x):
    for k in range(NODES):
        if k % 3 == 0:
            graph.add_empty(deps=[])
        elif k % 3 == 1:
            graph.add_memset(x, k)
        else:
            graph.add_kernel(square, x)


def look_once(look, graph, found, errors):
    try:
        found.append(look(graph))
    except qp.GraphError as error:
        assert "nothing" in str(error), error  # noqa: PT017 - the look that asks for a node that is not there
    except Exception as error:  # noqa: BLE001 - any is what must not happen
        errors.append(error)


def looked_at(graph, change, look):
    """What ``look`` returns and raises while ``change`` runs on another thread."""
    found, errors = [], []
    thread = threading.Thread(target=change)
    thread.start()
    while thread.is_alive() and not errors and len(found) < 400:
        look_once(look, graph, found, errors)
    thread.join()
    return found, errors


@pytest.mark.parametrize("what", LOOKS)
def test_while_another_thread_adds_nodes(what):
    x = qp.ndarray(qp.f32, 8)
    square(x)
    for _ in range(4):
        graph = qp.graph.Graph()
        found, errors = looked_at(graph, lambda graph=graph: add_nodes(graph, x), LOOKS[what])
        assert not errors, errors
        assert len(graph) == NODES
        names = [node.name for node in graph]
        for nodes in found if what in WITH_NODES else ():
            assert [node.name for node in nodes] == names[: len(list(nodes))]


@pytest.mark.parametrize("what", ["clone", "instantiate"])
def test_a_graph_with_memory_is_never_cloned_or_made_twice(what):
    """Whether it allocates is asked in the same step as its nodes are taken."""
    for _ in range(20):
        graph = qp.graph.Graph()

        def change(graph=graph):
            for _ in range(60):
                graph.add_empty(deps=[])
            graph.add_alloc(64)

        made = []
        thread = threading.Thread(target=change)
        thread.start()
        with contextlib.suppress(qp.GraphError):
            while True:
                made.append(LOOKS[what](graph))
        thread.join()
        if what == "clone":
            assert not any(other.has_memory for other in made)


def test_while_a_capture_records_and_fails():
    x = qp.ndarray(qp.f32, 8)
    square(x)
    for what in ("iteration", "names", "len", "str", "repr", "inspect", "edges", "to_dot", "has_memory"):
        seen, ready = [], threading.Event()

        def change(seen=seen, ready=ready):
            with contextlib.suppress(ZeroDivisionError), qp.graph.capture() as graph:
                seen.append(graph)
                ready.set()
                for _ in range(100):
                    square(x)
                raise ZeroDivisionError

        thread = threading.Thread(target=change)
        thread.start()
        ready.wait()
        while thread.is_alive():
            LOOKS[what](seen[0])
        thread.join()
        assert len(seen[0]) == 0


def test_a_clone_is_refused_while_its_graph_is_captured():
    x = qp.ndarray(qp.f32, 8)
    square(x)
    x.fill(4)
    errors = []

    def clone(graph):
        try:
            graph.clone()
        except qp.CaptureError as error:
            errors.append(error)

    with qp.graph.capture() as graph:
        square(x)
        thread = threading.Thread(target=clone, args=(graph,))
        thread.start()
        thread.join()
    assert len(errors) == 1
    graph.instantiate().launch()
    assert (np.asarray(x) == 16).all()
