"""The allocators and DeviceMemory over the recording driver: what is reused when, and what orders it."""

from __future__ import annotations

import gc
import random

import pytest
from simulated import simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.errors import DeviceError, DriverError, OutOfDeviceMemory
from quadpy.runtime.device.device import Device
from quadpy.runtime.memory.allocators.cache import size_class

N = 4096


@pytest.fixture
def driver():
    return RecordingDriver()


@pytest.fixture
def device(driver):
    with Device(driver, "cache") as opened:
        yield opened


def verbs(driver):
    return [call.verb for call in driver.calls]


@pytest.mark.parametrize("nbytes", [1, 511, 512, 513, 4097, 10**6, 2**20, 2**20 + 1, 3 * 10**9])
def test_size_classes_waste_little(nbytes):
    size = size_class(nbytes)
    assert nbytes <= size <= max(nbytes + 511, nbytes * 1.125)
    assert size % 512 == 0
    assert size_class(size) == size


def test_the_cache_gives_a_stream_its_memory_back_without_a_wait(device, driver):
    stream = device.create_stream()
    pointer = device.streams.malloc_async(N, stream.handle)
    device.driver.fill(pointer, 1, N, stream.handle)
    device.streams.free_async(pointer, stream.handle)
    del driver.calls[:]
    assert device.streams.malloc_async(N - 1, stream.handle) == pointer
    assert verbs(driver) == []
    device.streams.free_async(pointer, stream.handle)
    stream.destroy()


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_an_array_takes_the_place_of_one_like_it_that_has_just_died(allocator, driver):
    with simulated(driver, allocator) as device:
        for n in range(4):
            array = qp.ndarray(qp.f32, (N, 2))
            assert not array.to_numpy().any()
            array.fill(n + 1)
            pointer, stats = array.pointer, device.memory_stats()
            del array
            del driver.calls[:]
            array = qp.ndarray(qp.f32, 2 * N)  # of another shape
            assert array.pointer == pointer
            assert verbs(driver) == ["fill"]
            assert device.memory_stats() == stats
            assert array.shape == (2 * N,)
            assert not array.to_numpy().any()
            del array
        assert device.memory_stats().blocks == 1  # it waits to be drained
        qp.sync()
        assert device.memory_stats().blocks == 0
    assert driver.left_open()["memory"] == 0


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_an_array_does_not_take_the_place_of_one_that_another_stream_used(allocator, driver):
    with simulated(driver, allocator) as device, qp.create_stream() as home, qp.create_stream() as guest:
        given = qp.ndarray(qp.f32, N, stream=home)
        device.memory.use([given.block], guest.timeline, writes=False)
        target = qp.ndarray(qp.f32, N, stream=guest)
        driver.copy_within(target.pointer, given.pointer, 4 * N, guest.handle)
        pointer = given.pointer
        del given
        one, other = qp.ndarray(qp.f32, N, stream=home), qp.ndarray(qp.f32, N, stream=guest)
        if allocator == "cache":  # the pool's own memory is ordered by its free
            assert pointer not in (one.pointer, other.pointer)
        one.fill(1, stream=home)
        other.fill(2, stream=guest)
        qp.sync()
        assert (one.to_numpy() == 1).all()
        assert (other.to_numpy() == 2).all()
    assert driver.races() == []


def test_an_array_of_another_size_or_stream_does_not_take_its_place(driver):
    with simulated(driver, "cache"), qp.create_stream() as stream:
        for make in (lambda: qp.ndarray(qp.f32, 4 * N), lambda: qp.ndarray(qp.f32, N, stream=stream)):
            before = qp.ndarray(qp.f32, N)
            pointer = before.pointer
            del before
            assert make().pointer != pointer


def test_another_stream_gets_memory_only_when_its_users_are_complete(device, driver):
    home, other = device.create_stream(), device.create_stream()
    pointer = device.streams.malloc_async(N, home.handle)
    driver.fill(pointer, 1, N, home.handle)
    device.streams.free_async(pointer, home.handle)
    fresh = device.streams.malloc_async(N, other.handle)
    assert fresh != pointer  # home still fills it
    home.synchronize()
    assert device.streams.malloc_async(N, other.handle) == pointer
    assert driver.races() == []


def test_memory_with_a_guest_waits_for_the_guest(device, driver):
    home, guest = device.create_stream(), device.create_stream()
    buffer = device.allocate(N, home)
    device.memory.use([buffer.block], guest.timeline)
    driver.fill(buffer.pointer, 1, N, guest.handle)
    pointer = buffer.pointer
    del buffer
    assert device.allocate(N, home).pointer != pointer
    guest.synchronize()
    assert pointer in {b.pointer for b in [device.allocate(N, home), device.allocate(N, home)]}
    assert driver.races() == []


def test_memory_with_several_guests_is_free_when_all_are_complete(device, driver):
    home, *guests = (device.create_stream() for _ in range(4))
    for _ in range(8):
        buffer = device.allocate(N, home)
        for guest in guests:
            device.memory.use([buffer.block], guest.timeline)
    del buffer
    home.destroy()
    device.memory.trim()
    assert device.memory_stats().reserved == 0
    assert len(driver.memory) == 0


def test_a_first_use_on_another_stream_waits_for_the_allocation_and_its_fill(device, driver):
    home, guest = device.create_stream(), device.create_stream()
    buffers = [device.allocate(N, home) for _ in range(3)]
    for buffer in buffers:
        driver.fill(buffer.pointer, 0, N, home.handle)
    del driver.calls[:]
    device.memory.use([buffer.block for buffer in buffers], guest.timeline)
    assert verbs(driver).count("stream_wait") == 1  # one wait for all that came from one stream
    for buffer in buffers:
        driver.fill(buffer.pointer, 1, N, guest.handle)
    device.memory.use([buffer.block for buffer in buffers], guest.timeline)
    device.memory.use([buffer.block for buffer in buffers], home.timeline)
    assert verbs(driver).count("stream_wait") == 1
    assert driver.races() == []


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_a_use_that_the_runtime_is_not_told_of_shows_as_a_race(allocator, driver):
    """The check of the check: without ``use``, the guest's work is not ordered."""
    with Device(driver, allocator) as device:
        home, guest = device.create_stream(), device.create_stream()
        buffer = device.allocate(N, home)
        driver.fill(buffer.pointer, 0, N, home.handle)
        driver.fill(buffer.pointer, 1, N, guest.handle)
        assert ("fill", "fill") in [(a.kind, b.kind) for a, b in driver.races()]


def test_s3_the_pool_frees_on_the_home_stream_after_every_guest(driver):
    with Device(driver, "pool") as device:
        home, *guests = (device.create_stream() for _ in range(3))
        buffer = device.allocate(N, home)
        for guest in guests:
            device.memory.use([buffer.block], guest.timeline, writes=False)
            driver.copy_within(device.allocate(N, guest).pointer, buffer.pointer, N, guest.handle)
        del buffer
        device.synchronize()
        frees = [call.arguments[1] for call in driver.calls if call.verb == "free_async"]
        assert frees.count(home.handle) == 1
        assert driver.races() == []


@pytest.mark.parametrize("allocator", ["cache", "pool"])
def test_memory_inherits_the_last_event_of_a_destroyed_stream(allocator, driver):
    with Device(driver, allocator) as device:
        home, guest = device.create_stream(), device.create_stream()
        buffer = device.allocate(N, home)
        device.memory.use([buffer.block], guest.timeline)
        driver.fill(buffer.pointer, 1, N, guest.handle)
        guest.destroy()
        device.reaper.trim()
        again = device.create_stream()
        assert again.handle == 0x1010  # the number of the destroyed stream, which the memory must not mistake for it
        home.destroy()
        pointer = buffer.pointer
        del buffer
        new = device.allocate(N, again)
        assert new.pointer != pointer
        driver.fill(new.pointer, 2, N, again.handle)
        device.synchronize()
        assert driver.races() == []


def test_finalizers_call_no_driver(device, driver):
    buffers = [device.allocate(N, device.default_stream) for _ in range(5)]
    del driver.calls[:]
    del buffers
    assert driver.calls == []
    assert len(device.reaper) == 5
    device.synchronize()
    assert len(device.reaper) == 0


def test_a_free_that_fails_leaves_the_rest_queued(device, driver):
    streams = [device.create_stream() for _ in range(2)]
    del streams
    driver.failures["stream_query"] = DriverError("no")
    with pytest.raises(DriverError):
        device.synchronize()
    device.synchronize()
    assert len(device.reaper) == 0
    driver.failures["stream_destroy"] = DriverError("no")
    with pytest.raises(DriverError):
        device.reaper.trim()
    gc.collect()  # the errors refer to what was under way
    device.reaper.trim()
    assert [call.verb for call in driver.calls].count("stream_destroy") == 2


def test_out_of_memory_is_retried_once_after_everything_unused_went_back():
    driver = RecordingDriver(capacity=10 * N)
    with Device(driver, "cache") as device:
        kept = device.allocate(4 * N, device.default_stream)
        dropped = device.allocate(5 * N, device.default_stream)
        del dropped
        assert device.allocate(6 * N, device.default_stream).pointer
        with pytest.raises(
            OutOfDeviceMemory, match=r"24\.0 KiB of 40\.0 KiB are free, and quadpy uses .* in 1 allocations"
        ):
            device.allocate(7 * N, device.default_stream)
        assert verbs(driver).count("synchronize") == 2
        del kept


def test_a_size_of_another_class_is_not_reused(device):
    small = device.streams.malloc_async(512, 0)
    device.streams.free_async(small, 0)
    assert device.streams.malloc_async(100_000, 0) != small


def test_freeing_inside_an_allocation_is_refused(device):
    pointer = device.streams.malloc_async(N, 0)
    with pytest.raises(DeviceError, match="inside one"):
        device.streams.free_async(pointer + 8, 0)


def test_s4_without_a_pool_the_cache_is_taken(driver):
    driver.features -= {"pool"}
    with pytest.warns(RuntimeWarning, match=r"has no memory pool .* quadpy's cache is used"):
        device = Device(driver, "pool")
    assert device.memory_stats().allocator == "cache"
    device.close()


@pytest.mark.parametrize("allocator", ["cache", "pool"])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_against_a_sequential_oracle(allocator, seed):
    """Fills and copies on random streams, ordered by events as the data flows; memory, streams come and go."""
    chance, driver = random.Random(seed), RecordingDriver()
    with Device(driver, allocator) as device:
        streams = [device.create_stream() for _ in range(3)]
        buffers, oracle, pending = [], [], {}
        event = device.create_event()
        for _ in range(120):
            for lane in driver.simulation.ready():
                if chance.random() < 0.3:
                    driver.simulation.step(lane)
            action, stream = chance.randrange(5), chance.choice(streams)
            if action == 0 or len(buffers) < 2:
                buffers.append(device.allocate(64, stream))
                driver.fill(buffers[-1].pointer, 0, 64, stream.handle)
                oracle.append(0)
                pending[id(buffers[-1])] = stream
            elif action == 1 and len(buffers) > 2:
                place = chance.randrange(len(buffers))
                buffers.pop(place)
                oracle.pop(place)
            elif action == 2:
                streams[streams.index(stream)] = device.create_stream()
                pending = {key: used for key, used in pending.items() if used is not stream or stream.synchronize()}
                stream.destroy()
            else:
                target, source = chance.sample(range(len(buffers)), 2)
                for buffer in (buffers[target], buffers[source]):
                    if (before := pending.get(id(buffer))) is not None:
                        event.record(before)
                        event.wait(stream)
                    device.memory.use([buffer.block], stream.timeline)
                    pending[id(buffer)] = stream
                driver.copy_within(buffers[target].pointer, buffers[source].pointer, 64, stream.handle)
                driver.fill(buffers[target].pointer, (value := chance.randrange(256)), 32, stream.handle)
                oracle[target] = value
        device.synchronize()
        assert [driver.memory.holds(buffer.pointer, 64) for buffer in buffers] == [True] * len(buffers)
        assert [first_byte(buffer) for buffer in buffers] == oracle
        assert driver.races() == []


def first_byte(buffer):
    import ctypes

    return ctypes.string_at(buffer.pointer, 1)[0]
