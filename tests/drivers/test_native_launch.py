"""Launches by machine code: the vendor's library, stood in for by C functions that write down what they are given."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import itertools
import struct
import threading
import weakref

import pytest

import quadpy as qp
from quadpy.errors import CodegenError, DriverError
from quadpy.jit.fast_call import native_launch
from quadpy.jit.fast_call.launch_records import LaunchRecords
from quadpy.jit.fast_call.native_launch import HEAD, NativeTasks
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers import hip_api as table
from quadpy.runtime.drivers.driver import NativeLaunch
from quadpy.runtime.drivers.gpu import GpuDriver

from .test_direct_launch import LAUNCH
from .test_gpu_driver import StandIn, Status

pytestmark = pytest.mark.quadpy_hazards(off="the checker turns these launches off")

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
SELECT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


class Library(dict):
    """``seen``: function, blocks, threads, stream and argument block of each launch; ``answers`` of the next ones."""

    def __init__(self):
        self.seen, self.answers, self.selected, self.selects = [], [], [], 0
        for name, kind, function in (
            ("hipModuleLaunchKernel", LAUNCH, self.launch), ("hipSetDevice", SELECT, self.select)
        ):  # fmt: skip
            callback = kind(function)
            self[name] = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.cast(callback, ctypes.c_void_p).value)
            self[name].callback = callback

    def __missing__(self, name):
        raise AttributeError(name)  # as of a library without it

    def launch(self, function, x, y, z, threads, ty, tz, shared, stream, parameters, extra):
        assert (y, z, ty, tz, shared, parameters) == (1, 1, 1, 1, 0, None)
        block = b""
        if extra:
            buffer, address, size, extent, end = (ctypes.c_uint64 * 5).from_address(extra)
            assert (buffer, size, end) == (1, 2, 3)
            block = ctypes.string_at(address, ctypes.c_size_t.from_address(extent).value)
        self.seen.append((function, x, threads, stream, block))
        return self.answers.pop(0) if self.answers else 0

    def select(self, ordinal):
        self.selected.append((ordinal, threading.get_ident()))
        return self.selects


@contextlib.contextmanager
def opened(monkeypatch, **changes):
    """A device whose memory is nowhere, and the library that takes its launches."""
    library, stand_in, before = Library(), StandIn(), current_config()
    monkeypatch.setattr("quadpy.runtime.drivers.gpu_calls._selected.device", {})
    monkeypatch.setattr(table, "_library", lambda: library)
    addresses, functions = itertools.count(1 << 40, 1 << 20), itertools.count(0x7F00_0000_1000, 0x100)
    stand_in.hipMalloc = lambda nbytes: (Status.hipSuccess, next(addresses))
    stand_in.hipModuleGetFunction = lambda module, name: (Status.hipSuccess, next(functions))
    streams = itertools.count(0x7FFF_0000_0000, 0x10)
    stand_in.hipStreamCreateWithPriority = lambda flags, priority: (Status.hipSuccess, next(streams))
    driver = GpuDriver(dataclasses.replace(table._table(stand_in), **changes))
    devices._open["amdgpu", 0] = Device(driver)
    set_config(Config(arch="amdgpu"))
    try:
        yield library, stand_in
    finally:
        set_config(before)
        del devices._open["amdgpu", 0]


@pytest.fixture
def vendor(monkeypatch):
    with opened(monkeypatch) as found:
        yield found


def arrays(count, n=1000):
    return [qp.ndarray(qp.f32, n) for _ in range(count)]


def block_of(*views, head=b""):
    return head + b"".join(struct.pack("@Qi4x", a.pointer, a.shape[0]) for a in views)


@pytest.fixture
def copy():
    @qp.kernel
    def copy(x: F32, y: F32):
        for i in x:
            y[i] = x[i]

    return copy


@pytest.fixture
def three():
    @qp.kernel
    def three(n: qp.i32, x: F32):
        for i in x:
            x[i] = 1.0
        for i in range(n):
            x[i] = 2.0
        x[0] = 3.0

    return three


def test_all_arguments_arrive_whole(vendor, copy):
    library, _ = vendor
    x, y = arrays(2)
    copy(x, y)
    first = library.seen.pop()
    stream = qp.create_stream()
    copy(x, y)
    copy(y, x, stream=stream)
    function = first[0]
    assert library.seen == [
        (function, 4, 256, None, first[4]),
        (function, 4, 256, stream.handle, block_of(y, x)[: len(first[4])]),
    ]
    assert first[4] == block_of(x, y)[: len(first[4])]


def test_the_binding_is_not_asked(vendor, copy):
    library, stand_in = vendor
    x, y = arrays(2)
    for _ in range(3):
        copy(x, y)
    assert "hipModuleLaunchKernel" not in [name for name, _ in stand_in.log]
    assert len(library.seen) == 3


def test_all_tasks_go_in_order_and_empty_ones_not_at_all(vendor, three):
    library, _ = vendor
    (x,) = arrays(1)
    three(300, x)
    functions = [seen[0] for seen in library.seen]
    assert len(set(functions)) == 3
    library.seen.clear()
    three(600, x)
    assert [(seen[0], seen[1]) for seen in library.seen] == list(zip(functions, (4, 3, 1), strict=True))
    library.seen.clear()
    three(0, x)
    assert [seen[0] for seen in library.seen] == [functions[0], functions[2]]


def test_a_refused_task_is_named_with_its_line_and_what_comes_after_is_not_launched(vendor, three):
    library, _ = vendor
    (x,) = arrays(1)
    three(300, x)
    library.seen.clear()
    library.answers = [0, int(Status.hipErrorInvalidValue)]
    line = three.source.fn.__code__.co_firstlineno + 4
    with pytest.raises(DriverError, match=rf"kernel `three.*_t1` \(.*test_native_launch.py:{line}\): .*InvalidValue"):
        three(300, x)
    assert len(library.seen) == 2
    library.answers = [123_456]
    with pytest.raises(DriverError, match="123456, which the binding does not know"):
        three(300, x)
    three(300, x)
    assert len(library.seen) == 6


def test_a_lost_device_takes_no_launch(vendor, copy):
    library, stand_in = vendor
    x, y = arrays(2)
    copy(x, y)
    copy(x, y)
    stand_in.status["hipDeviceSynchronize"] = Status.hipErrorIllegalAddress
    with pytest.raises(DriverError):
        devices.current_device().synchronize()
    before = len(library.seen), len(library.selected)
    with pytest.raises(DriverError, match="is lost"):
        copy(x, y)
    assert (len(library.seen), len(library.selected)) == before


def test_the_device_is_selected_on_whichever_thread(vendor, copy):
    library, _ = vendor
    x, y = arrays(2)
    copy(x, y)
    copy(x, y)
    library.selected.clear()
    for _ in range(2):
        thread = threading.Thread(target=lambda: [copy(x, y) for _ in range(3)])
        thread.start()
        thread.join()
    copy(x, y)
    assert {ordinal for ordinal, _ in library.selected} == {0}
    assert len({thread for _, thread in library.selected}) >= 2


def test_a_device_that_cannot_be_selected_is_an_error_of_the_long_way(vendor, copy):
    library, _ = vendor
    x, y = arrays(2)
    copy(x, y)
    library.selects = int(Status.hipErrorInvalidDevice)
    library.seen.clear()
    copy(x, y)  # the binding selects it
    assert len(library.seen) == 1


def test_a_thread_that_has_lost_its_device_launches_once_more_and_goes_on(monkeypatch, three):
    lost = Status.hipErrorInvalidHandle
    with opened(monkeypatch, deselected=frozenset({lost})) as (library, stand_in):
        (x,) = arrays(1)
        three(300, x)
        functions = [seen[0] for seen in library.seen]
        library.seen.clear()
        stand_in.log.clear()
        library.answers = [0, int(lost)]
        three(300, x)
        again = [arguments[0] for name, arguments in stand_in.log if name == "hipModuleLaunchKernel"]
        assert again == [functions[1]]
        assert [seen[0] for seen in library.seen] == functions


def test_launches_of_many_threads_do_not_meet(vendor, copy):
    library, _ = vendor
    pairs = [arrays(2, n) for n in range(1, 9)]
    copy(*pairs[0])
    library.seen.clear()
    native_launch._entry.cache_clear()
    start = threading.Barrier(len(pairs))

    def repeat(x, y):
        start.wait()
        for _ in range(50):
            copy(x, y)

    threads = [threading.Thread(target=repeat, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blocks = [seen[4] for seen in library.seen]
    size = len(blocks[0])
    assert sorted(blocks) == sorted([block_of(*pair)[:size] for pair in pairs] * 50)


def test_a_launch_from_inside_a_launch_has_a_record_of_its_own(vendor, copy):
    """As by a finalizer, or by a profiler's hook in the driver."""
    library, _ = vendor
    x, y, z = arrays(3)
    copy(x, y)
    library.seen.clear()
    launch = library.launch

    def nested(*arguments):
        if not library.seen:
            library.seen.append(None)
            copy(y, z)
        return launch(*arguments)

    callback = LAUNCH(nested)
    tasks = [TaskLaunch("t", 1, (64, 1, 1), True, False, 1, None, None)]
    calls = devices.current_device().driver.native_launch()
    calls = dataclasses.replace(calls, launch=ctypes.cast(callback, ctypes.c_void_p).value)
    block = bytearray(HEAD + 16)
    submit = NativeTasks(calls, tasks).record(block, 0)
    struct.pack_into("=QI", block, HEAD, 0, 5)
    assert submit() == 0
    assert [seen[:2] for seen in library.seen[2:]] == [(1, 5)]
    assert library.seen[1][4] == block_of(y, z)[: len(library.seen[1][4])]


def test_a_record_keeps_what_it_reads(vendor):
    library, _ = vendor
    driver = devices.current_device().driver
    tasks = [TaskLaunch("t", 0x7F00_1234_5678, (2**20, 1, 1), True, False, 1, None, None)]
    records = LaunchRecords(driver, tasks, 24)
    block, submit, _ = records.make()
    records.head.pack_into(block, HEAD, 2**64 - 16, 2**32 - 1)
    block[records.start : records.start + 24] = bytes(range(24))
    del records, block, _, tasks
    gc.collect()
    assert submit() == 0
    assert library.seen == [(0x7F00_1234_5678, 2**32 - 1, 2**20, 2**64 - 16, bytes(range(24)))]


def test_a_record_keeps_the_machine_code(vendor):
    """Two threads that launch first each make the code, and the cache keeps only one of them."""
    library, _ = vendor
    native_launch._entry.cache_clear()
    tasks = [TaskLaunch("t", 0x7F00_1234_5678, (64, 1, 1), True, False, 1, None, None)]
    records = LaunchRecords(devices.current_device().driver, tasks, 8)
    block, submit, _ = records.make()
    records.head.pack_into(block, HEAD, 0, 5)
    code = weakref.ref(native_launch._entry())
    native_launch._entry.cache_clear()
    gc.collect()
    assert submit() == 0
    assert [seen[:2] for seen in library.seen] == [(0x7F00_1234_5678, 5)]
    assert code() is not None
    del submit, _
    gc.collect()
    assert code() is None


def test_launches_without_machine_code_go_through_the_driver(monkeypatch, vendor):
    """A system may refuse to make memory executable."""

    def refuse():
        raise CodegenError("LLVM cannot load the machine code: Permission denied")

    monkeypatch.setattr(native_launch, "_entry", refuse)
    _, stand_in = vendor
    tasks = [TaskLaunch("t", 0x7F00_1234_5678, (64, 1, 1), True, False, 1, None, None)]
    records = LaunchRecords(devices.current_device().driver, tasks, 8)
    block, submit, _ = records.make()
    records.head.pack_into(block, HEAD, 0, 5)
    assert submit() == 0
    assert [arguments[:2] for name, arguments in stand_in.log if name == "hipModuleLaunchKernel"] == [
        (0x7F00_1234_5678, 5)
    ]


def test_other_threads_run_while_the_driver_works():
    libc, turns, done = ctypes.CDLL(None), [], threading.Event()

    def count():
        while not done.is_set():
            turns.append(None)

    lost = ctypes.c_int(0)
    at = [ctypes.cast(function, ctypes.c_void_p).value for function in (libc.sched_yield, libc.usleep)]
    tasks = [TaskLaunch("sleep", 200_000, (1, 1, 1), True, False, 1, None, None)]  # its first argument
    block = bytearray(HEAD + 16)
    native = NativeTasks(NativeLaunch(ctypes.addressof(lost), at[0], 0, at[1], print), tasks)
    submit = native.record(block, 0)
    struct.pack_into("=QI", block, HEAD, 0, 1)
    thread = threading.Thread(target=count)
    thread.start()
    before = len(turns)
    assert submit() == 0
    assert len(turns) > before
    done.set()
    thread.join()


def test_without_the_library_the_binding_launches(monkeypatch, copy):
    with opened(monkeypatch, library=lambda: ctypes.CDLL("no library has this name")) as (library, stand_in):
        x, y = arrays(2)
        copy(x, y)
        copy(x, y)
        launches = [arguments for name, arguments in stand_in.log if name == "hipModuleLaunchKernel"]
        assert len(launches) == 2
        assert library.seen == []
