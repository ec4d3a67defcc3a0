"""The launch on a GPU, with code compiled for gfx942 and Python in its place: what the driver is asked to do."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.errors import DriverError
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.misfits import Misfit
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.device.device import Device

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def scale(a: qp.f32, x: F32):
    for i in x:
        x[i] = a * x[i]


@qp.kernel
def count(n: qp.i32, m: qp.i32) -> qp.i32:
    total = 0
    for _i, _j in qp.ndrange(n, m):
        total += 1
    return total


@pytest.fixture
def device():
    with Device(RecordingDriver()) as found:
        yield found


def plan_for(device: Device, kernel: qp.Kernel, target: str = "gfx942", **bodies) -> GpuPlan:
    """A plan whose tasks run ``bodies``: Python functions of the argument block."""
    code = kernel.compile(target)
    for task in code.tasks:
        device.driver.kernels[task.symbol] = RecordedKernel(bodies.get(task.symbol, lambda block: None))
    return GpuPlan(code, device, result_shape="scalar", wider=lambda: pytest.fail("the grid is large enough"))


def launches(device: Device) -> list[tuple[object, ...]]:
    return [call.arguments for call in device.driver.calls if call.verb == "launch"]


def test_the_block_holds_the_arguments_and_the_copy(device):
    x = np.arange(1000, dtype=np.float32)

    def body(block: bytes) -> None:
        a, pointer, extent = struct.unpack("@fQi", block[: struct.calcsize("@fQi")])
        data = np.ctypeslib.as_array((ctypes.c_float * extent).from_address(pointer))
        data *= a

    view = describe_host_array(x)
    plan_for(device, scale, scale_t0=body).run([2.0, *view.abi], [view], None)
    assert (x == 2 * np.arange(1000)).all()
    (call,) = launches(device)
    assert call[1:3] == ((4, 1, 1), (256, 1, 1))


@qp.kernel
def tiled(x: F32):
    for i in x:
        tile = qp.simt.block.SharedArray(15_000, qp.f32)
        tile[qp.simt.block.thread_idx()] = x[i]


def test_a_launch_asks_for_shared_memory_that_code_cannot_declare():
    view = describe_host_array(np.zeros(256, np.float32))
    with Device(RecordingDriver(loops=True)) as device:  # of NVIDIA
        plan_for(device, tiled, "sm_90").run([*view.abi], [view], None)
        assert [call[3] for call in launches(device)] == [60_000]


def test_no_iterations_are_no_launch(device):
    view = describe_host_array(np.zeros(0, np.float32))
    plan_for(device, scale).run([2.0, *view.abi], [view], None)
    assert launches(device) == []


def test_the_stream_is_the_one_asked_for(device):
    view = describe_host_array(np.zeros(8, np.float32))
    with device.create_stream() as stream:
        plan_for(device, scale).run([2.0, *view.abi], [view], stream)
        assert [call[4] for call in launches(device)] == [stream.handle]


def test_a_result_comes_from_the_scratch_memory(device):
    def merge(block: bytes) -> None:
        (scratch,) = struct.unpack("Q", block[8:16])
        ctypes.c_int32.from_address(scratch).value = 77

    last = count.compile("gfx942").tasks[-1].symbol
    assert plan_for(device, count, **{last: merge}).run([3, 4], [], None) == 77


def test_a_destroyed_stream_is_refused_before_the_driver_is_asked(device):
    view = describe_host_array(np.zeros(8, np.float32))
    stream = device.create_stream()
    stream.destroy()
    with pytest.raises(qp.StreamError, match="destroyed"):
        plan_for(device, scale).run([2.0, *view.abi], [view], stream)
    assert launches(device) == []


def test_a_value_that_does_not_fit_leaves_nothing_on_the_stream(device):
    plan = plan_for(device, count)
    before = len(device.driver.calls)
    with pytest.raises(Misfit):
        plan.run([2**31, 1], [], None)
    assert {call.verb for call in device.driver.calls[before:]} <= {"launch_arguments"}


def test_code_for_another_gpu_is_refused(device):
    with pytest.raises(DriverError, match="gfx1100"):
        plan_for(device, scale, "gfx1100")


def test_a_grid_beyond_the_hardware_goes_to_the_wider_plan(device):
    class Wider:
        def run(self, values, views, stream):
            return ("wide", values)

    @qp.kernel
    def touch(n: qp.i32, m: qp.i32, x: F32):
        for i, _j in qp.ndrange(n, m):
            x[i % 8] = 1.0

    code = touch.compile("gfx942")
    device.driver.kernels[code.tasks[0].symbol] = RecordedKernel(lambda block: None)
    plan = GpuPlan(code, device, wider=Wider)
    view = describe_host_array(np.zeros(8, np.float32))
    assert plan.run([2**16, 2**16, *view.abi], [view], None) == ("wide", [2**16, 2**16, *view.abi])
    assert launches(device) == []
