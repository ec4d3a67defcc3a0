"""Memory: copies, the driver's pool, its end, and many handles."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

import quadpy as qp
from quadpy.errors import QuadpyError
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import PoolPointer, StreamHandle
from quadpy.selftest.kernels import work as kernels
from quadpy.selftest.place import Place, counted, require, require_same
from quadpy.selftest.table import Skip, check

_POOL: Final = (
    "none is needed: quadpy's own allocator takes its place (QUADPY_ALLOCATOR=cache); update the GPU's driver"
)
_RESULTS: Final = "none is needed: quadpy copies the numbers; update the GPU's driver"
_DRIVER: Final = "check the system's log for errors of the GPU (dmesg), and update its driver"


@check("copies in and out, of odd sizes, across the staging buffers", "memory", remedy=_DRIVER)
def copies(place: Place) -> None:
    sizes = (0, 1, 3, 255, 4097, 70_001) if place.quick else (0, 1, 3, 255, 4097, 70_001, (5 << 20) + 3)
    for size in sizes:
        x = counted(size)
        require_same(np.arange(size, dtype=np.float32), x.to_numpy(), f"a copy of {size} floats")
        y = qp.ndarray(qp.f32, size)
        y.copy_from(x)
        require_same(np.arange(size, dtype=np.float32), y.to_numpy(), f"a copy of {size} floats on the device")


def _reused(device: Device, quick: bool) -> None:
    """Memory that is freed while other streams use it, and taken again at once, keeps its content until they are done."""
    streams = [device.create_stream() for _ in range(3)]
    for turn in range(6 if quick else 60):
        kept = []
        for number, stream in enumerate(streams):
            with qp.use_stream(stream):
                size = 1000 + 37 * ((turn + number) % 5)
                x = qp.ndarray(qp.f32, size)
                kernels.put(10.0 * turn + number, x)
                kernels.spin(x, 0)
                y = qp.ndarray(qp.f32, size)
                y.copy_from(x)
                kept.append((y, 10.0 * turn + number, size))
                del x  # its memory goes to whoever asks next
        device.synchronize()
        for y, value, size in kept:
            require_same(np.full(size, value, np.float32), y.to_numpy(), "memory that was freed and taken again")
    for stream in streams:
        stream.destroy()


def _require_apart(given: list[tuple[int, int]]) -> None:
    """Addresses and sizes of memory that is in use: no two overlap."""
    ranges = sorted((start, start + size) for start, size in given)
    apart = all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))
    require(apart, "the pool gave the same memory twice")


@check("the driver's memory pool: memory that several streams free and take at once", "pool", remedy=_POOL)
def pool(place: Place) -> None:
    place.needs_gpu("the CPU has no pool of memory")
    driver, nbytes = place.device.driver, 1 << 14 if place.quick else 1 << 20
    if "pool" not in driver.features:
        raise Skip("this driver has no pool of memory")
    streams = [driver.stream_create(0) for _ in range(3)]
    for turn in range(6 if place.quick else 60):
        live: list[tuple[PoolPointer, StreamHandle, int]] = []
        for number, stream in enumerate(streams):
            size, value = nbytes - 512 * (turn % 5), (3 * turn + number) % 251
            first = driver.alloc_async(size, stream)
            driver.fill(first, value, size, stream)
            second = driver.alloc_async(size, stream)
            _require_apart([(first, size), *((pointer, size) for pointer, _, size in live), (second, size)])
            driver.copy_within(second, first, size, stream)
            driver.free_async(first, stream)  # the next stream may get it, after the copy
            live.append((second, stream, size))
        driver.synchronize()
        for number, (pointer, stream, size) in enumerate(live):
            found = np.empty(size, np.uint8)
            place.device.staging.download(found.ctypes.data, pointer, size, stream)
            require_same(np.full(size, (3 * turn + number) % 251, np.uint8), found, "memory from the pool")
            driver.free_async(pointer, stream)
    driver.synchronize()
    driver.trim_pool()
    for stream in streams:
        driver.stream_destroy(stream)


@check("memory that several streams free and take at once", "memory", remedy=_DRIVER)
def reuse(place: Place) -> None:
    _reused(place.device, place.quick)


@check("trimming returns what is not used; what is used stays", "memory")
def trimming(place: Place) -> None:
    x = counted(10_000)
    junk = [counted(10_000 + k) for k in range(10)]
    del junk
    place.device.synchronize()
    place.device.memory.trim()
    require_same(np.arange(10_000, dtype=np.float32), x.to_numpy(), "memory after a trim")


@check("a request for more memory than there is is an error, after which the device still works", "memory")
def exhaustion(place: Place) -> None:
    place.needs_gpu("the CPU's memory is the system's")
    total = place.device.driver.info.total_memory
    try:
        qp.ndarray(qp.f32, total // 2)
    except QuadpyError as error:
        require("left" in str(error) or "memory" in str(error), f"another error than expected: {error}")
    else:
        raise AssertionError("twice the device's memory was allocated")
    require_same(np.arange(5, dtype=np.float32), counted(5).to_numpy(), "an array after that")


@check("there is memory for programs: 64 MiB, or 4 for --quick", "memory", remedy=_DRIVER)
def room(place: Place) -> None:
    count = 1 << (20 if place.quick else 24)
    x = qp.ndarray(qp.f32, count)
    kernels.put(2.0, x)
    require(x[0] == x[count - 1] == 2.0, "the ends of a large array differ from what a kernel wrote")


@check("kernels return numbers to the host", "mapped", remedy=_RESULTS)
def results(place: Place) -> None:
    for count in range(4 if place.quick else 400):
        found = kernels.total(counted(10 + count))
        expected = sum(range(10 + count))
        require(found == expected, f"a kernel returned {found}, and not {expected}")


@check("10,000 events and arrays, and hundreds of streams, at once", "handles", remedy=_DRIVER)
def handles(place: Place) -> None:
    events = [qp.create_event() for _ in range(1000 if place.quick else 10_000)]
    streams = [qp.create_stream() for _ in range(32 if place.quick else 256)]
    arrays = [qp.ndarray(qp.i32, 1) for _ in range(500 if place.quick else 10_000)]
    for number, event in enumerate(events):
        event.record(streams[number % len(streams)])
    for event in events:
        event.synchronize()
    for number, array in enumerate(arrays[::50]):
        array.fill(number)
    require([array[0] for array in arrays[::50]] == list(range(len(arrays[::50]))), "arrays share memory")
    for event in events:
        event.destroy()
    for stream in streams:
        stream.destroy()
