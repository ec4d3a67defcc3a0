"""Branches and loops of a kernel on a GPU: which stream each task is on, and what it is ordered after."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace

import numpy as np
import pytest
from simulated_gpu.driver import RecordedKernel

import quadpy as qp
from quadpy.core.flow import Fork, Loop
from quadpy.errors import ArgumentError, DriverError
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.memory.device_storage import zero_bytes
from quadpy.runtime.memory.placement import storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.branches import MOST_BRANCHES

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def four(x: I32, y: I32):
    for i in x:
        x[i] = 1
    for i in x:
        x[i] += 1
    for i in y:
        y[i] = 2
    for i in x:
        x[i] += y[i]


CODE = four.compile("gfx942")
FORKED = (0, Fork(((1,), (2,))), 3)
SIZE = 8


def address(block: bytes, place: int) -> int:
    return struct.unpack_from("Q", block, 16 * place)[0]


def touching(reads: str, writes: str, run=lambda block: None) -> RecordedKernel:
    """A task that touches ``x`` and ``y`` as it says."""

    def touches(block):
        ranges = [[(address(block, "xy".index(name)), 4 * SIZE) for name in names] for names in (reads, writes)]
        return ranges[0], ranges[1]

    return RecordedKernel(run, touches)


BODIES = {
    "four_t0": touching("", "x"),
    "four_t1": touching("x", "x"),
    "four_t2": touching("", "y"),
    "four_t3": touching("xy", "x"),
}


def arrays(device, count: int = 2) -> list[NDArray]:
    memory = [zero_bytes(device, 4 * SIZE) for _ in range(count)]
    return [
        NDArray(qp.i32, (SIZE,), (), storage_at(m, StridedLayout(0, np.dtype(np.int32), (SIZE,), (4,)))) for m in memory
    ]


def call(plan, found, stream=None):
    return plan.run([value for array in found for value in array.abi], list(found), stream)


def streams_of(launches) -> list[int]:
    return [arguments[4] for arguments in launches]


def test_branches_run_on_streams_of_their_own(device, plan_of, launches):
    call(plan_of(replace(CODE, flow=FORKED), BODIES), arrays(device))
    first, one, other, last = streams_of(launches())
    assert first == last == 0
    assert one != other
    assert 0 in (one, other)


def test_branches_come_after_what_was_before_and_before_what_comes(device, plan_of):
    call(plan_of(replace(CODE, flow=FORKED), BODIES), arrays(device))
    assert device.driver.races() == []


def test_branches_have_no_order_among_themselves(device, plan_of):
    bodies = BODIES | {"four_t2": touching("", "x")}
    call(plan_of(replace(CODE, flow=FORKED), bodies), arrays(device))
    assert [(a.kind, b.kind) for a, b in device.driver.races()] == [("launch", "launch")]


def test_forks_may_be_nested(device, plan_of, launches):
    flow = (Fork(((Fork(((0,), (1,), (2,))),), (3,))),)
    bodies = dict.fromkeys(BODIES, touching("", ""))
    call(plan_of(replace(CODE, flow=flow), bodies), arrays(device))
    assert len(set(streams_of(launches()))) == 4


def test_a_fork_of_one_branch_or_none_needs_no_stream(device, plan_of, launches):
    flow = (Fork(((0, 1),)), Fork(()), Fork(((), (2,))), 3)
    call(plan_of(replace(CODE, flow=flow), BODIES), arrays(device))
    assert streams_of(launches())[:2] == [0, 0]
    assert device.driver.races() == []


def test_memory_that_a_branch_used_is_freed_after_it(device, plan_of):
    plan = plan_of(replace(CODE, flow=FORKED), BODIES)
    with device.create_stream() as stream:
        found = arrays(device)
        call(plan, found, stream)
        del found
        fresh = [zero_bytes(device, 4 * SIZE) for _ in range(4)]  # takes what was freed
        del fresh
    assert device.driver.races() == []


def test_arrays_are_read_after_the_branch_that_wrote_them(device, plan_of):
    def write(block):
        np.ctypeslib.as_array((ctypes.c_int32 * SIZE).from_address(address(block, 1)))[:] = 7

    x, y = arrays(device)
    call(plan_of(replace(CODE, flow=FORKED), BODIES | {"four_t2": touching("", "y", write)}), [x, y])
    assert y.to_numpy().tolist() == [7] * SIZE
    assert device.driver.races() == []


# how many streams


def test_a_stream_forks_to_the_same_streams_again(device, plan_of):
    plan = plan_of(replace(CODE, flow=FORKED), BODIES)
    for _ in range(5):
        call(plan, arrays(device))
    assert device.streams.live()["streams"] == 1


def test_two_streams_fork_to_different_ones(device, plan_of, launches):
    plan = plan_of(replace(CODE, flow=FORKED), BODIES)
    with device.create_stream() as one, device.create_stream() as other:
        call(plan, arrays(device), one)
        call(plan, arrays(device), other)
        call(plan, arrays(device), one)
        assert device.streams.live()["streams"] == 4
    used = streams_of(launches())
    assert set(used[:4]) & set(used[4:8]) == set()
    assert set(used[:4]) == set(used[8:])


def test_many_streams_leave_few_behind(device, plan_of):
    plan, found = plan_of(replace(CODE, flow=FORKED), BODIES), arrays(device)
    for _ in range(3 * MOST_BRANCHES):
        with device.create_stream() as stream:
            call(plan, found, stream)
    assert device.streams.live()["streams"] == MOST_BRANCHES


def test_a_fork_may_have_many_branches(device, plan_of, launches):
    flow = (Fork(((0,),) * (2 * MOST_BRANCHES)),)
    call(plan_of(replace(CODE, flow=flow), dict.fromkeys(BODIES, touching("", ""))), arrays(device))
    assert len(set(streams_of(launches()))) == 2 * MOST_BRANCHES


# exceptions


def test_what_was_forked_is_joined_when_a_launch_is_refused(device, plan_of):
    plan = plan_of(replace(CODE, flow=(Fork(((0,), (1,), (2,))), 3)), BODIES | {"four_t0": touching("", "y")})
    with device.create_stream() as stream:
        found = arrays(device)
        plan.run([*found[0].abi, *found[1].abi], list(found), stream)
        del device.driver.calls[:]
        failing = iter([None, DriverError("no")])
        launch = device.driver.launch

        def refuse(*arguments):
            if (error := next(failing)) is not None:
                raise error
            launch(*arguments)

        device.driver.launch = refuse
        with pytest.raises(DriverError, match="no"):
            call(plan, found, stream)
        verbs = [call.verb for call in device.driver.calls]
        assert verbs.count("stream_wait") == 4  # two branches: there and back
        assert device.streams.live()["streams"] == 3


def test_branches_that_cannot_be_joined_are_waited_for(device, plan_of):
    plan, found = plan_of(replace(CODE, flow=FORKED), BODIES), arrays(device)
    call(plan, found)
    record = device.driver.event_record
    seen = []

    def fail(event, stream):
        seen.append(stream)
        if len(seen) == 2:
            raise DriverError("no event")
        record(event, stream)

    device.driver.event_record = fail
    del device.driver.calls[:]
    call(plan, found)
    assert "stream_synchronize" in [call.verb for call in device.driver.calls]
    device.driver.event_record = record
    assert [(a.kind, b.kind) for a, b in device.driver.races()] == []


# loops


def counting_down(block):
    """One step: what decides is one less."""
    ctypes.c_int32.from_address(address(block, 1)).value -= 1


LOOP = {"four_t1": touching("y", "y", counting_down)}


@pytest.mark.parametrize(("start", "times"), [(3, 3), (1, 1), (256, 256)])
def test_a_loop_runs_until_its_condition_is_zero(device, plan_of, launches, start, times):
    x, y = arrays(device)
    y[0] = start
    call(plan_of(replace(CODE, flow=(0, Loop("y", (1,)), 3)), BODIES | LOOP), [x, y])
    assert len(launches()) == times + 2
    assert y[0] == 0
    assert times > 9 or device.driver.races() == []


def test_a_loop_runs_once_at_least(device, plan_of, launches):
    x, y = arrays(device)
    call(plan_of(replace(CODE, flow=(Loop("y", (0,)),)), BODIES), [x, y])
    assert len(launches()) == 1


def test_a_loop_in_a_branch_lets_the_others_start_first(device, plan_of, launches):
    x, y = arrays(device)
    y[0] = 2
    flow = (Fork(((Loop("y", (1,)),), (0,))),)
    call(plan_of(replace(CODE, flow=flow), BODIES | LOOP), [x, y])
    streams = streams_of(launches())
    assert len(streams) == 3
    assert streams[0] != streams[1] == streams[2]
    assert device.driver.races() == []


def test_a_condition_without_elements_is_refused_before_any_work(device, plan_of, launches):
    x, _ = arrays(device)
    empty = NDArray(
        qp.i32, (0,), (), storage_at(zero_bytes(device, 0), StridedLayout(0, np.dtype(np.int32), (0,), (4,)))
    )
    with pytest.raises(ArgumentError, match="y is empty"):
        call(plan_of(replace(CODE, flow=(0, Loop("y", (1,))), limits=()), BODIES | LOOP), [x, empty])
    assert launches() == []


def test_a_prepared_kernel_says_where_its_conditions_lie(device, plan_of):
    x, y = arrays(device)
    flow = (0, Loop("y", (1,)))
    made = plan_of(replace(CODE, flow=flow), BODIES).prepare([*x.abi, *y.abi], [x, y])
    assert made.flow == flow
    assert made.conditions == {"y": (y.pointer, 4)}
