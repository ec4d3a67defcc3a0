"""Device memory on every driver and both allocators: order, reuse, lifetime, copies from and to the host."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from quadpy.errors import OutOfDeviceMemory
from quadpy.runtime.memory.staging import CHUNK

N = 1 << 16


def fill(device, buffer, value, stream):
    device.memory.use([buffer.block], stream.timeline)
    device.driver.fill(buffer.pointer, value, buffer.nbytes, stream.handle)


def upload(device, target, array, stream):
    device.staging.upload(target, array.ctypes.data, array.nbytes, stream.handle)


def download(device, array, source, stream):
    device.staging.download(array.ctypes.data, source, array.nbytes, stream.handle)


def test_lifetime_memory_dropped_while_another_stream_uses_it(device, read):
    """Drop a buffer that a guest still reads, allocate the same size at once, fill it: the guest saw the old bytes."""
    with device.create_stream() as home, device.create_stream() as guest:
        kept = device.allocate(N, guest)
        for value in range(1, 6):
            buffer = device.allocate(N, home)
            fill(device, buffer, value, home)
            device.memory.use([buffer.block], guest.timeline, writes=False)
            device.driver.copy_within(kept.pointer, buffer.pointer, N, guest.handle)
            del buffer
            new = device.allocate(N, home)
            fill(device, new, 99, home)
            assert read(kept.pointer, N, guest) == bytes([value]) * N
            del new
        del kept


def test_lifetime_memory_outlives_the_stream_it_came_from(device, read):
    stream = device.create_stream()
    buffer = device.allocate(N, stream)
    fill(device, buffer, 7, stream)
    stream.destroy()
    device.memory.use([buffer.block], device.default_stream.timeline)
    assert read(buffer.pointer, N, device.default_stream) == b"\7" * N
    del buffer
    assert device.allocate(N, device.default_stream).pointer


def test_destroying_a_stream_does_not_free_memory_under_its_work(device, read):
    with device.create_stream() as home:
        kept = device.allocate(N, home)
        for value in range(1, 4):
            guest = device.create_stream()
            buffer = device.allocate(N, home)
            fill(device, buffer, value, guest)
            device.memory.use([kept.block], guest.timeline)
            device.driver.copy_within(kept.pointer, buffer.pointer, N, guest.handle)
            guest.destroy()
            del buffer
            fill(device, device.allocate(N, home), 99, home)
            device.memory.follow_writers(kept.block, home.timeline)
            assert read(kept.pointer, N, home) == bytes([value]) * N
        del kept


def test_s2_an_upload_is_ordered_on_its_stream(device, read):
    """A long fill on one stream, an upload on another, both to memory of their own and then to the same."""
    with device.create_stream() as busy, device.create_stream() as stream, device.create_event() as event:
        large, small = device.allocate(1 << 19, busy), device.allocate(N, stream)
        fill(device, large, 1, busy)
        data = np.arange(N, dtype=np.uint8)
        upload(device, small.pointer, data, stream)
        data[:] = 0  # what was passed may change as soon as the call returns
        assert read(small.pointer, N, stream) == bytes(np.arange(N, dtype=np.uint8))
        event.record(busy)
        event.wait(stream)
        device.memory.use([large.block], stream.timeline)
        upload(device, large.pointer, np.full(N, 2, np.uint8), stream)
        assert set(read(large.pointer, N, stream)) == {2}
        assert set(read(large.pointer + N, N, stream)) == {1}
        del large, small


@pytest.mark.parametrize("nbytes", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_host_copies_of_any_size(device, nbytes):
    stream = device.default_stream
    buffer, data = device.allocate(nbytes, stream), np.random.default_rng(nbytes).integers(0, 255, nbytes, np.uint8)
    back = np.zeros_like(data)
    upload(device, buffer.pointer, data, stream)
    download(device, back, buffer.pointer, stream)
    assert np.array_equal(back, data)


def test_a_size_of_0_needs_no_memory(device):
    buffer = device.allocate(0, device.default_stream)
    assert (buffer.pointer, buffer.block) == (0, None)
    assert device.memory_stats().blocks == 0


def test_memory_stats_count_what_is_alive(device):
    before = device.memory_stats()
    buffers = [device.allocate(1000, device.default_stream) for _ in range(3)]
    stats = device.memory_stats()
    assert stats.blocks == before.blocks + 3
    assert stats.used >= 3000
    assert stats.reserved >= stats.used
    del buffers
    device.synchronize()
    after = device.memory_stats()
    assert (after.blocks, after.used) == (0, 0)
    assert after.peak == stats.used
    assert after.allocator in ("cache", "pool")


def test_memory_in_a_cycle_of_garbage_is_freed_later(device):
    cycle = [device.allocate(N, device.default_stream)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    device.synchronize()
    assert device.memory_stats().blocks == 0


def test_out_of_memory_says_how_much_there_is(device):
    alive = device.allocate(5000, device.default_stream)
    with pytest.raises(
        OutOfDeviceMemory, match=r"has no 1048576\.0 GiB left: .* are free, and quadpy uses .* in 1 allocation"
    ):
        device.allocate(1 << 50, device.default_stream)
    with pytest.raises(MemoryError):
        device.streams.malloc_async(1 << 50, 0)
    assert device.allocate(5000, device.default_stream).pointer != alive.pointer


def test_s3_what_one_allocator_made_the_other_never_frees(device):
    """The pool's memory goes through free_async alone, plain memory through free alone."""
    with device.create_stream() as stream:
        pointers = [device.streams.malloc_async(size, stream.handle) for size in (10, 5000, N)]
        for pointer in pointers:
            device.streams.free_async(pointer, stream.handle)
        stream.synchronize()
    device.memory.trim()
    assert device.memory_stats().used == 0
    if calls := getattr(device.driver, "calls", None):
        verbs = {call.verb for call in calls}
        pool = device.memory.allocator == "pool"
        assert verbs & {"alloc", "free", "alloc_async", "free_async"} == (
            {"alloc_async", "free_async"} if pool else {"alloc", "free"}
        )


def test_many_buffers_on_many_streams_leave_nothing(device):
    streams = [device.create_stream() for _ in range(3)]
    for round_ in range(20):
        for stream in streams:
            buffer = device.allocate(256 * (1 + round_ % 5), stream)
            fill(device, buffer, round_, streams[round_ % 3])
    del buffer
    device.synchronize()
    for stream in streams:
        stream.destroy()
    device.memory.trim()
    stats = device.memory_stats()
    assert (stats.used, stats.blocks) == (0, 0)


def test_a_host_buffer_may_be_any_memory(device):
    text = ctypes.create_string_buffer(b"quadpy", 6)
    buffer = device.allocate(6, device.default_stream)
    device.staging.upload(buffer.pointer, ctypes.addressof(text), 6, device.default_stream.handle)
    back = np.zeros(6, np.uint8)
    download(device, back, buffer.pointer, device.default_stream)
    assert bytes(back) == b"quadpy"
