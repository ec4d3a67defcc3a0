"""The recording driver: nothing runs before it must, and an order that is missing is found."""

from __future__ import annotations

import ctypes

import pytest
from simulated_gpu.driver import RecordedKernel, RecordingDriver
from simulated_gpu.simulation import Simulation, ordered

from quadpy.errors import DriverError
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM


@pytest.fixture
def driver():
    return RecordingDriver()


def kinds(driver):
    return [(first.kind, second.kind) for first, second in driver.races()]


def test_ops_of_one_lane_are_ordered():
    simulation = Simulation()
    lane = simulation.queue()
    first, second = simulation.submit("a", lane), simulation.submit("b", lane)
    assert ordered(first, second)
    assert not ordered(second, first)


def test_an_event_orders_what_is_before_it_with_what_is_after_the_wait():
    simulation = Simulation()
    left, right = simulation.queue(), simulation.queue()
    before, early = simulation.submit("before", left), simulation.submit("early", right)
    record = simulation.submit("record", left)
    behind = simulation.submit("behind", left)
    simulation.submit("wait", right, awaits=record)
    late = simulation.submit("late", right)
    assert ordered(before, late)
    assert not ordered(before, early)
    assert not ordered(behind, late)
    assert not ordered(late, behind)


def test_order_passes_through_a_third_lane():
    simulation = Simulation()
    a, b, c = (simulation.queue() for _ in range(3))
    first = simulation.submit("first", a)
    simulation.submit("wait", b, awaits=first)
    simulation.submit("wait", c, awaits=simulation.submit("between", b))
    assert ordered(first, simulation.submit("last", c))


def test_what_the_host_saw_complete_is_ordered_before_what_it_submits():
    simulation = Simulation()
    a, b = simulation.queue(), simulation.queue()
    first = simulation.submit("first", a)
    unseen = simulation.submit("unseen", b)
    simulation.finish_queue(a)
    assert ordered(first, simulation.submit("later", b))
    assert not ordered(first, unseen)


def test_an_op_runs_only_when_it_must():
    simulation, ran = Simulation(), []
    a, b = simulation.queue(), simulation.queue()
    first = simulation.submit("first", a, action=lambda: ran.append("first"))
    simulation.submit("second", a, action=lambda: ran.append("second"))
    simulation.submit("wait", b, awaits=first)
    last = simulation.submit("last", b, action=lambda: ran.append("last"))
    assert [lane.serial for lane in simulation.ready()] == [a.serial]
    assert not ran
    simulation.finish(last)
    assert ran == ["first", "last"]
    simulation.finish_all()
    assert ran == ["first", "last", "second"]


@pytest.mark.parametrize("with_event", [True, False])
def test_the_recording_driver_shows_a_missing_order(with_event):
    """The two-stream example; with the event taken out the consumer races with the producer."""
    driver = RecordingDriver()
    with Device(driver) as device, device.create_stream() as s1, device.create_stream() as s2:
        x, y = (device.allocate(64, device.default_stream) for _ in range(2))
        event = device.create_event()
        device.memory.use([x.block], s1.timeline)
        device.memory.use([x.block, y.block], s2.timeline)
        driver.fill(x.pointer, 1, 64, s1.handle)
        if with_event:
            event.record(s1)
            event.wait(s2)
        driver.copy_within(y.pointer, x.pointer, 64, s2.handle)
        assert kinds(driver) == ([] if with_event else [("fill", "copy")])


def test_a_kernel_of_the_recording_driver_is_python(driver):
    memory = driver.alloc(8)
    number = ctypes.c_int64.from_address(memory)
    driver.kernels["increase"] = RecordedKernel(
        lambda block: setattr(number, "value", number.value + block[0]),
        lambda _block: ([(memory, 8)], [(memory, 8)]),
    )
    function = driver.module_function(driver.module_load(b"\x7fELF"), "increase")
    block = (ctypes.c_char * 1)(5)
    arguments = driver.launch_arguments(ctypes.addressof(block), 1)
    number.value = 1
    driver.launch(function, (1, 1, 1), (64, 1, 1), 0, DEFAULT_STREAM, arguments)
    block[0] = 100  # the arguments were copied
    assert number.value == 1
    driver.stream_synchronize(DEFAULT_STREAM)
    assert number.value == 6
    with pytest.raises(DriverError, match="there is no 'decrease'"):
        driver.module_function(0xA000, "decrease")


def test_two_streams_that_write_the_same_bytes_race(driver):
    memory, stream = driver.alloc(64), driver.stream_create(0)
    driver.fill(memory, 1, 32, DEFAULT_STREAM)
    driver.fill(memory + 32, 2, 32, stream)
    assert kinds(driver) == []
    driver.fill(memory + 31, 2, 1, stream)
    assert kinds(driver) == [("fill", "fill")]


def test_a_pool_s_free_races_with_a_use_that_is_not_ordered_before_it(driver):
    """Allocated on A, used on B, freed on A without an event."""
    home, guest = driver.stream_create(0), driver.stream_create(0)
    memory = driver.alloc_async(64, home)
    driver.stream_synchronize(home)
    driver.fill(memory, 1, 64, guest)
    driver.free_async(memory, home)
    assert kinds(driver) == [("fill", "free")]


def test_a_use_after_free_is_an_error(driver):
    memory, stream = driver.alloc_async(64, DEFAULT_STREAM), driver.stream_create(0)
    driver.fill(memory, 1, 64, stream)
    driver.free_async(memory, DEFAULT_STREAM)
    driver.stream_synchronize(DEFAULT_STREAM)
    with pytest.raises(DriverError, match="use after free"):
        driver.stream_synchronize(stream)


def test_handles_are_used_again_and_refused_in_between(driver):
    stream, event = driver.stream_create(0), driver.event_create(timing=False)
    driver.stream_destroy(stream)
    driver.event_destroy(event)
    for call in (driver.stream_query, driver.stream_synchronize, driver.stream_destroy):
        with pytest.raises(DriverError, match="there is no stream"):
            call(stream)
    for call in (driver.event_query, driver.event_synchronize, driver.event_destroy):
        with pytest.raises(DriverError, match="there is no event"):
            call(event)
    assert driver.stream_create(0) == stream
    assert driver.event_create(timing=False) == event


def test_calls_are_logged_and_can_be_made_to_fail(driver):
    driver.failures["alloc"] = DriverError("no")
    with pytest.raises(DriverError):
        driver.alloc(8)
    driver.alloc(8)
    assert [(call.verb, call.arguments) for call in driver.calls] == [("alloc", (8,)), ("alloc", (8,))]
    assert driver.left_open() == {"streams": 0, "events": 0, "memory": 1, "modules": 0}
