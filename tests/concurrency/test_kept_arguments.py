"""While one thread captures, calls of kernels note their arguments: no longer than the call."""

from __future__ import annotations

import threading
import weakref

import pytest
from shared_kernels import square

import quadpy as qp
from quadpy.errors import CaptureError


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def total(x: qp.types.ndarray(dtype=qp.f32, ndim=1)) -> qp.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


def test_a_thread_that_does_not_capture_keeps_no_array_of_its_last_call():
    x, kept = qp.ndarray(qp.f32, 8), []

    def call():
        y = qp.ndarray(qp.f32, 8)
        square(y)
        there = weakref.ref(y)
        del y
        kept.append(there())

    with qp.graph.capture() as graph:
        square(x)
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert kept == [None]
    assert len(graph) == 1


def test_a_call_that_cannot_be_captured_is_not_kept():
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    total(x)
    there = weakref.ref(y)
    with pytest.raises(CaptureError), qp.graph.capture():
        total(y)
    del y
    assert there() is None


def test_what_is_captured_can_still_be_changed_by_its_arguments():
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    with qp.graph.capture() as graph:
        square(x)
        square(x)
    x.fill(2.0)
    y.fill(3.0)
    with graph.instantiate() as run:
        run.update(run.nodes[1].name, y)
        run.launch()
        qp.sync()
    assert (x.to_numpy() == 4).all()
    assert (y.to_numpy() == 9).all()
