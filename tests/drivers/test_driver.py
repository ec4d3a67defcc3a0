"""The protocol: what every driver does alike, on bare handles."""

from __future__ import annotations

import threading

import pytest

from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.runtime.drivers.cpu import CpuDriver
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, EventHandle, PoolPointer, StreamHandle

LARGE = 1 << 19  # bytes that a device takes a while to fill, and an emulator not for ever


def test_the_driver_is_here(backend):
    name, reason = backend
    if reason:
        pytest.skip(reason)
    assert name


def test_work_of_a_stream_runs_in_order(driver, host):
    stream = driver.stream_create(0)
    memory = driver.alloc(64)
    for value in range(20):
        driver.fill(memory, value, 64, stream)
    assert host.read(memory, 64, stream) == bytes([19]) * 64
    driver.free(memory)
    driver.stream_destroy(stream)


def test_s12_the_default_stream_is_synchronized_like_any_other(driver, host):
    memory = driver.alloc(LARGE)
    driver.fill(memory, 3, LARGE, DEFAULT_STREAM)
    driver.stream_synchronize(DEFAULT_STREAM)
    assert driver.stream_query(DEFAULT_STREAM)
    assert host.read(memory, 16) == b"\3" * 16
    driver.free(memory)


def test_an_event_orders_two_streams(driver, host):
    """Consumer after producer, many times; nothing relies on the order that is missing without the event."""
    producer, consumer, ready = driver.stream_create(0), driver.stream_create(0), driver.event_create(timing=False)
    source, target = driver.alloc(LARGE), driver.alloc(LARGE)
    for value in range(5):
        driver.fill(source, value, LARGE, producer)
        driver.event_record(ready, producer)
        driver.stream_wait(consumer, ready)
        driver.copy_within(target, source, LARGE, consumer)
        driver.event_record(ready, consumer)
        driver.stream_wait(producer, ready)
        assert set(host.read(target, LARGE, consumer)) == {value}
    driver.stream_synchronize(producer)
    for stream in (producer, consumer):
        driver.stream_destroy(stream)
    driver.event_destroy(ready)
    driver.free(source)
    driver.free(target)


def test_a_wait_keeps_the_place_it_saw(driver):
    """Recording again does not move waits that were made: a stream that waits cannot wait for itself."""
    first, second, event = driver.stream_create(0), driver.stream_create(0), driver.event_create(timing=False)
    driver.event_record(event, first)
    driver.stream_wait(second, event)
    driver.event_record(event, second)
    driver.stream_wait(first, event)
    driver.event_record(event, first)
    driver.event_synchronize(event)
    assert driver.event_query(event)
    for stream in (first, second):
        driver.stream_synchronize(stream)
        driver.stream_destroy(stream)
    driver.event_destroy(event)


def test_an_event_never_recorded_is_complete(driver):
    event = driver.event_create(timing=False)
    assert driver.event_query(event)
    driver.event_synchronize(event)
    driver.stream_wait(DEFAULT_STREAM, event)
    driver.event_destroy(event)


def test_an_event_may_be_destroyed_while_a_stream_waits_for_it(driver, host):
    first, second, event = driver.stream_create(0), driver.stream_create(0), driver.event_create(timing=False)
    source, target = driver.alloc(LARGE), driver.alloc(LARGE)
    driver.fill(source, 5, LARGE, first)
    driver.event_record(event, first)
    driver.stream_wait(second, event)
    driver.event_destroy(event)
    driver.copy_within(target, source, LARGE, second)
    assert set(host.read(target, LARGE, second)) == {5}
    for stream in (first, second):
        driver.stream_destroy(stream)
    driver.free(source)
    driver.free(target)


def test_work_of_a_destroyed_stream_completes(driver, host):
    stream = driver.stream_create(0)
    memory = driver.alloc(LARGE)
    driver.fill(memory, 9, LARGE, stream)
    driver.stream_destroy(stream)
    driver.synchronize()
    assert set(host.read(memory, LARGE)) == {9}
    driver.free(memory)


@pytest.mark.needs("timing")
def test_elapsed_time_grows_with_the_work_between(driver):
    start, end = driver.event_create(timing=True), driver.event_create(timing=True)
    driver.event_record(start, DEFAULT_STREAM)
    driver.event_record(end, DEFAULT_STREAM)
    driver.event_synchronize(end)
    assert driver.event_elapsed(start, end) >= 0
    assert driver.event_elapsed(start, start) == 0
    driver.event_destroy(start)
    driver.event_destroy(end)


@pytest.mark.needs("timing")
@pytest.mark.parametrize("timing", [True, False])
def test_elapsed_time_without_timing_or_record_is_an_error(driver, timing):
    events = [driver.event_create(timing=timing) for _ in range(2)]
    if not timing:
        for event in events:
            driver.event_record(event, DEFAULT_STREAM)
        driver.synchronize()
    with pytest.raises(DriverError):
        driver.event_elapsed(*events)
    for event in events:
        driver.event_destroy(event)


@pytest.mark.parametrize("priority", [-100, -1, 0, 1, 100])
def test_every_priority_makes_a_stream(driver, priority):
    stream = driver.stream_create(priority)
    driver.stream_synchronize(stream)
    assert driver.stream_query(stream)
    driver.stream_destroy(stream)


def test_nothing_is_done_for_a_size_of_0(driver):
    """A plain malloc of 0 gives no address on HIP, and a fill of 0 bytes is an error there."""
    assert driver.alloc(0) == driver.alloc_pinned(0) == 0
    for copy in (driver.copy_in, driver.copy_out, driver.copy_within):
        copy(0, 0, 0, DEFAULT_STREAM)
    driver.fill(0, 0, 0, DEFAULT_STREAM)
    driver.free(0)
    driver.free_pinned(0)


@pytest.mark.needs("pool")
def test_pool_memory_is_used_and_freed_in_order(driver, host):
    assert driver.alloc_async(0, DEFAULT_STREAM) == 0
    driver.free_async(PoolPointer(0), DEFAULT_STREAM)
    stream = driver.stream_create(0)
    for value in range(5):
        memory = driver.alloc_async(LARGE, stream)
        driver.fill(memory, value, LARGE, stream)
        kept = driver.alloc_async(16, stream)
        driver.copy_within(kept, memory, 16, stream)
        driver.free_async(memory, stream)
        assert host.read(kept, 16, stream) == bytes([value]) * 16
        driver.free_async(kept, stream)
    driver.stream_synchronize(stream)
    driver.trim_pool()
    driver.stream_destroy(stream)


def test_data_survives_the_way_to_the_device_and_back(driver, host):
    memory, data = driver.alloc(1000), bytes(range(250)) * 4
    host.write(memory, data)
    assert host.read(memory, 1000) == data
    driver.free(memory)


def test_too_much_memory_is_out_of_device_memory(driver):
    with pytest.raises(OutOfDeviceMemory):
        driver.alloc(1 << 50)


def test_the_device_describes_itself(driver):
    free, total = driver.memory_info()
    assert free > 0
    assert total > 0
    assert driver.info.name
    assert driver.info.arch


def test_the_device_of_a_stream_is_known(driver):
    stream = driver.stream_create(0)
    assert driver.stream_device(stream) == driver.stream_device(DEFAULT_STREAM) == driver.ordinal
    driver.stream_destroy(stream)


def test_s14_a_new_thread_need_not_select_the_device(driver, host):
    results, errors = {}, []

    def work(value):
        try:
            stream, memory = driver.stream_create(0), driver.alloc(1 << 16)
            driver.fill(memory, value, 1 << 16, stream)
            results[value] = set(host.read(memory, 1 << 16, stream))
            driver.stream_destroy(stream)
            driver.free(memory)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert results == {value: {value} for value in range(4)}


@pytest.mark.needs("modules")
def test_an_image_that_is_no_code_object_is_refused(driver):
    with pytest.raises(DriverError, match=r"(?i)module"):
        driver.module_load(b"no code object")


@pytest.mark.parametrize("call", ["stream_query", "stream_synchronize", "stream_destroy", "event_query"])
def test_s16_the_cpu_refuses_every_handle_but_0(call):
    with pytest.raises(DriverError, match="every handle on the CPU is 0"):
        getattr(CpuDriver(), call)(0x1234)
    with pytest.raises(DriverError):
        CpuDriver().event_record(EventHandle(0), StreamHandle(1))
