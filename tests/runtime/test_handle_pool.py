"""Handles of streams and events that are used again."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import Counter

import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import EventError, StreamError
from quadpy.graph import Graph
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import open_device
from quadpy.runtime.device.reaper import MAX_POOLED
from quadpy.runtime.drivers.cpu import CpuDriver

N = 4096


@pytest.fixture
def driver():
    return RecordingDriver()


@pytest.fixture
def device(driver):
    with Device(driver) as device:
        yield device
    assert driver.races() == []
    assert set(driver.left_open().values()) == {0}


def count(driver, verb):
    return [call.verb for call in driver.calls].count(verb)


@pytest.mark.parametrize("kind", ["stream", "event"])
@pytest.mark.parametrize("end", ["destroyed", "dropped"])
def test_one_handle_serves_one_object_after_another(device, driver, kind, end):
    create = getattr(device, f"create_{kind}")
    for _ in range(50):
        one = create()
        if end == "destroyed":
            one.destroy()
        del one
        device.reaper.drain()
    assert count(driver, f"{kind}_create") == 1
    assert count(driver, f"{kind}_destroy") == 0


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_an_object_that_was_destroyed_does_not_come_back_with_its_handle(device, kind):
    create = getattr(device, f"create_{kind}")
    old = create()
    handle = old.handle
    old.destroy()
    new = create()
    assert new.handle == handle
    assert old.destroyed
    with pytest.raises((StreamError, EventError), match="destroyed"):
        old.query()
    old.destroy()
    del old
    gc.collect()
    device.synchronize()
    assert not new.destroyed
    assert new.query()


def test_an_event_with_work_before_it_is_not_a_new_one(device, driver):
    buffer = device.allocate(N, device.default_stream)
    driver.fill(buffer.pointer, 1, N, 0)
    old = device.create_event()
    old.record(device.default_stream)
    handle = old.handle
    old.destroy()
    new = device.create_event()
    assert new.handle != handle
    assert new.query()
    device.synchronize()
    assert device.create_event().handle == handle  # its work is complete


def test_a_stream_with_pending_work_is_not_a_new_one(device, driver):
    old = device.create_stream()
    buffer = device.allocate(N, old)
    driver.fill(buffer.pointer, 1, N, old.handle)
    handle = old.handle
    old.destroy()
    new = device.create_stream()
    assert new.handle != handle
    assert new.query()
    device.synchronize()
    assert device.create_stream().handle == handle


def test_memory_of_a_stream_whose_handle_is_used_again_stays_in_order(device, driver):
    for _ in range(8):
        old = device.create_stream()
        buffer = device.allocate(N, old)
        driver.fill(buffer.pointer, 1, N, old.handle)
        old.synchronize()
        old.destroy()
        new = device.create_stream()
        assert new.timeline is not old.timeline
        device.memory.use([buffer.block], new.timeline)
        driver.fill(buffer.pointer, 2, N, new.handle)
        del buffer
        other = device.allocate(N, device.default_stream)
        driver.fill(other.pointer, 3, N, 0)
        new.destroy()
        del other
    device.synchronize()


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_a_handle_that_a_call_still_uses_serves_no_other_object(device, driver, kind):
    """A call keeps the owner until it returns; an object that is destroyed meanwhile leaves it to that call."""
    create = getattr(device, f"create_{kind}")
    old = create()
    call = old._take()  # as another thread's call of the driver
    old.destroy()
    new = create()
    assert new.handle != call.handle
    handle = call.handle
    del call
    assert create().handle == handle
    assert count(driver, f"{kind}_create") == 2


def test_an_event_that_threads_record_and_destroy_is_recorded_by_no_other(device, driver):
    """Each thread counts the records of its own handles; the driver's count of a handle's records must agree."""
    recorded, seen, lock = Counter(), Counter(), threading.Lock()
    plain = driver.event_record

    def record(event, stream):
        with lock:
            recorded[event, threading.get_ident()] += 1
        plain(event, stream)

    driver.event_record = record

    def work():
        mine = Counter()
        for turn in range(200):
            event = device.create_event()
            mine[event.handle, threading.get_ident()] += 1
            event.record(device.default_stream)
            if turn % 3:
                event.destroy()
            with pytest.raises(EventError) if turn % 3 else contextlib.nullcontext():
                event.query()
        with lock:
            seen.update(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorded == seen
    assert device.streams.live()["events"] == 0


def test_what_an_observer_knew_of_an_event_is_not_the_next_one_s(device):
    old = device.create_event()
    old._ref.observed = "of the old one"
    handle = old.handle
    old.destroy()
    old._ref.observed = "of no event"
    new = device.create_event()
    assert new.handle == handle
    assert new._ref.observed is None
    new.destroy()
    assert new._ref.observed is None


def test_an_object_knows_that_its_event_was_destroyed_by_handle(device):
    for _ in range(3):
        old = device.create_event()
        device.streams.destroy_event(old.handle)
        new = device.create_event()
        with pytest.raises(EventError, match="destroyed"):
            old.query()
        old.destroy()
        assert device.streams.query_event(new.handle)
        new.destroy()
        with pytest.raises(EventError, match="is not an event"):
            device.streams.destroy_event(0x1234)


def test_events_with_timing_and_streams_of_a_priority_are_made_anew(device, driver):
    for _ in range(3):
        device.create_event(timing=True).destroy()
        device.create_stream(-1).destroy()
    device.reaper.drain()
    assert count(driver, "event_destroy") == 3
    assert count(driver, "stream_destroy") == 3


@pytest.mark.parametrize("kind", ["stream", "event"])
def test_few_handles_are_kept(device, driver, kind):
    many = [getattr(device, f"create_{kind}")() for _ in range(3 * MAX_POOLED)]
    del many
    device.reaper.drain()
    device.reaper.drain()
    assert driver.left_open()[f"{kind}s"] == MAX_POOLED
    assert device.streams.live()[f"{kind}s"] == 0
    device.memory.trim()
    assert driver.left_open()[f"{kind}s"] == 0


def test_the_cpu_s_only_handle_is_never_destroyed():
    """Marks in its streams' work take it from among the spare ones, where there may be more than are kept."""
    with Device(CpuDriver()) as device:
        marks = [device.timelines.mark(device.timelines.default) for _ in range(3 * MAX_POOLED)]
        del marks
        device.memory.trim()
        assert device.streams.query_event(0)


def test_a_handle_that_a_drop_left_behind_names_nothing(device):
    event = device.create_event()
    handle = event.handle
    del event
    with pytest.raises(EventError, match="is not an event of this device"):
        device.streams.query_event(handle)


def test_the_event_of_the_cpu_is_there_when_spares_have_gone_back():
    device = open_device("cpu")
    graph = Graph(device)
    graph.add_empty()
    with graph.instantiate() as run:
        run.launch()
    device.synchronize()
    device.memory.trim()
    assert device.streams.query_event(0)


class TestSmallBlocks:
    """What the driver's pool is not asked for."""

    @pytest.fixture
    def pooled(self, driver):
        with Device(driver, "pool") as device:
            yield device
        assert driver.races() == []
        assert set(driver.left_open().values()) == {0}

    def test_an_array_after_another_takes_its_place(self, pooled, driver):
        stream = pooled.create_stream()
        for on in (pooled.default_stream, stream):
            before = count(driver, "alloc_async")
            for value in range(20):
                buffer = pooled.allocate(N, on)
                driver.fill(buffer.pointer, value, N, on.handle)
                del buffer
                pooled.reaper.drain()
            assert count(driver, "alloc_async") == before + 1
        assert count(driver, "free_async") == 0
        pooled.memory.trim()
        assert driver.left_open()["memory"] == 0

    def test_what_another_stream_used_goes_back(self, pooled, driver):
        stream = pooled.create_stream()
        buffer = pooled.allocate(N, pooled.default_stream)
        pooled.memory.use([buffer.block], stream.timeline)
        driver.fill(buffer.pointer, 1, N, stream.handle)
        del buffer
        pooled.reaper.drain()
        assert count(driver, "free_async") == 1

    def test_few_blocks_are_kept_and_no_large_ones(self, pooled, driver):
        many = [pooled.allocate(N, pooled.default_stream) for _ in range(20)]
        large = pooled.allocate(1 << 20, pooled.default_stream)
        del many, large
        pooled.synchronize()
        pooled.synchronize()
        assert 0 < driver.left_open()["memory"] < 10

    def test_what_a_stream_kept_goes_back_after_its_end(self, pooled, driver):
        for _ in range(5):
            stream = pooled.create_stream()
            buffer = pooled.allocate(N, stream)
            driver.fill(buffer.pointer, 1, N, stream.handle)
            del buffer
            pooled.reaper.drain()
            stream.destroy()
        other = pooled.allocate(N, pooled.default_stream)
        del other
        again = [pooled.allocate(N, pooled.default_stream) for _ in range(3)]
        pooled.synchronize()
        assert driver.left_open()["memory"] == len(again)

    def test_memory_that_is_short_comes_from_what_is_kept(self):
        driver = RecordingDriver(capacity=4 * N)
        with Device(driver, "pool") as device:
            buffer = device.allocate(2 * N, device.default_stream)
            del buffer
            device.reaper.drain()
            assert device.allocate(4 * N, device.default_stream).pointer
