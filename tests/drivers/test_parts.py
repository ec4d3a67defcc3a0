"""Streams on a part of the compute units: which they get, what is refused, and what the vendors' libraries are told."""

from __future__ import annotations

import gc
import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy.errors import CaptureError, DriverError, StreamError
from quadpy.graph.captures.capture import capture
from quadpy.runtime.device.device import Device
from quadpy.runtime.streams.parts import Part, checked_units, part_of
from quadpy.runtime.streams.stream import use_stream

GROUPS = [range(8), range(8, 16), range(16, 24), range(24, 28)]


def groups_of(wanted, *others):
    parts = [None, *(Part((), tuple(groups)) for groups in others)]
    return part_of(checked_units(wanted), GROUPS, parts).groups


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        (1, (0,)), (8, (0,)), (9, (0, 1)), (24, (0, 1, 2)), (25, (0, 1, 2, 3)), (28, (0, 1, 2, 3)), (np.int64(9), (0, 1)),
        (0.5, (0,)), (0.6, (0, 1)), (1e-9, (0,)), (1.0, (0, 1, 2, 3)), (0.999, (0, 1, 2)),
        (np.float32(0.5), (0,)), (Fraction(3, 5), (0, 1)),
        ([0], (0,)), ({7, 8}, (0, 1)), (range(8, 16), (1,)), (range(15, 17), (1, 2)), ((27,), (3,)), (np.arange(4), (0,)),
        (iter([5, 5, 5]), (0,)),
    ],
)  # fmt: skip
def test_what_a_stream_gets(wanted, groups):
    assert groups_of(wanted) == groups


def test_a_count_takes_what_the_fewest_others_have():
    assert groups_of(8, (0,)) == (1,)
    assert groups_of(0.3, (0, 1)) == (2,)
    assert groups_of(12, (0, 1, 2, 3), (1,), (0,)) == (2, 3)
    assert groups_of([0], (0,)) == (0,)  # named units are those, whoever else has them


@pytest.mark.parametrize("parts", [(0.5, 0.5), (0.25, 0.75), (0.7, 0.2, 0.1), (1 / 3, 1 / 3, 1 / 3), (0.999, 1e-9)])
def test_fractions_that_fill_the_device_share_no_unit(parts):
    groups = [range(k, k + 8) for k in range(0, 304, 8)]
    taken = []
    for part in parts:
        taken.append(part_of(part, groups, taken))
    units = list(itertools.chain.from_iterable(part.units for part in taken))
    assert len(units) == len(set(units))


@pytest.mark.parametrize(
    "wanted",
    [0, -1, True, False, 0.0, -0.5, 1.5, float("nan"), float("inf"), "8", b"8", [], [-1], [0.5], ["0"], range(0),
     itertools.count(), range(10**9), object(), 1j, np.float32(1.5), Fraction(-1, 2)],
)  # fmt: skip
def test_what_is_no_part_of_any_device(device, wanted):
    with pytest.raises(StreamError, match="compute_units is"):
        device.create_stream(compute_units=wanted)
    with pytest.raises(StreamError, match="compute_units"):
        device.streams.create_stream(0, wanted)


@pytest.mark.needs("parts")
def test_more_than_the_device_has(device):
    units = device.driver.info.units
    for wanted in (units + 1, 10**400, [units], range(units + 1)):
        with pytest.raises(StreamError, match=rf"the device has {units}\b"):
            device.create_stream(compute_units=wanted)


@pytest.mark.needs("parts")
def test_every_unit_is_in_one_group(driver):
    numbers = list(itertools.chain.from_iterable(driver.unit_groups()))
    assert numbers == list(range(driver.info.units))


@pytest.mark.needs("parts")
def test_what_it_got_is_told_and_can_be_asked_for_again(device):
    with device.create_stream(compute_units=0.5) as first, device.create_stream(compute_units=0.5) as second:
        assert 0 < len(first.compute_units) <= device.driver.info.units / 2
        assert not set(first.compute_units) & set(second.compute_units)
        with device.create_stream(compute_units=first.compute_units) as third:
            assert third.compute_units == first.compute_units
    with device.create_stream(compute_units=1) as after:
        assert set(after.compute_units) <= set(first.compute_units)  # they are free again


def test_without_a_part(device):
    with device.create_stream() as stream:
        assert stream.compute_units is None
    assert device.default_stream.compute_units is None


def test_the_cpu_has_none(device):
    if "host" not in device.driver.features:
        pytest.skip("not the CPU")
    with device.create_stream(compute_units=0.5) as stream:
        assert stream.compute_units is None


@pytest.mark.needs("parts")
def test_work_on_a_part(device, read):
    """Fills, copies, events across, memory with such a home, the current stream, destroy and use after it."""
    n = 1 << 14
    with device.create_stream(-1, 0.25) as part, device.create_stream() as whole, device.create_event() as ready:
        x = device.allocate(n, part)
        device.driver.fill(x.pointer, 7, n, part.handle)
        ready.record(part)
        ready.wait(whole)
        device.memory.use([x.block], whole.timeline)
        assert read(x.pointer, n, whole) == b"\7" * n
        with use_stream(part):
            assert device.current_stream() is part
            y = device.allocate(n, device.current_stream())
        device.driver.copy_within(y.pointer, x.pointer, n, part.handle)
        part.synchronize()
        assert part.query()
        del x, y
    with pytest.raises(StreamError, match="was destroyed"):
        part.synchronize()
    assert len(part.compute_units) >= 1  # what it had
    gc.collect()
    device.synchronize()


@pytest.mark.needs("parts")
def test_branches_stay_on_the_part(device):
    """Sections of a kernel run on branch streams, which must not leave the part of the stream that they are forked from."""
    with device.create_stream(compute_units=8) as part, device.create_stream(compute_units=8) as other:
        for on in (part, other, part, device.default_stream, part):
            with device.branches.fork(on.timeline, 3) as branches:
                assert [branch.part for branch in branches] == [on.timeline.part] * 3


def test_many_branches_stay_on_their_parts():
    """Also once as many as are kept exist, of another part."""
    with Device(RecordingDriver()) as device, device.create_stream(compute_units=8) as part:
        with device.branches.fork(part.timeline, 40):
            pass
        with device.branches.fork(device.default_stream.timeline, 40) as branches:
            assert not any(branch.part for branch in branches)


@pytest.mark.needs("parts")
def test_by_handle(device):
    stream = device.streams.create_stream(compute_units=[0])
    assert device.timelines.find(stream).part.units
    device.streams.synchronize_stream(stream)
    device.streams.destroy_stream(stream)
    assert device.streams.live()["streams"] == 0


@pytest.mark.needs("parts")
def test_ten_thousand_streams_leave_nothing(device):
    for _ in range(10_000 if device.driver.name == "recording" else 200):
        device.create_stream(compute_units=0.3).destroy()
    device.create_stream(compute_units=0.3)  # dropped
    gc.collect()
    device.synchronize()
    assert device.streams.live()["streams"] == 0


def test_a_driver_without_parts():
    driver = RecordingDriver()
    driver.features -= {"parts"}
    with Device(driver) as device, pytest.raises(StreamError, match="no streams on a part"):
        device.create_stream(compute_units=0.5)
    assert "stream_create_on" not in [call.verb for call in driver.calls]


def test_parts_that_are_switched_off():
    with Device(RecordingDriver(), None, {"parts": "streams.parts failed"}) as device:
        with pytest.raises(StreamError, match=r"on a part of recorded device are switched off: streams\.parts failed"):
            device.create_stream(compute_units=0.5)
        assert device.create_stream().query()


def test_a_driver_that_refuses_one(device):
    if "parts" not in device.driver.features or device.driver.name != "recording":
        pytest.skip("only the recording driver can be told to refuse")
    device.driver.failures["stream_create_on"] = DriverError("refused")
    with pytest.raises(DriverError, match="refused"):
        device.create_stream(compute_units=8)
    assert device.streams.live()["streams"] == 0


def test_a_part_cannot_be_destroyed_while_it_is_captured():

    with Device(RecordingDriver()) as device, device.create_stream(compute_units=8) as part:
        with pytest.raises(CaptureError), capture(part):
            part.destroy()
        part.synchronize()


def test_two_threads_take_different_halves():
    """A renderer beside a simulation: without order, both see that no unit is taken."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Device(RecordingDriver(history=False)) as device, ThreadPoolExecutor(2) as pool:
            for _ in range(100):
                one, other = pool.map(lambda _: device.create_stream(compute_units=0.5), range(2))
                assert not set(one.compute_units) & set(other.compute_units)
                one.destroy()
                other.destroy()
    finally:
        sys.setswitchinterval(before)
