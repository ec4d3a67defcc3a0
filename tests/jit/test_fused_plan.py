"""One cooperative launch for all tasks, and separate launches where that cannot be: what the driver is told."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.schedule import Form
from quadpy.core.target import parse_target
from quadpy.errors import ArgumentError, DriverError
from quadpy.jit.fusion.plan import FusedPlan, FusingPlan
from quadpy.jit.offline import trace_for
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.memory.device_storage import zero_bytes
from quadpy.runtime.memory.placement import storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel(graph=True)
def two(x: I32, y: I32):
    for i in x:
        x[i] += 1
    for i in y:
        y[i] = x[i]


@qp.kernel(graph=True)
def loop(x: I32, go: I32):
    while qp.graph.do_while(go):
        for i in x:
            x[i] += 1
        go[0] = go[0] - 1


TARGET = parse_target("gfx942")
SEPARATE = {kernel: kernel.compile("gfx942") for kernel in (two, loop)}
FUSED = {k: compile_kernel(trace_for(k, {}, TARGET).kernel, TARGET, Form(fused=True)) for k in (two, loop)}


@pytest.fixture
def array(device):
    def make(n):
        memory = zero_bytes(device, 4 * n)
        return NDArray(qp.i32, (n,), (), storage_at(memory, StridedLayout(0, np.dtype(np.int32), (n,), (4,))))

    return make


@pytest.fixture
def plan(device, plan_of):
    """``plan(kernel, fuse)``: a plan that knows both ways; its launches of one kind do ``work``."""

    def make(kernel, fuse=True, work=lambda block: None):
        separate = plan_of(SEPARATE[kernel])
        device.driver.kernels[FUSED[kernel].tasks[0].symbol] = RecordedKernel(work)
        return FusingPlan(separate, device, fuse, lambda: FusedPlan(FUSED[kernel], separate, name="k", spans=()))

    return make


@pytest.fixture
def calls(device):
    """``calls(verb)``: the arguments of each so far."""
    return lambda verb: [call.arguments for call in device.driver.calls if call.verb == verb]


def values(*arrays):
    return [value for array in arrays for value in array.abi]


def test_all_tasks_are_one_launch(plan, array, calls):
    x, y = array(1000), array(1000)
    plan(two).run(values(x, y), [x, y], None)
    ((_, grid, block, *_),) = calls("launch_cooperative")
    assert (grid, block) == ((4, 1, 1), (256, 1, 1))
    assert not calls("launch")


def test_no_more_blocks_than_are_resident_at_once(plan, array, calls, device):
    x = array(1 << 22)
    plan(two).run(values(x, x), [x, x], None)
    ((_, grid, *_),) = calls("launch_cooperative")
    assert grid[0] <= device.driver.max_blocks(0, 256, 0)


@pytest.mark.parametrize("units", [8, 0.25, range(296, 304)])
def test_on_a_part_of_the_device_no_more_blocks_than_fit_there(plan, array, calls, device, units):
    """More would wait for each other for ever.  The driver of the simulation refuses them."""
    x, fusing = array(1 << 22), plan(two)
    with device.create_stream(compute_units=units) as part:
        fusing.run(values(x, x), [x, x], part)
        fusing.run(values(x, x), [x, x], None)
        fusing.run(values(x, x), [x, x], part)
    sizes = [grid[0] for _, grid, *_ in calls("launch_cooperative")]
    assert sizes == [2 * len(part.compute_units), 2 * 304, 2 * len(part.compute_units)]
    assert not calls("launch")
    small = array(1000)
    with device.create_stream(compute_units=units) as part:
        fusing.run(values(small, small), [small, small], part)
    assert calls("launch_cooperative")[-1][1][0] == 4


def test_a_call_that_would_leave_the_part_is_separate_unless_one_launch_is_wanted(plan, array, calls, device):
    device.driver.name = "amdgpu"
    x = array(1000)
    device.driver.features |= {"cooperative-apart"}
    with device.create_stream(compute_units=8) as part:
        plan(two, "auto").run(values(x, x), [x, x], part)
        assert not calls("launch_cooperative")
        plan(two, "auto").run(values(x, x), [x, x], None)
        plan(two, True).run(values(x, x), [x, x], part)
        assert len(calls("launch_cooperative")) == 2


def test_each_stream_has_a_counter_that_begins_at_0_and_stays(plan, array, calls, device):
    found = []
    fusing = plan(two, work=lambda block: found.append(struct.unpack_from("Q", block, len(block) - 8)[0]))
    x, y = array(10), array(10)
    streams = [device.create_stream() for _ in range(2)]
    before = len(calls("fill"))
    for stream in [*streams, *streams]:
        fusing.run(values(x, y), [x, y], stream)
    assert len(calls("fill")) == before + 2
    device.synchronize()
    assert len(found) == 4
    assert len(set(found)) == 2
    assert not device.driver.races()
    for stream in streams:
        stream.destroy()


def test_memory_of_a_stream_that_is_gone_is_given_back(plan, array, device):
    fusing, x = plan(two), array(10)
    used = []
    for _ in range(5):
        with device.create_stream() as stream:
            fusing.run(values(x, x), [x, x], stream)
        device.synchronize()
        used.append(device.memory_stats().used)
    assert set(used[1:]) == {used[0]}


def test_a_device_without_such_launches(plan, array, calls, device):
    device.driver.features -= {"cooperative"}
    fusing, x = plan(two), array(10)
    fusing.run(values(x, x), [x, x], None)
    assert len(calls("launch")) == 2
    assert not calls("launch_cooperative")
    assert fusing.fusion(values(x, x)) == (False, "recorded device has no cooperative launches")


def test_a_device_that_refuses_is_asked_once(plan, array, calls, device):
    fusing, x = plan(two), array(10)
    device.driver.failures["launch_cooperative"] = DriverError("no", name="hipErrorCooperativeLaunchTooLarge")
    for _ in range(2):
        fusing.run(values(x, x), [x, x], None)
    assert len(calls("launch_cooperative")) == 1
    assert len(calls("launch")) == 4


def test_other_errors_are_errors(plan, array, device):
    fusing, x = plan(two), array(10)
    device.driver.failures["launch_cooperative"] = DriverError("lost", name="hipErrorIllegalAddress")
    with pytest.raises(DriverError, match=r"kernel `k.*lost"):
        fusing.run(values(x, x), [x, x], None)


def test_auto_is_for_small_steps(plan, array, device):
    assert "not calibrated" in plan(two, "auto").fusion(values(array(1), array(1))).reason
    device.driver.name = "amdgpu"
    fusing, x = plan(two, "auto"), array(100)
    assert fusing.fusion(values(x, x)).fused
    many = [x.pointer, 1 << 28, x.pointer, 1 << 28]
    found = fusing.fusion(many)
    assert not found.fused
    assert f"{1 << 28} iterations" in found.reason


def test_auto_on_nvidia_is_for_loops(plan, array, device):
    device.driver.name = "cuda"
    x = array(100)
    assert "separate launches are faster" in plan(two, "auto").fusion(values(x, x)).reason
    assert plan(loop, "auto").fusion(values(x, x)).fused


def test_an_empty_condition(plan, array):
    x, go = array(10), array(0)
    with pytest.raises(ArgumentError, match="go is empty"):
        plan(loop).run(values(x, go), [x, go], None)


def test_on_amd_something_follows_that_events_wait_for(plan, array, device):
    """HIP 7.2: an event that is recorded right behind a cooperative launch does not wait for it."""
    device.driver.name, device.driver.features = "amdgpu", device.driver.features | {"cooperative-apart"}
    fusing, x, y = plan(two), array(10), array(10)
    with device.create_stream() as stream:
        fusing.run(values(x, y), [x, y], stream)
        fusing.run(values(x, y), [x, y], stream)
        verbs = [call.verb for call in device.driver.calls if call.verb in ("launch_cooperative", "fill")]
    assert verbs[-4:] == ["launch_cooperative", "fill"] * 2
    device.synchronize()
