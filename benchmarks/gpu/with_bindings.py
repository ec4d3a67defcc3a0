"""Bare calls of cuda-bindings: a lower bound for Python programs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver

from gpu.cuda_c.library import CUBIN, DeviceArray, Timer, synchronize
from gpu.workloads import ALLOCATION, SMALL, STEP
from harness.bench import Arrays, HostBench
from harness.processes import Options

__all__ = ["BUILDERS", "Timer", "start", "synchronize"]

_kernels: dict[str, Any] = {}


def _done(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{status.name}")
    return values[0] if len(values) == 1 else tuple(values)


def start(options: Options) -> None:
    DeviceArray(np.zeros(1, np.float32))  # the runtime makes the primary context current
    image = (Path(os.environ["BENCHMARK_CUDA_C"]) / CUBIN).read_bytes()
    _kernels["module"] = module = _done(driver.cuModuleLoadData(image))
    for name in ("launch0", "launch2", "launch8", "add"):
        _kernels[name] = _done(driver.cuModuleGetFunction(module, name.encode()))
    pool = _done(driver.cuDeviceGetDefaultMemPool(0))
    attribute = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    _done(driver.cuMemPoolSetAttribute(pool, attribute, driver.cuuint64_t(2**64 - 1)))


class _Launch:
    """A kernel with its arguments laid out once, as `cuLaunchKernel` takes them: by an array of their addresses."""

    def __init__(self, name: str, n: int, arrays: list[DeviceArray], blocks: int = 1) -> None:
        self.arrays, self.blocks, self.kernel = arrays, blocks, _kernels[name]
        self.values = [ctypes.c_int(n), *(ctypes.c_void_p(array.pointer.value) for array in arrays)]
        self.addresses = (ctypes.c_void_p * len(self.values))(*(ctypes.addressof(value) for value in self.values))

    def repeat(self, count: int) -> None:
        launch, kernel, blocks, given = (
            driver.cuLaunchKernel,
            self.kernel,
            self.blocks,
            ctypes.addressof(self.addresses),
        )
        for _ in range(count):
            launch(kernel, blocks, 1, 1, 128, 1, 1, 0, 0, given, 0)


def _launch(name: str, count: int) -> Callable[[Arrays], HostBench]:
    def build(_: Arrays) -> HostBench:
        launch = _Launch(name, 1, [DeviceArray(np.full(16, i, np.float32)) for i in range(count)])

        def check() -> str | None:
            launch.repeat(1)
            right = not count or launch.arrays[0].download()[0] == sum(range(count))
            return None if right else "the sum is wrong"

        return HostBench(launch.repeat, check=check)

    return build


def build_step(_: Arrays) -> HostBench:
    arrays = [DeviceArray(np.ones(SMALL, np.float32)), DeviceArray(np.zeros(SMALL, np.float32))]
    launch = _Launch("add", SMALL, arrays, SMALL // 128)

    def check() -> str | None:
        launch.repeat(STEP)
        return None if (arrays[1].download() == STEP).all() else "the sums are wrong"

    return HostBench(lambda count: launch.repeat(count * STEP), count=50, waits=True, check=check)


def _streams(count: int) -> list[Any]:
    return [_done(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)) for _ in range(count)]


def build_event(_: Arrays) -> HostBench:
    here, there = _streams(2)
    event = _done(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value))

    def submit(count: int) -> None:
        for _ in range(count):
            driver.cuEventRecord(event, here)
            driver.cuStreamWaitEvent(there, event, 0)

    return HostBench(submit)


def build_event_host(_: Arrays) -> HostBench:
    (stream,) = _streams(1)
    event = _done(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value))

    def submit(count: int) -> None:
        for _ in range(count):
            driver.cuEventRecord(event, stream)
            driver.cuEventSynchronize(event)

    return HostBench(submit)


def build_allocate(_: Arrays) -> HostBench:
    def submit(count: int) -> None:
        for _ in range(count):
            driver.cuMemFreeAsync(driver.cuMemAllocAsync(ALLOCATION, 0)[1], 0)

    return HostBench(submit)


BUILDERS = {
    "launch0": _launch("launch0", 0),
    "launch2": _launch("launch2", 2),
    "launch8": _launch("launch8", 8),
    "step": build_step,
    "event": build_event,
    "event_host": build_event_host,
    "allocate": build_allocate,
}
