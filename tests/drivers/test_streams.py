"""Stream and Event objects: the same checks, errors and results on every driver."""

from __future__ import annotations

import gc
import threading

import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import DeviceError, EventError, StreamError
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.cpu import CpuDriver
from quadpy.runtime.drivers.gpu import GpuDriver
from quadpy.runtime.streams.stream import Stream, use_stream


def test_producer_and_consumer_on_two_streams(device, read):
    """The example of the design, with fills and copies for kernels."""
    n = 1 << 16
    x, y = (device.allocate(n, device.default_stream) for _ in range(2))
    with device.create_stream() as s1, device.create_stream() as s2, device.create_event() as ready:
        for value in range(3):
            device.memory.use([x.block], s1.timeline)
            device.driver.fill(x.pointer, value, n, s1.handle)
            ready.record(s1)
            ready.wait(s2)
            device.memory.use([x.block, y.block], s2.timeline)
            device.driver.copy_within(y.pointer, x.pointer, n, s2.handle)
            s2.synchronize()
            assert s2.query()
            assert read(y.pointer, n, s2) == bytes([value]) * n
            ready.record(s2)
            ready.wait(s1)


def test_diamond_of_streams(device, read):
    """One source, two branches, one join; each arm on a stream of its own."""
    n = 1 << 14
    source, left, right, joined = (device.allocate(n, device.default_stream) for _ in range(4))
    with device.create_stream() as other, device.create_event() as fork, device.create_event() as join:
        main = device.default_stream
        device.driver.fill(source.pointer, 6, n, main.handle)
        fork.record(main)
        fork.wait(other)
        device.driver.copy_within(left.pointer, source.pointer, n, main.handle)
        device.memory.use([source.block, right.block], other.timeline)
        device.driver.copy_within(right.pointer, source.pointer, n, other.handle)
        join.record(other)
        join.wait(main)
        device.driver.copy_within(joined.pointer, right.pointer, n, main.handle)
        assert read(joined.pointer, n) == read(left.pointer, n) == b"\6" * n


def test_destroy_is_idempotent_and_with_destroys(device):
    with device.create_stream() as stream, device.create_event() as event:
        event.record(stream)
    assert stream.destroyed
    assert event.destroyed
    stream.destroy()
    event.destroy()
    assert "destroyed" in repr(stream)


def test_use_of_a_destroyed_stream_is_an_error(device):
    stream, event = device.create_stream(), device.create_event()
    stream.destroy()
    uses = [
        stream.synchronize, stream.query, stream.__cuda_stream__, lambda: stream.handle, lambda: event.record(stream),
        lambda: event.wait(stream), lambda: device.stream_for(stream), lambda: use_stream(stream).__enter__(),
        stream.__enter__,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(StreamError, match="the stream was destroyed"):
            use()
    event.destroy()


def test_use_of_a_destroyed_event_is_an_error(device):
    event, other = device.create_event(timing=True), device.create_event(timing=True)
    other.record()
    event.destroy()
    uses = [
        event.synchronize, event.query, event.record, event.wait, lambda: event.handle, event.__enter__,
        lambda: event.elapsed_time(other), lambda: other.elapsed_time(event),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(EventError, match="the event was destroyed"):
            use()
    other.destroy()


def test_an_event_never_recorded_is_complete_and_waits_for_nothing(device):
    with device.create_event() as event:
        assert not event.recorded
        assert event.query()
        event.synchronize()
        event.wait()


def test_elapsed_time(device):
    with device.create_event(timing=True) as start, device.create_event(timing=True) as end:
        with pytest.raises(EventError, match="never recorded"):
            start.elapsed_time(end)
        start.record()
        with pytest.raises(EventError, match="never recorded"):
            start.elapsed_time(end)
        end.record()
        end.synchronize()
        assert start.elapsed_time(end) >= 0
        assert start.elapsed_time(start) == 0
        assert end.elapsed_time(start) <= 0
        with device.create_event() as plain:
            plain.record()
            plain.synchronize()
            with pytest.raises(EventError, match="with timing"):
                start.elapsed_time(plain)


def test_objects_of_another_device_are_refused(device):
    with Device(CpuDriver()) as cpu, cpu.create_stream() as stream, cpu.create_event(timing=True) as event:
        with device.create_event(timing=True) as mine:
            with pytest.raises(StreamError, match="cannot be recorded on a stream of"):
                mine.record(stream)
            with pytest.raises(EventError, match="two events of one device"):
                mine.elapsed_time(event)
        if device.driver.name != "cpu":
            with pytest.raises(EventError, match="cannot wait for an event of"):
                event.wait(device.default_stream)


def test_objects_of_a_closed_device_are_refused(device):
    stream, event = device.create_stream(), device.create_event()
    device.close()
    with pytest.raises(StreamError, match="a device that was closed"):
        stream.synchronize()
    with pytest.raises(StreamError, match="a device that was closed"):
        device.default_stream.query()
    with pytest.raises(EventError, match="a device that was closed"):
        event.query()
    with pytest.raises(DeviceError, match="was closed"):
        device.create_stream()
    stream.destroy()
    event.destroy()


def test_the_default_stream_is_there_to_stay(device):
    assert device.default_stream.handle == 0
    with pytest.raises(StreamError, match="cannot be destroyed"):
        device.default_stream.destroy()
    device.default_stream.synchronize()


def test_use_stream_is_for_one_thread_and_ends_with_its_block(device):
    seen = []
    with device.create_stream() as outer, device.create_stream() as inner:
        with use_stream(outer) as same:
            assert same is outer is device.current_stream()
            with use_stream(inner):
                assert device.current_stream() is inner
                thread = threading.Thread(target=lambda: seen.append(device.current_stream()))
                thread.start()
                thread.join()
            assert device.current_stream() is outer
        assert device.current_stream() is device.default_stream
    assert seen == [device.default_stream]


def test_use_stream_ends_after_an_exception(device):
    def fail():
        raise KeyError

    with device.create_stream() as stream:
        with pytest.raises(KeyError), use_stream(stream):
            fail()
        assert device.current_stream() is device.default_stream


def test_destroying_the_current_stream_resets_the_thread(device):
    with use_stream(device.create_stream()) as stream:
        with pytest.warns(RuntimeWarning, match="back on the default stream"):
            stream.destroy()
        assert device.current_stream() is device.default_stream
        stream.destroy()
    assert device.current_stream() is device.default_stream


def test_destroying_another_thread_s_current_stream_resets_that_thread(device):
    stream, entered, go, seen = device.create_stream(), threading.Event(), threading.Event(), []

    def work():
        with use_stream(stream):
            entered.set()
            go.wait(60)
            with pytest.warns(RuntimeWarning, match="back on the default stream"):
                seen.append(device.current_stream())

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(60)
    stream.destroy()
    go.set()
    thread.join()
    assert seen == [device.default_stream]


def test_a_stream_that_is_set_by_its_handle_is_current(device):
    with device.create_stream() as stream:
        device.streams.set_current_stream(stream.handle)
        assert device.current_stream().handle == stream.handle
        device.streams.set_current_stream(0)


def test_events_go_to_the_current_stream(device):
    with device.create_stream() as stream, device.create_event() as event, use_stream(stream):
        event.record()
        event.wait()
    assert device.current_stream() is device.default_stream


def test_dropped_streams_and_events_are_freed_by_the_device(device):
    """S8 and the finalizers: dropping calls no driver, the next synchronize frees."""
    before = device.streams.live()
    stream, event = device.create_stream(), device.create_event()
    event.record(stream)
    calls = len(getattr(device.driver, "calls", ()))
    del stream, event
    gc.collect()
    assert len(getattr(device.driver, "calls", ())) == calls
    device.synchronize()
    assert device.streams.live() == before


def test_cuda_stream_protocol(device):
    with device.create_stream() as stream:
        assert stream.__cuda_stream__() == (0, stream.handle)

        class Foreign:
            def __cuda_stream__(self):
                return stream.__cuda_stream__()

        borrowed = device.stream_for(Foreign())
        assert borrowed.handle == stream.handle
        borrowed.destroy()
        stream.synchronize()
    for wrong in (7, "stream", object()):
        with pytest.raises(StreamError, match="is not a stream"):
            device.stream_for(wrong)


def test_the_default_stream_is_borrowed_by_handle_0(device):
    with Stream.from_handle(0, device) as borrowed:
        assert borrowed.handle == 0
        borrowed.synchronize()
    device.default_stream.synchronize()


def test_an_unknown_handle_is_not_borrowed(device):
    if isinstance(device.driver, GpuDriver):
        pytest.skip("vendors do not check every handle that they are asked about")
    with pytest.raises(StreamError, match="0x7777 is not a stream"):
        Stream.from_handle(0x7777, device)


def test_many_threads_with_streams_of_their_own(device, read):
    n, errors = 1 << 12, []

    def work(value):
        try:
            with device.create_stream() as stream, device.create_event() as event, use_stream(stream):
                for _ in range(3):
                    buffer = device.allocate(n, device.current_stream())
                    device.driver.fill(buffer.pointer, value, n, stream.handle)
                    event.record()
                    assert read(buffer.pointer, n) == bytes([value]) * n
                    event.synchronize()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_one_stream_shared_by_threads(device, read):
    with device.create_stream() as stream:
        buffers = [device.allocate(64, stream) for _ in range(4)]

        def work(value, pointer):
            device.driver.fill(pointer, value, 64, stream.handle)
            stream.synchronize()

        threads = [threading.Thread(target=work, args=(i, buffer.pointer)) for i, buffer in enumerate(buffers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [read(b.pointer, 64, stream)[0] for b in buffers] == [0, 1, 2, 3]
        del buffers


def test_destroy_waits_for_calls_of_other_threads():
    """A handle that another thread's call uses is given back when that call returns."""
    driver = RecordingDriver()
    with Device(driver) as device:
        stream = device.create_stream()
        entered, leave = threading.Event(), threading.Event()

        def hold(_handle):
            entered.set()
            leave.wait(60)

        thread = threading.Thread(target=stream._call, args=(hold,))
        thread.start()
        entered.wait(60)
        stream.destroy()
        device.reaper.trim()
        assert "stream_destroy" not in [call.verb for call in driver.calls]
        leave.set()
        thread.join()
        device.reaper.trim()
        assert "stream_destroy" in [call.verb for call in driver.calls]
