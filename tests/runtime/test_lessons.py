"""Lessons of other runtimes that no other test holds; ``docs/explanation/lessons.md`` lists all by their numbers."""

from __future__ import annotations

import ast
import ctypes
import gc
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from simulated import current, simulated
from simulated_gpu.driver import RecordedKernel, RecordingDriver

import quadpy as qp
from quadpy.runtime.arrays.field import field
from quadpy.runtime.arrays.ndarray import from_dlpack, ndarray
from quadpy.runtime.streams.event import time as event_time
from quadpy.runtime.streams.manager import StreamManager

ROOT = Path(qp.__file__).parent
TESTS = Path(__file__).parents[1]


@qp.kernel
def count(n: qp.i32) -> qp.i32:
    total = 0
    for _i in range(n):
        total += 1
    return total


@pytest.fixture(params=["cache", "pool"])
def counting(request):
    """A simulated device on which ``count`` gives 7; ``scratch`` has the addresses that its launches were given."""
    driver = RecordingDriver()
    driver.scratch = []

    def run(block):
        (address,) = struct.unpack("Q", block[-8:])
        driver.scratch.append(address)
        ctypes.c_int32.from_address(address).value = 7

    for task in count.compile(driver.info.arch).tasks:
        driver.kernels[task.symbol] = RecordedKernel(run)
    with simulated(driver, request.param):
        yield driver
    assert driver.races() == []


def verbs(driver):
    return [call.verb for call in driver.calls]


def test_s1_the_memory_of_a_result_goes_back_behind_its_read_back(counting):
    """Launch, copy, free: all in one order on the stream, and nobody waits for the device to free."""
    with qp.create_stream() as stream:
        before = len(counting.calls)
        for _ in range(50):
            assert count(3, stream=stream) == 7
        seen = [(call.verb, call.arguments) for call in counting.calls[before:]]
        names = [verb for verb, _ in seen]
        assert "synchronize" not in names
        assert "free" not in names
        assert names.count("alloc") <= 1  # the cache gives the stream its block back
        on_stream = {arguments[-1] for verb, arguments in seen if verb in ("copy_out", "free_async", "alloc_async")}
        assert on_stream == {stream.handle}
        for place in [k for k, verb in enumerate(names) if verb == "free_async"]:
            assert "copy_out" in names[:place]


def test_s7_the_memory_for_results_is_never_null(counting):
    """A null address there was a page fault on the device, also of a kernel whose loop has no iterations."""
    assert count(0) == count(5) == 7
    assert counting.scratch
    assert all(counting.scratch)


def test_s5_s6_tests_of_streams_measure_no_time():
    """An assertion about speed fails on a machine that is busy, and a long loop to make work last is long everywhere."""
    folders = ("concurrency", "drivers", "runtime", "jit", "graph")
    files = [file for folder in folders for file in (TESTS / folder).rglob("test_*.py")]
    clocks = {"time", "perf_counter", "monotonic", "process_time", "perf_counter_ns"}
    found = [
        f"{file.name}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in clocks
        and ast.unparse(node.func.value) == "time"
    ]
    assert found == []


def test_s9_what_is_above_the_drivers_knows_no_vendor():
    """One protocol: no branch on the backend in what manages streams, events and memory."""
    folders = [ROOT / f"runtime/{name}" for name in ("streams", "memory/allocators", "device")]
    files = [file for folder in folders for file in folder.glob("*.py")]
    files += [ROOT / f"runtime/memory/{name}.py" for name in ("device_memory", "staging")]
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
        words = {n.value for c in compared for n in ast.walk(c) if isinstance(n, ast.Constant)}
        assert not words & {"amdgpu", "cuda", "hip", "cpu", "recording"}, file.name


def test_s10_names_are_of_no_vendor():
    names = [*vars(StreamManager), *qp.__all__]
    assert [name for name in names if re.search(r"hip|cuda|roc", name) and name != "cuda"] == []


COPIES = re.compile(r"\b(?:hip|cu|cuda)Mem(?:cpy|set)(?!Kind|Params|3D)\w*")
TABLES = {"gpu_api.py", "hip_api.py", "hip_ctypes.py", "cuda_api.py", "hip_graph_api.py", "cuda_graph_api.py"}


def test_s17_vendors_copies_are_asynchronous_and_in_one_place():
    """What reads back through the default stream races with work on the others; so nothing copies without a stream."""
    for file in ROOT.rglob("*.py"):
        found = set(COPIES.findall(file.read_text(encoding="utf-8")))
        calls = {name for name in found if not name.endswith(("ToDevice", "ToHost"))}  # directions are no calls
        assert not calls or file.name in TABLES, file.name
        assert all(name.endswith("Async") for name in calls), (file.name, calls)


def test_s17_every_copy_and_fill_names_its_stream():
    """With a current stream that is not the default one, nothing of quadpy's own goes to the default one."""
    driver = RecordingDriver()
    with simulated(driver), qp.create_stream() as stream, qp.use_stream(stream):
        handle = stream.handle
        a, b, f = ndarray(qp.f32, 100), ndarray(qp.i32, 100), field(qp.f32, 10)
        a.from_numpy(np.arange(100, dtype=np.float32))
        a[3] = a[4] + 1
        b.fill(3)
        f.fill(2)
        f[1] = f[2]
        c = ndarray(qp.f32, 100)
        c.copy_from(a)
        from_dlpack(c).to_numpy()
        a.to_numpy()
    work = [c for c in driver.calls if c.verb in ("copy_in", "copy_out", "copy_within", "fill", "alloc_async")]
    assert {call.verb for call in work} >= {"copy_in", "copy_out", "copy_within", "fill"}
    assert {call.arguments[-1] for call in work} == {handle}
    assert driver.races() == []


def test_s19_time_is_tested_by_a_clock_of_the_test_s_own(monkeypatch):
    """On the CPU an event's time is the host's; no test waits for it to pass."""
    now = iter([10.0, 12.5])
    monkeypatch.setattr(event_time, "perf_counter", lambda: next(now))
    with current("cpu"), qp.create_event(timing=True) as start, qp.create_event(timing=True) as end:
        start.record()
        end.record()
        assert start.elapsed_time(end) == 2500.0
        assert end.elapsed_time(start) == -2500.0


def test_warp_1702_zero_bytes_reach_no_driver():
    """HIP has no address for no bytes, and refuses to fill them."""
    driver = RecordingDriver()
    with simulated(driver) as device:
        before = len(driver.calls)
        a, b, f = ndarray(qp.f32, (0, 3)), ndarray(qp.f32, (0, 3)), field(qp.f32, 0)
        a.fill(1)
        a.from_numpy(np.zeros((0, 3), np.float32))
        b.copy_from(a)
        f.fill(2)
        assert (a.to_numpy().shape, f.to_numpy().shape, a.block, f.block) == ((0, 3), (0,), None, None)
        assert from_dlpack(a).shape == (0, 3)
        assert a.__cuda_array_interface__["shape"] == (0, 3)
        assert device.streams.malloc_async(0, 0) == 0
        device.streams.free_async(0, 0)
        device.staging.upload(0, 0, 0, 0)
        device.staging.download(0, 0, 0, 0)
        assert [verb for verb in verbs(driver)[before:] if verb.startswith(("alloc", "fill", "copy", "free"))] == []


def test_ocannl_488_garbage_in_a_capture_is_freed_after_it():
    """Finalizers that free inside a capture would become part of it."""
    driver = RecordingDriver()
    with simulated(driver) as device:
        for _ in range(10):
            cycle = [ndarray(qp.f32, 100)]
            cycle.append(cycle)
            del cycle
        stream = device.create_stream()
        with qp.graph.capture(stream):
            before = len(driver.calls)
            gc.collect()
            assert len(driver.calls) == before
        device.synchronize()
        assert device.memory_stats().blocks == 0
