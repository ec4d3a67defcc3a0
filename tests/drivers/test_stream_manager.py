"""The StreamManager on every driver: its verbs by handle, and what it refuses before a driver is asked."""

from __future__ import annotations

import threading

import pytest

from quadpy.errors import ArgumentError, DeviceError, EventError, StreamError
from quadpy.runtime.streams.manager import StreamManager

UNKNOWN = 0x1234


def test_the_verbs_are_those_of_the_design():
    verbs = {
        "create_stream", "destroy_stream", "synchronize_stream", "query_stream", "set_current_stream",
        "current_stream", "create_event", "destroy_event", "record_event", "synchronize_event", "query_event",
        "stream_wait_event", "elapsed_time", "malloc_async", "free_async",
    }  # fmt: skip
    assert verbs <= {name for name in vars(StreamManager) if not name.startswith("_")}


def test_streams_and_events_by_handle(device, read):
    manager = device.streams
    first, second = manager.create_stream(), manager.create_stream(priority=-1)
    ready = manager.create_event()
    source, target = manager.malloc_async(1 << 16, first), manager.malloc_async(1 << 16, second)
    device.driver.fill(source, 4, 1 << 16, first)
    manager.record_event(ready, first)
    manager.stream_wait_event(second, ready)
    device.driver.copy_within(target, source, 1 << 16, second)
    manager.synchronize_stream(second)
    manager.synchronize_event(ready)
    assert manager.query_stream(second)
    assert manager.query_event(ready)
    assert read(target, 1 << 16) == b"\4" * (1 << 16)
    manager.free_async(source, second)
    manager.free_async(target, second)
    for stream in (first, second):
        manager.destroy_stream(stream)
    manager.destroy_event(ready)
    assert manager.live() == {"streams": 0, "events": 0}


def test_s16_handles_are_0_on_the_cpu_and_only_there(device):
    made = {device.streams.create_stream(), device.streams.create_event()}
    assert (made == {0}) == (device.driver.name == "cpu")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("destroy_stream", (UNKNOWN,)),
        ("synchronize_stream", (UNKNOWN,)),
        ("query_stream", (UNKNOWN,)),
        ("set_current_stream", (UNKNOWN,)),
        ("malloc_async", (16, UNKNOWN)),
        ("free_async", (0, UNKNOWN)),
    ],
)
def test_an_unknown_stream_is_refused(device, verb, arguments):
    with pytest.raises(StreamError, match="0x1234 is not a stream"):
        getattr(device.streams, verb)(*arguments)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("destroy_event", (UNKNOWN,)),
        ("record_event", (UNKNOWN, 0)),
        ("synchronize_event", (UNKNOWN,)),
        ("query_event", (UNKNOWN,)),
        ("stream_wait_event", (0, UNKNOWN)),
        ("elapsed_time", (UNKNOWN, UNKNOWN)),
    ],
)
def test_an_unknown_event_is_refused(device, verb, arguments):
    with pytest.raises(EventError, match="0x1234 is not an event"):
        getattr(device.streams, verb)(*arguments)


@pytest.mark.needs("handles")
def test_destroyed_handles_are_refused(device):
    stream, event = device.streams.create_stream(), device.streams.create_event()
    device.streams.destroy_stream(stream)
    device.streams.destroy_event(event)
    with pytest.raises(StreamError):
        device.streams.destroy_stream(stream)
    with pytest.raises(EventError):
        device.streams.record_event(event, 0)


@pytest.mark.needs("handles")
def test_the_default_stream_is_not_destroyed(device):
    with pytest.raises(StreamError, match="not quadpy's to destroy"):
        device.streams.destroy_stream(0)


def test_s12_synchronize_of_handle_0_waits_for_the_default_stream(device):
    buffer = device.allocate(1 << 20, device.default_stream)
    device.driver.fill(buffer.pointer, 1, 1 << 20, device.default_stream.handle)
    device.streams.synchronize_stream(0)
    assert device.streams.query_stream(0)


def test_s13_the_current_stream_is_each_thread_s_own(device):
    mine = device.streams.create_stream()
    device.streams.set_current_stream(mine)
    barrier, seen = threading.Barrier(2), {}

    def work(name):
        seen[name, "first"] = device.streams.current_stream()
        own = device.streams.create_stream()
        device.streams.set_current_stream(own)
        barrier.wait(60)
        seen[name, "own"] = device.streams.current_stream() == own

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {("a", "first"): 0, ("b", "first"): 0, ("a", "own"): True, ("b", "own"): True}
    assert device.streams.current_stream() == mine
    device.streams.set_current_stream(0)


@pytest.mark.needs("handles")
def test_a_thread_whose_stream_was_destroyed_is_back_on_the_default_one(device):
    stream = device.streams.create_stream()
    device.streams.set_current_stream(stream)
    device.streams.destroy_stream(stream)
    again = device.streams.create_stream()  # drivers give the number out again
    with pytest.warns(RuntimeWarning, match="back on the default stream"):
        assert device.streams.current_stream() == 0
    assert device.streams.current_stream() == 0
    device.streams.destroy_stream(again)


def test_memory_by_address(device):
    assert device.streams.malloc_async(0, 0) == 0
    device.streams.free_async(0, 0)
    pointer = device.streams.malloc_async(100, 0)
    assert device.memory_stats().blocks == 1
    device.streams.free_async(pointer, 0)
    assert device.memory_stats().blocks == 0
    with pytest.raises(DeviceError, match="not an allocation of this device"):
        device.streams.free_async(pointer, 0)
    with pytest.raises(ArgumentError):
        device.streams.malloc_async(-1, 0)


def test_a_closed_device_refuses_every_verb(device):
    device.close()
    for verb, arguments in {
        "create_stream": (), "create_event": (), "synchronize_stream": (0,), "malloc_async": (8, 0), "query_event": (0,),
    }.items():  # fmt: skip
        with pytest.raises(DeviceError, match="was closed"):
            getattr(device.streams, verb)(*arguments)
    device.close()
