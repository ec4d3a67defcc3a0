"""A driver's error at every call of a launch: nothing leaks, what was forked is joined, and the next launch works."""

from __future__ import annotations

import ctypes
import gc
import struct
from dataclasses import replace

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.core.flow import Fork, Loop
from quadpy.errors import DeviceError, DriverError
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
SIZE = 8
GIVING_BACK = {"stream_destroy", "event_destroy", "free", "free_async", "free_pinned", "module_unload"}


@qp.kernel
def steps(x: F32, y: F32, left: I32) -> qp.f32:
    total = 0.0
    for i in x:
        x[i] += 1.0
    for i in y:
        y[i] += 2.0
    left[0] -= 1
    for i in x:
        total += x[i] + y[i]
    return total


CODE = steps.compile("gfx942")
FORK = Fork(((0,), (1,)))
FLOW = (Loop("left", (FORK, 2)), *range(3, len(CODE.tasks)))


class FailAt(dict):
    """What a recording driver asks at each call: the call of this number fails."""

    def __init__(self, number):
        super().__init__()
        self.number, self.calls, self.verb = number, 0, None

    def pop(self, verb, default=None):
        self.calls += 1
        if self.calls != self.number:
            return default
        self.verb = verb
        return DriverError(f"{verb} failed: as the test wants it")


def bodies() -> dict[str, RecordedKernel]:
    """What the tasks of ``steps`` do, in Python."""

    def parts(block):
        px, _, py, _, pleft = struct.unpack_from("QQQQQ", block)
        (scratch,) = struct.unpack_from("Q", block, CODE.layout.size)
        return px, py, pleft, scratch

    def floats(pointer):
        return np.ctypeslib.as_array((ctypes.c_float * SIZE).from_address(pointer))

    def adds(which, amount):
        def run(block):
            floats(parts(block)[which])[:] += amount

        def touches(block):
            whole = [(parts(block)[which], 4 * SIZE)]
            return whole, whole

        return RecordedKernel(run, touches)

    def count(block):
        ctypes.c_int32.from_address(parts(block)[2]).value -= 1

    def merge(block):
        px, py, _, scratch = parts(block)
        ctypes.c_float.from_address(scratch).value = floats(px).sum() + floats(py).sum()

    names = [task.symbol for task in CODE.tasks]
    made = {name: RecordedKernel(lambda block: None) for name in names}
    made |= {names[0]: adds(0, 1.0), names[1]: adds(1, 2.0), names[-1]: RecordedKernel(merge)}
    made[names[2]] = RecordedKernel(count, lambda block: ([(parts(block)[2], 4)], [(parts(block)[2], 4)]))
    return made


def plan_on(device) -> GpuPlan:
    return GpuPlan(replace(CODE, flow=FLOW), device, result_shape="scalar", wider=lambda: pytest.fail("wide"))


def call(plan, stream=None) -> float:
    """Three times around the loop, with arrays of the host; what comes out is checked."""
    x, y, left = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32), np.array([3], np.int32)
    views = [describe_host_array(array) for array in (x, y, left)]
    try:
        found = plan.run([value for view in views for value in view.abi], views, stream)
    except DeviceError:
        for array, before, after in ((x, 0, 3), (y, 0, 6), (left, 3, 0)):  # each as it was, or all done
            assert array.tolist() in ([before] * array.size, [after] * array.size)
        raise
    assert (x.tolist(), y.tolist(), left.tolist()) == ([3.0] * SIZE, [6.0] * SIZE, [0])
    return found


def calls_of_a_launch() -> int:
    driver = RecordingDriver()
    driver.kernels = bodies()
    with Device(driver) as device:
        driver.failures = FailAt(-1)
        assert call(plan_on(device), device.create_stream()) == 9.0 * SIZE
        return driver.failures.calls


def test_an_error_at_every_call_of_a_launch():
    verbs = set()
    for number in range(1, calls_of_a_launch() + 1):
        driver = RecordingDriver()
        driver.kernels = bodies()
        with Device(driver) as device:
            driver.failures = failing = FailAt(number)
            stream = None
            try:
                stream = device.create_stream()
                call(plan_on(device), stream)
            except DriverError as error:
                assert failing.verb in str(error)  # noqa: PT017 - a join that failed is made up for, and raises nothing
            finally:
                driver.failures = {}
            verbs.add(failing.verb)
            assert call(plan_on(device), stream) == 9.0 * SIZE
            assert driver.races() == []
            gc.collect()  # the error's traceback holds what was on the way
            device.synchronize()
            assert device.memory_stats().blocks == 0
        lost = failing.verb in GIVING_BACK
        assert sum(driver.left_open().values()) == lost, (number, failing.verb, driver.left_open())
    assert {"alloc", "launch", "copy_in", "copy_out", "event_record", "stream_wait", "stream_create"} <= verbs


def test_an_interrupt_in_a_branch_joins_what_was_forked():
    driver = RecordingDriver()
    driver.kernels = bodies()
    with Device(driver) as device:
        plan, launch = plan_on(device), driver.launch
        call(plan)
        seen = []

        def interrupt(*arguments):
            seen.append(arguments)
            if len(seen) == 2:
                raise KeyboardInterrupt
            launch(*arguments)

        driver.launch = interrupt
        with pytest.raises(KeyboardInterrupt):
            call(plan)
        driver.launch = launch
        assert call(plan) == 9.0 * SIZE
        assert driver.races() == []


# S8: a synchronize from inside a launch


@pytest.fixture
def current():
    """The current device, simulated."""
    before, driver = current_config(), RecordingDriver()
    driver.kernels = bodies()
    device = devices._open["recording", 0] = Device(driver)
    set_config(Config(arch="recording"))
    yield device
    set_config(before)
    del devices._open["recording", 0]
    device.close()


@qp.kernel
def scale(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] = a * x[i]


class Syncs:
    """An array, a number and a buffer that wait for the device whenever they are looked at."""

    def __init__(self, data):
        self.data, self.looks = data, 0

    @property
    def __array_interface__(self):
        self.looks += 1
        qp.sync()
        return self.data.__array_interface__

    def __float__(self):
        self.looks += 1
        qp.sync()
        return 2.0


def test_s8_an_argument_may_wait_for_the_device(current):
    def body(block):
        a, px, _, py, _ = struct.unpack("@fQiQi", block[: struct.calcsize("@fQiQi")])
        x, y = (np.ctypeslib.as_array((ctypes.c_float * SIZE).from_address(p)) for p in (px, py))
        y[:] = a * x

    current.driver.kernels["scale_t0"] = RecordedKernel(body)
    y = qp.ndarray(qp.f32, SIZE)
    for _ in range(2):
        x = Syncs(np.arange(SIZE, dtype=np.float32))
        scale(3.0, x, y)
        assert x.looks
        assert y.to_numpy().tolist() == [3.0 * i for i in range(SIZE)]
    x, a = qp.ndarray(qp.f32, SIZE), Syncs(None)
    x.fill(1.0)
    for _ in range(2):
        scale(a, x, y)
        assert y.to_numpy().tolist() == [2.0] * SIZE
    assert a.looks >= 2
    assert current.driver.races() == []


def test_s8_an_argument_may_launch_the_same_kernel(current):
    blocks = []

    def touches(block):
        blocks.append(struct.unpack_from("@f", block)[0])
        return (), ()

    current.driver.kernels["scale_t0"] = RecordedKernel(lambda block: None, touches)
    x, y = qp.ndarray(qp.f32, SIZE), qp.ndarray(qp.f32, SIZE)
    scale(1.0, x, y)

    class Launches:
        def __float__(self):
            scale(5.0, x, y)
            return 6.0

    scale(Launches(), x, y)
    assert blocks[0] == 1.0
    assert blocks[-1] == 6.0
    assert set(blocks[1:-1]) == {5.0}
