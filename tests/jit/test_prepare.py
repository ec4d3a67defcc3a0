"""Launches that are made and not run: what graphs are built of."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.source import Span
from quadpy.errors import ArgumentError
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.drivers.graph_driver import EmptyWork, KernelWork
from quadpy.runtime.launch.launch import memory_range
from quadpy.runtime.memory.device_storage import zero_bytes
from quadpy.runtime.memory.placement import storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def twice(a: qp.f32, x: F32, y: F32):
    for i in x:
        if i < y.shape[0]:
            y[i] = a * x[i]
    for i in y:
        x[i] = y[i]


@qp.kernel
def total(n: qp.i32) -> qp.i32:
    found = 0
    for i in range(n):
        found += i
    return found


@qp.kernel
def swap(x: F32):
    qp.loop_config(block_dim=64)
    for i in x:
        held = x[i ^ 1]
        qp.simt.block.sync()
        x[i] = held


def array_on(device, n: int) -> NDArray:
    region = zero_bytes(device, 4 * n)
    return NDArray(qp.f32, (n,), (), storage_at(region, StridedLayout(0, np.dtype(np.float32), (n,), (4,))))


def test_nothing_is_submitted(device, plan_of, launches):
    x, y = array_on(device, 1000), array_on(device, 10)
    before = len(device.driver.calls)
    plan_of(twice.compile("gfx942")).prepare([2.0, *x.abi, *y.abi], [x, y])
    assert launches() == []
    assert {call.verb for call in device.driver.calls[before:]} <= {"module_load", "module_function"}


def test_each_task_is_one_launch_with_its_grid_and_block(device, plan_of):
    x, y = array_on(device, 1000), array_on(device, 0)
    made = plan_of(twice.compile("gfx942")).prepare([2.0, *x.abi, *y.abi], [x, y])
    first, second = made.launches
    assert (first.grid, first.block) == ((4, 1, 1), (256, 1, 1))
    assert second.grid == (1, 1, 1)  # no iterations: a node of a graph stays what it is
    assert first.arguments == second.arguments == struct.pack("@fQiQi", 2.0, *x.abi, *y.abi)
    assert made.flow == ()


@pytest.mark.parametrize(("size", "blocks"), [(0, 0), (64, 1), (128, 2)])
def test_whole_blocks_without_iterations_are_no_launch(device, plan_of, size, blocks):
    """They do not look whether there is an iteration for them."""
    x = array_on(device, size)
    prepared = plan_of(swap.compile("gfx942")).prepare([*x.abi], [x])
    assert prepared.launches[0].grid == (blocks, 1, 1)
    graph = qp.graph.Graph(device)
    graph.add_kernel(prepared)
    with graph.instantiate():
        (work,) = [call.arguments[2] for call in device.driver.calls if call.verb == "graph_add"]
    assert isinstance(work, KernelWork if blocks else EmptyWork)


def test_what_a_task_reads_and_writes_is_told_apart(device, plan_of):
    x, y = array_on(device, 1000), array_on(device, 1000)
    first, second = plan_of(twice.compile("gfx942")).prepare([2.0, *x.abi, *y.abi], [x, y]).launches
    assert (first.reads, first.writes) == (((x.pointer, 4000),), ((y.pointer, 4000),))
    assert (second.reads, second.writes) == (((y.pointer, 4000),), ((x.pointer, 4000),))


def test_the_arrays_and_the_scratch_memory_are_kept(device, plan_of):
    made = plan_of(total.compile("gfx942"), result_shape="scalar").prepare([10], [])
    device.synchronize()
    assert device.memory_stats().blocks == 1
    scratch = next(thing for thing in made.launches[0].keep if hasattr(thing, "block"))
    assert struct.unpack("Q", made.launches[0].arguments[8:16]) == (scratch.pointer,)
    del made, scratch
    device.synchronize()
    assert device.memory_stats().blocks == 0


def test_what_was_prepared_can_be_launched_and_its_result_read(device, plan_of):
    import ctypes

    def merge(block):
        ctypes.c_int32.from_address(struct.unpack("Q", block[8:16])[0]).value = 45

    code = total.compile("gfx942")
    made = plan_of(code, {code.tasks[-1].symbol: merge}, result_shape="scalar").prepare([10], [])
    stream = device.default_stream
    for launch in made.launches:
        block = ctypes.create_string_buffer(launch.arguments, len(launch.arguments))
        arguments = device.driver.launch_arguments(ctypes.addressof(block), len(launch.arguments))
        device.driver.launch(launch.function, launch.grid, launch.block, 0, stream.handle, arguments)
    assert made.result(stream) == 45


def test_a_launch_knows_its_name_and_place(device, plan_of):
    x = array_on(device, 8)
    code = twice.compile("gfx942")
    plan = plan_of(code, name="twice", spans=[Span("model.py", 7), Span("model.py", 9)])
    first, second = plan.prepare([1.0, *x.abi, *x.abi], [x, x]).launches
    assert "twice" in first.name
    assert first.name != second.name
    assert second.span == Span("model.py", 9)


def test_arrays_of_the_host_are_refused(device, plan_of):
    view = describe_host_array(np.zeros(8, np.float32))
    with pytest.raises(ArgumentError, match="on the device"):
        plan_of(twice.compile("gfx942")).prepare([1.0, *view.abi, *view.abi], [view, view])


def test_a_grid_that_is_too_large_is_prepared_by_the_wider_plan(plan_of):
    class Wider:
        def prepare(self, values, views, stream):
            return ("wide", values, views)

    @qp.kernel
    def touch(n: qp.i32, m: qp.i32):
        for _i, _j in qp.ndrange(n, m):
            pass

    assert plan_of(touch.compile("gfx942"), wider=Wider).prepare([2**16, 2**16], []) == ("wide", [2**16, 2**16], [])


# on the CPU


@pytest.fixture
def on_the_cpu():
    before = current_config()
    set_config(Config())
    yield
    set_config(before)


@pytest.mark.usefixtures("on_the_cpu")
def test_a_call_on_the_cpu_is_a_closure():
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    views = [describe_host_array(a) for a in (x, y)]
    plan = CpuPlan(twice.compile(), name="twice", spans=[Span("model.py", 7), Span("model.py", 9)])
    made = plan.prepare([2.0, *views[0].abi, *views[1].abi], views)
    assert not y.any()
    made.run()
    assert (y == 2 * np.arange(100)).all()
    made.run()
    assert (y == 4 * np.arange(100)).all()
    assert set(made.reads) == set(made.writes) == {(v.pointer, v.nbytes) for v in views}
    assert (made.name, made.span, made.result) == ("twice", Span("model.py", 7), None)


@pytest.mark.usefixtures("on_the_cpu")
def test_a_result_on_the_cpu_is_that_of_the_last_run():
    made = CpuPlan(total.compile(), result_shape="scalar").prepare([10], [])
    made.run()
    assert made.result() == 45


@pytest.mark.usefixtures("on_the_cpu")
def test_the_range_of_a_field_reaches_over_what_lies_between():
    a, b = qp.field(qp.f32), qp.field(qp.f64)
    qp.root.dense(qp.ij, (3, 4)).place(a, b)
    start, nbytes = memory_range(a)
    assert start == a.pointer
    assert nbytes == 11 * 4 * a.strides[1] + 4
    assert memory_range(qp.Vector.field(3, qp.f32, shape=5))[1] == 60
    soa = qp.Vector.field(3, qp.f32, shape=5, layout=qp.Layout.SOA)
    assert memory_range(soa) == (soa.pointer, 60)
