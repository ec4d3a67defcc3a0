"""A fast call does what a plan does, and leaves to it the calls that it cannot do."""

from __future__ import annotations

import ctypes
import struct
import threading

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from simulated import AnyKernel, gpu, launched
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.errors import ArgumentError, BoundsError, DeviceError, DriverError, StreamError
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.device import Device

pytestmark = pytest.mark.quadpy_hazards(allow="launches go to streams without order")

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
F32x2 = qp.types.ndarray(dtype=qp.f32, ndim=2)
VEC = qp.types.vector(3, qp.f32)


@pytest.fixture
def device():
    with gpu() as found:
        yield found


def both_ways(device, kernel, *args, **options) -> None:
    """The same call without and with the fast call."""
    kernel._fast_call = None
    kernel(*args, **options)
    assert kernel._fast_call is not None
    assert kernel._fast_call(options.get("stream"), *args)
    half = launched(device)
    assert len(half) % 2 == 0
    assert half[: len(half) // 2] == half[len(half) // 2 :]


def both_ways_alike(device, kernel, *args) -> None:
    """As ``both_ways``, where the block has an address that differs."""
    before = len(launched(device))
    kernel(*args)
    assert kernel._fast_call(None, *args)
    grids = [grid for _, _, grid, _ in launched(device)[before:]]
    assert grids[: len(grids) // 2] == grids[len(grids) // 2 :]


def fresh(fn):
    """A kernel that was never called."""
    return qp.kernel(fn.source.fn)


@qp.kernel
def nothing():
    for _ in range(300):
        pass


@qp.kernel
def mix(a: qp.f32, x: F32, b: qp.i32, y: F32x2, v: VEC, c: qp.u1, h: qp.f16):
    for i in x:
        x[i] = a * v[0] + h
    for i, j in y:
        y[i, j] = b
    for i in range(2, b):
        x[i] = 0.0
    for i in range(x.shape[0] // 2):
        x[i] = y[0, 0]
    y[0, 0] = qp.cast(c, qp.f32)


@qp.kernel
def copy(x: F32, y: F32):
    for i in x:
        y[i] = x[i]


@qp.kernel
def pick(n: qp.template(), x: F32):
    for i in x:
        x[i] = n


def test_a_call_without_arguments(device):
    both_ways(device, fresh(nothing))


@hypothesis.given(
    n=st.integers(0, 2000),
    rows=st.integers(1, 40),
    a=st.floats(width=32),
    b=st.integers(-(2**31), 2**31 - 1),
    c=st.booleans(),
)
@hypothesis.settings(max_examples=30)
def test_arguments_of_every_kind(n, rows, a, b, c):
    with gpu() as device:
        x, y = qp.ndarray(qp.f32, n), qp.ndarray(qp.f32, (rows, 7))
        both_ways(device, fresh(mix), a, x, min(b, n), y, qp.Vector([1.0, a, 2.0]), c, 0.5)


def test_fields_are_arguments_too(device):
    f = qp.field(qp.f32, shape=100)

    @qp.kernel
    def add(x: F32):
        for i in x:
            x[i] = f[i]
            f[i] = 1.0

    both_ways(device, add, qp.ndarray(qp.f32, 100))


def test_the_stream_is_the_one_asked_for_or_the_threads_own(device):
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel = fresh(copy)
    kernel(x, y)
    with qp.create_stream() as one, qp.create_stream() as other:
        kernel(x, y, stream=one)
        with qp.use_stream(other):
            kernel(x, y)
            thread = threading.Thread(target=kernel, args=(x, y))
            thread.start()
            thread.join()
        kernel(x, y)
        assert [launch[3] for launch in launched(device)] == [0, one.handle, other.handle, 0, 0]


def test_a_stream_that_was_set_by_its_handle(device):
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel = fresh(copy)
    kernel(x, y)
    with qp.create_stream() as stream:
        device.streams.set_current_stream(stream.handle)
        kernel(x, y)
        assert launched(device)[-1][3] == stream.handle
        device.streams.set_current_stream(0)


def test_arrays_are_announced(device):
    kernel = fresh(copy)
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    with qp.create_stream() as stream:
        before = len(device.driver.calls)
        kernel(x, y, stream=stream)
        verbs = [call.verb for call in device.driver.calls[before:]]
        assert verbs.index("stream_wait") < verbs.index("launch")  # the first use comes after what its home was given
        assert stream.timeline in x.block.guests
        assert stream.timeline in y.block.writers
        assert stream.timeline not in x.block.writers
        before = len(device.driver.calls)
        kernel(x, y, stream=stream)
        assert [call.verb for call in device.driver.calls[before:]] == ["launch"]


def test_arrays_that_overlap_have_code_of_their_own(device):
    kernel = fresh(copy)
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    assert not kernel._fast_call(None, x, x)
    kernel(x, x)
    kernel(x, y)
    functions = [call.arguments[0] for call in device.driver.calls if call.verb == "launch"]
    assert functions[0] == functions[2] != functions[1]


def test_another_signature_is_another_way(device):
    x, y, wide = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f64, 8)

    @qp.kernel
    def double(x: qp.types.ndarray(ndim=1)):
        for i in x:
            x[i] = 2 * x[i]

    double(x)
    assert not double._fast_call(None, wide)
    double(wide)
    assert double._fast_call(None, wide)
    kernel = fresh(pick)
    for n in (1, 2, 1):
        kernel(n, y)
    functions = [call.arguments[0] for call in device.driver.calls if call.verb == "launch"][-3:]
    assert functions[0] == functions[2] != functions[1]


def test_arrays_of_the_host_go_the_long_way(device):
    kernel = fresh(copy)
    x, y = qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    host = np.zeros(8, np.float32)
    kernel(host, y)
    kernel(x, y)
    assert kernel._fast_call(None, x, y)


def test_no_iterations_are_no_launch(device):
    kernel = fresh(copy)
    empty = qp.ndarray(qp.f32, 0)
    kernel(empty, empty)
    assert kernel._fast_call(None, empty, empty)
    assert launched(device) == []


def test_values_that_pass_from_task_to_task_have_memory_of_each_call(device):
    @qp.kernel
    def shift(x: F32):
        first = x[0] + 1.0
        for i in x:
            x[i] = first

    x = qp.ndarray(qp.f32, 100)
    shift(x)
    assert shift._fast_call(None, x)
    half = launched(device)
    half, again = half[: len(half) // 2], half[len(half) // 2 :]
    assert [(name, grid, on, block[:-8]) for name, block, grid, on in half] == [
        (name, grid, on, block[:-8]) for name, block, grid, on in again
    ]
    assert len({block[-8:] for _, block, _, _ in again}) == 1  # one scratch memory for all tasks
    device.synchronize()
    assert device.memory_stats().blocks == 1  # the array


def test_random_numbers_go_on(device):
    @qp.kernel
    def draw(x: F32):
        for i in x:
            x[i] = qp.random()

    x = qp.ndarray(qp.f32, 100)
    draw(x)
    assert draw._fast_call(None, x)
    draw._fast_call = None
    draw(x)
    blocks = [block for _, block, _, _ in launched(device)]
    assert len(set(blocks)) == 3
    numbers = [int.from_bytes(block[-8:], "little") & 0xFFFFFFFF for block in blocks]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_arguments_by_name_and_by_default(device):
    @qp.kernel
    def put(x: F32, n: qp.i32 = 7):
        for i in x:
            x[i] = n

    x = qp.ndarray(qp.f32, 8)
    for args, names in (((x, 7), {}), ((x,), {}), ((), {"x": x}), ((x,), {"n": 7})):
        put(*args, **names)
    assert len({block for _, block, _, _ in launched(device)}) == 1
    with pytest.raises(ArgumentError):
        put(x, 7, 7)
    with pytest.raises(ArgumentError):
        put(x, 7, x=x)
    with pytest.raises(ArgumentError):
        put()


class Shown:
    """Memory of the device as another library shows it."""

    def __init__(self, array, start, n):
        address = array.pointer + 4 * start
        self.__cuda_array_interface__ = {
            "shape": (n,), "typestr": "<f4", "data": (address, False), "version": 3, "strides": None, "keep": array,
        }  # fmt: skip


def test_memory_of_other_libraries_is_compared_by_its_addresses(device):
    owner, other = qp.ndarray(qp.f32, 64), qp.ndarray(qp.f32, 64)
    x, near = (qp.from_dlpack(Shown(owner, start, 16)) for start in (0, 8))
    far = qp.from_dlpack(Shown(owner, 32, 16))
    kernel = fresh(copy)
    kernel(x, far)
    assert kernel._fast_call(None, x, far)
    assert kernel._fast_call(None, far, x)
    assert not kernel._fast_call(None, x, near)
    assert not kernel._fast_call(None, x, other)  # whose memory is quadpy's: code of its own
    kernel(x, near)
    functions = [call.arguments[0] for call in device.driver.calls if call.verb == "launch"]
    assert functions[-1] != functions[0]
    kernel(x, other)
    assert kernel._fast_call(None, x, other)
    assert not kernel._fast_call(None, x, far)
    kernel(x, far)
    assert kernel._fast_call(None, x, far)


def test_a_loop_in_whole_blocks_is_refused_by_fast_calls_too(device):
    @qp.kernel
    def reverse(n: qp.i32, x: F32):
        qp.loop_config(block_dim=64)
        for i in range(n):
            tile = qp.simt.block.SharedArray((64,), qp.f32)
            tile[i % 64] = x[i]
            qp.simt.block.sync()
            x[i] = tile[63 - i % 64]

    x = qp.ndarray(qp.f32, 256)
    reverse(128, x)
    assert reverse._fast_call(None, 192, x)
    assert not reverse._fast_call(None, 100, x)
    with pytest.raises(ArgumentError, match="whole blocks of 64"):
        reverse(100, x)
    assert len(launched(device)) == 2


def test_another_configuration_has_another_fast_call(device):
    kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    before = kernel._fast_call
    set_config(Config(arch="recording", fast_math=True))
    assert not before(None, x, y)
    kernel(x, y)
    assert kernel._fast_call is not before


def test_loops_that_take_any_number_of_blocks_take_those_that_run_at_once(device):
    """The device has 304 units of 2048 threads."""

    @qp.kernel
    def far(n: qp.i64, m: qp.i64, x: F32):
        for i, _j in qp.ndrange(n, m):
            x[i % 8] = 1.0

    @qp.kernel
    def unknown(x: F32):
        n = qp.cast(x[0], qp.i32)
        for i in range(n):
            x[i] = 1.0

    x = qp.ndarray(qp.f32, 8)
    for kernel, args in ((far, (2**20, 2**20, x)), (unknown, (x,))):
        both_ways_alike(device, kernel, *args)
        blocks = [grid[0] for _, _, grid, _ in launched(device)]
        assert blocks[-1] == 304 * 2048 // 256
    far(3, 100, x)
    assert launched(device)[-1][2] == (2, 1, 1)


# what is refused


def test_what_does_not_fit_is_refused_by_name(device):
    @qp.kernel
    def put(n: qp.i32, x: F32):
        for i in x:
            x[i] = n

    x = qp.ndarray(qp.f32, 8)
    put(1, x)
    for bad, words in ((2**31, "does not fit"), (1.5, "takes an integer"), ("1", "takes a number")):
        with pytest.raises(ArgumentError, match=words):
            put(bad, x)
    with pytest.raises(ArgumentError, match="takes an array"):
        put(1, 1)
    with pytest.raises(ArgumentError):
        put(1)
    put(3.0, x)
    assert len(launched(device)) == 2


def test_a_destroyed_stream_is_refused(device):
    kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    stream = qp.create_stream()
    stream.destroy()
    with pytest.raises(StreamError, match="destroyed"):
        kernel(x, y, stream=stream)
    with pytest.raises(StreamError, match="is not a stream"):
        kernel(x, y, stream=3)
    assert len(launched(device)) == 1


def test_arrays_of_another_device_are_refused_each_time(device):
    x = qp.ndarray(qp.f32, 8)
    driver = RecordingDriver(1)
    driver.kernels = AnyKernel()
    here = devices._open["recording", 0]
    with Device(driver) as there:
        devices._open["recording", 0] = there
        y = qp.ndarray(qp.f32, 8)
        devices._open["recording", 0] = here
        kernel = fresh(copy)
        for _ in range(2):
            with pytest.raises(DeviceError, match="but the kernel runs on"):
                kernel(x, y)
        kernel(x, qp.ndarray(qp.f32, 8))
        with pytest.raises(DeviceError):
            kernel(x, y)
    assert driver.kernels.log == []
    assert len(launched(device)) == 1


def test_a_threads_stream_that_was_destroyed_by_its_handle_gives_way_to_the_default_one(device):
    kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    handle = device.streams.create_stream()
    device.streams.set_current_stream(handle)
    kernel(x, y)
    device.streams.destroy_stream(handle)
    assert not kernel._fast_call(None, x, y)
    with pytest.warns(RuntimeWarning, match="destroyed"):
        kernel(x, y)
    kernel(x, y)
    assert kernel._fast_call(None, x, y)
    assert [launch[3] for launch in launched(device)] == [0, handle, 0, 0, 0]


def test_a_stream_of_another_device_is_refused(device):
    kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    with Device(RecordingDriver(1)) as there, there.create_stream() as stream, pytest.raises(StreamError):
        kernel(x, y, stream=stream)


@pytest.mark.quadpy_hazards(off="with the checker on, the device is looked for again, and there is no such driver")
def test_a_closed_device_is_refused():
    with gpu() as device:
        kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
        kernel(x, y)
        device.close()
        with pytest.raises(DeviceError, match="closed"):
            kernel(x, y)


def test_a_launch_that_the_driver_refuses_names_the_kernel_and_its_line(device):
    kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    line = copy.source.fn.__code__.co_firstlineno + 2
    for _ in range(2):  # without the fast call, then with it
        device.driver.failures["launch"] = DriverError("too many threads", hint="use fewer", call="launch", code=7)
        with pytest.raises(
            DriverError, match=rf"kernel `copy.*` \(.*test_fast_call.py:{line}\): too many threads"
        ) as found:
            kernel(x, y)
        assert (found.value.hint, found.value.call, found.value.code) == ("use fewer", "launch", 7)
    kernel(x, y)
    assert len(device.driver.kernels.log) == 1


def test_a_stream_destroyed_by_another_thread_lives_until_the_launch_is_submitted(device):
    """The stream's handle goes back only when the driver has taken the launch."""
    kernel, x, y = fresh(copy), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    kernel(x, y)
    launch = device.driver.launch
    destroyed = lambda: [call.verb for call in device.driver.calls].count("stream_destroy")  # noqa: E731

    def destroyed_meanwhile(*arguments):
        thread = threading.Thread(target=stream.destroy)
        thread.start()
        thread.join()
        device.reaper.trim()
        assert destroyed() == before
        launch(*arguments)

    device.driver.launch = destroyed_meanwhile
    specialisation = next(iter(kernel._dispatcher.specialisations.values()))
    for fast_call in (None, specialisation.fast_call([x, y])):
        kernel._fast_call = fast_call
        stream, before = qp.create_stream(), destroyed()
        kernel(x, y, stream=stream)
        device.reaper.trim()
        assert destroyed() == before + 1


@qp.kernel
def scaled(x: F32, by: qp.f32, shift: VEC, y: F32):
    for i in x:
        y[i] = by * x[i] + shift[1]


def test_the_checker_is_told_before_a_fast_call_launches(device):
    kernel, x, y = fresh(scaled), qp.ndarray(qp.f32, 8), qp.ndarray(qp.f32, 8)
    s1, s2 = qp.create_stream(), qp.create_stream()
    shift = qp.math.vec3(1, 2, 3)
    with qp.hazards.check():
        both_ways(device, kernel, x, 0.5, shift, y, stream=s1)
        before = len(launched(device))
        for _ in range(2):
            with pytest.raises(qp.HazardError, match="nothing orders") as caught:
                kernel(x, 0.5, shift, y, stream=s2)
            assert caught.value.hazard.second.file == __file__
            assert caught.value.hazard.second.array == "y"
        assert len(launched(device)) == before
        with qp.profile(), pytest.raises(qp.HazardError):  # which has two observers
            kernel(x, 0.5, shift, y, stream=s2)
        s1.synchronize()
        kernel(x, 0.5, shift, y, stream=s2)
        with pytest.raises(qp.ArgumentError, match="by"):
            kernel(x, "much", shift, y, stream=s2)
        assert len(launched(device)) == before + 1
    assert kernel._fast_call(s1, x, 0.5, shift, y)


class _Answers(AnyKernel):
    """Kernels with a result leave ``words`` at the start of their scratch memory, whose address ends the argument block."""

    words = ()

    def __getitem__(self, name):
        if not name.startswith(("total", "both_ends")):
            return super().__getitem__(name)

        def run(block):
            (scratch,) = struct.unpack("Q", block[-8:])
            (ctypes.c_uint64 * len(self.words)).from_address(scratch)[:] = self.words

        return RecordedKernel(run, super().__getitem__(name).touches)


@qp.kernel
def total(x: F32) -> qp.f32:
    found = 0.0
    for i in x:
        found += x[i]
    return found


@qp.kernel
def both_ends(x: F32) -> tuple[qp.f32, qp.i64, VEC]:
    return x[0], 7, qp.Vector([x[1], x[2], 3.0])


@pytest.fixture
def answers(device):
    device.driver.kernels = _Answers()
    return device.driver.kernels


def bits(value):
    return int(np.float32(value).view(np.uint32))


def test_a_result_of_a_fast_call_is_that_of_the_plan(device, answers):
    x = qp.ndarray(qp.f32, 8)
    for kernel, shapes in (
        (fresh(total), [((value,), value) for value in (0.5, -0.0, float("inf"), 0.0)]),
        (fresh(both_ends), [((n, n + 1, 3, 4, 5), n) for n in (0, 2**31)]),
    ):
        kernel(x)
        for words, value in shapes:
            answers.words = [bits(value)] if kernel.source.fn is total.source.fn else words
            fast = kernel._fast_call
            quick = kernel(x)
            kernel._fast_call = None
            slow = kernel(x)
            assert kernel._fast_call is fast, "calls of one signature share it"
            assert repr(fast(None, x)) == repr((slow,))
            assert repr(quick) == repr(slow)
    assert [call.verb for call in device.driver.calls].count("launch") > 20


def test_results_come_from_the_stream_of_the_call(device, answers):
    kernel, x = fresh(total), qp.ndarray(qp.f32, 8)
    answers.words = [bits(1.0)]
    kernel(x)
    with qp.create_stream() as stream:
        before = len(device.driver.calls)
        assert kernel(x, stream=stream) == 1.0
        calls = [call for call in device.driver.calls[before:] if call.verb in ("copy_out", "stream_synchronize")]
        assert [call.verb for call in calls] == ["copy_out", "stream_synchronize"]
        assert all(stream.handle in call.arguments for call in calls)
    with pytest.raises(StreamError, match="destroyed"):
        kernel(x, stream=stream)


def test_a_result_that_cannot_be_read_is_an_error_in_the_users_line(device, answers):
    kernel, x = fresh(total), qp.ndarray(qp.f32, 8)
    answers.words = [bits(2.0)]
    assert kernel(x) == 2.0
    device.driver.failures["stream_synchronize"] = DriverError("the device is lost", call="stream_synchronize", code=7)
    with pytest.raises(DriverError, match="the device is lost") as caught:
        kernel(x)
    ours = [entry for entry in caught.traceback if "quadpy" in entry.path.parts and "tests" not in entry.path.parts]
    assert len(ours) <= 2
    assert kernel(x) == 2.0


def test_threads_that_call_at_once_get_their_own_results(device, answers):
    """Each call's scratch memory and record are its own."""
    kernel = fresh(total)
    answers.words = [bits(1.0)]
    arrays = [qp.ndarray(qp.f32, 8) for _ in range(4)]
    kernel(arrays[0])
    found = []

    def call(x):
        with qp.create_stream() as stream:
            found.extend(kernel(x, stream=stream) for _ in range(50))

    threads = [threading.Thread(target=call, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1.0] * 200


def test_the_checker_knows_that_the_host_waits_for_a_result(device, answers):
    kernel, x = fresh(total), qp.ndarray(qp.f32, 8)
    answers.words = [bits(1.0)]
    s1, s2 = qp.create_stream(), qp.create_stream()
    kernel(x)
    with qp.hazards.check():
        copy(x, x2 := qp.ndarray(qp.f32, 8), stream=s1)
        with pytest.raises(qp.HazardError, match="nothing orders"):
            kernel(x2, stream=s2)
        kernel(x2, stream=s1)
        kernel(x2, stream=s2)  # the host has waited
    assert kernel(x2) == 1.0


def test_a_loop_that_would_leave_an_array_is_refused_by_fast_calls_too(device):
    kernel, x, y, short = fresh(copy), *(qp.ndarray(qp.f32, n) for n in (8, 8, 4))
    kernel(x, y)
    fast_call = kernel._fast_call
    assert fast_call(None, short, y)
    assert fast_call(None, qp.ndarray(qp.f32, 0), short)
    assert not fast_call(None, x, short)
    before = len(launched(device))
    with pytest.raises(BoundsError, match=r"index 7 of y.*y has shape \(4,\), x has shape \(8,\)"):
        kernel(x, short)
    assert kernel.prepare(x, y)
    with pytest.raises(BoundsError):
        kernel.prepare(x, short)
    assert len(launched(device)) == before
