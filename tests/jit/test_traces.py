"""How often a kernel is traced: once for its code and for what watches its calls, again where it may have changed."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import quadpy as qp
from quadpy.jit import compiler

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@pytest.fixture
def traces(monkeypatch):
    """The names of the kernels that are traced, in order; no code is on the disk."""
    found, own = [], compiler.trace_kernel

    def counted(source, *args, **options):
        found.append(source.name)
        return own(source, *args, **options)

    monkeypatch.setattr(compiler, "trace_kernel", counted)
    monkeypatch.setattr(compiler, "load_code", lambda digest: None)
    monkeypatch.setattr("quadpy.jit.compilation._index_key", lambda request: None)
    return found


def test_what_watches_a_call_traces_it_no_second_time(traces):
    @qp.kernel
    def add(x: F32):
        for i in x:
            x[i] += 1.0

    x = qp.ndarray(qp.f32, 8)
    with qp.hazards.check():
        add(x)
        add(x)
    assert traces == ["add"]
    with qp.graph.capture() as graph:
        add(x)
    graph.instantiate().launch()
    assert (traces, x.to_numpy().tolist()) == (["add"], [3.0] * 8)


def test_a_kernel_of_long_ago_is_traced_again(traces):
    def made(number):
        @qp.kernel
        def add(x: F32):
            for i in x:
                x[i] += number

        return add

    x, adds = qp.ndarray(qp.f32, 8), [made(float(k)) for k in range(12)]
    for add in adds:
        add(x)
    with qp.hazards.check():
        adds[0](x)
    assert len(traces) == 13
    assert x.to_numpy()[0] == sum(range(12))


def test_what_python_computes_while_compiling_is_computed_again(traces):
    numbers = iter(range(100))

    @qp.kernel
    def add(x: F32):
        for i in x:
            x[i] += qp.static(next(numbers) * 0 + 1.0)

    x = qp.ndarray(qp.f32, 8)
    with qp.hazards.check():
        add(x)
    assert len(traces) > 1
    assert x.to_numpy()[0] == 1.0


def filled():
    field = qp.field(qp.f32, 1000)

    @qp.kernel
    def fill():
        for i in field:
            field[i] = 1.0

    fill()
    assert np.all(field.to_numpy() == 1.0)
    return weakref.ref(field)


def test_kernels_that_are_kept_keep_no_field():
    field = filled()
    gc.collect()
    assert field() is None
