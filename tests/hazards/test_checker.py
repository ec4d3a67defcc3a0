"""The hazard checker as its users see it: which order counts, and what a report says."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import threading
import warnings

import numpy as np
import pytest
from simulated import AnyKernel, simulated
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.runtime.launch.capturing import CAPTURES

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
N = 16


@qp.kernel
def produce(x: F32):
    for i in range(N):
        x[i] = i


@qp.kernel
def consume(x: F32, y: F32):
    for i in range(N):
        y[i] = 2 * x[i]


@qp.kernel
def total(x: F32) -> qp.f32:
    s = 0.0
    for i in range(N):
        s += x[i]
    return s


@qp.kernel
def part(x: F32, begin: qp.i32, end: qp.i32):
    for i in range(begin, end):
        x[i] = 1


@qp.kernel
def one_or_all(x: F32, place: qp.types.ndarray(dtype=qp.i32, ndim=1), everywhere: qp.i32):
    for i in range(N):
        if everywhere == 1:
            x[i] = 1
        else:
            x[place[0]] = 1


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, hazards=False)
    yield
    qp.init(arch=qp.cpu)


@pytest.fixture
def streams():
    with qp.create_stream() as s1, qp.create_stream() as s2:
        yield s1, s2


def arrays(count=2):
    return [qp.ndarray(qp.f32, shape=N) for _ in range(count)]


def here(offset=0):
    """The caller's line."""
    frame = inspect.currentframe().f_back
    return f"{__file__}:{frame.f_lineno + offset}"


def pairs(found):
    return [(h.kind, h.first.location, h.second.location) for h in [*found.certain, *found.possible]]


def kinds(found):
    return [h.kind for h in [*found.certain, *found.possible]]


def test_a_missing_event_is_found_with_both_lines(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        first = here(-1)
        consume(x, y, stream=s2)
        second = here(-1)
    assert pairs(found) == [("read after write", first, second)]
    hazard = (found.certain + found.possible)[0]
    assert "produce" in hazard.first.what
    assert "consume" in hazard.second.what
    assert (hazard.first.array, hazard.first.stream, hazard.second.stream) == ("x", "s1", "s2")
    assert hazard.fix == "ready = qp.create_event(); ready.record(s1); ready.wait(s2)"


def test_the_line_that_mends_it_does(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        ready = qp.create_event()
        ready.record(s1)
        ready.wait(s2)
        consume(x, y, stream=s2)
    assert pairs(found) == []


@pytest.mark.parametrize(
    "order",
    [
        lambda s1, s2, x: s1.synchronize(),
        lambda s1, s2, x: qp.sync(),
        lambda s1, s2, x: x.to_numpy(),
        lambda s1, s2, x: x[3],
        lambda s1, s2, x: s1.query(),
        lambda s1, s2, x: x.fill(1, stream=s2),
    ],
    ids=["stream", "device", "to_numpy", "element", "query", "fill"],
)
def test_what_orders_two_streams(streams, order):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        order(s1, s2, x)
        consume(x, y, stream=s2)
    assert pairs(found) == []


@pytest.mark.parametrize(
    "order",
    [
        lambda s1, s2, x, y: s2.synchronize(),
        lambda s1, s2, x, y: y.to_numpy(),
        lambda s1, s2, x, y: qp.create_event().wait(s2),
        lambda s1, s2, x, y: qp.create_event().synchronize(),
    ],
    ids=["other stream", "other array", "event without a record", "the same on the host"],
)
def test_what_does_not(streams, order):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        order(s1, s2, x, y)
        consume(x, y, stream=s2)
    assert kinds(found) == ["read after write"]


def test_an_event_that_is_recorded_again_does_not_move_earlier_waits(streams):
    s1, s2 = streams
    x, y, z = arrays(3)
    event = qp.create_event()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        event.record(s1)
        event.wait(s2)
        produce(y, stream=s1)
        event.record(s1)
        consume(x, z, stream=s2)
        assert pairs(found) == []
        consume(y, z, stream=s2)
    assert kinds(found) == ["read after write"]


def test_order_is_transitive(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.create_stream() as s3, qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        for one, other in ((s1, s3), (s3, s2)):
            event = qp.create_event()
            event.record(one)
            event.wait(other)
        consume(x, y, stream=s2)
    assert pairs(found) == []


def test_the_wait_of_a_first_use_is_not_the_users(streams):
    """The runtime orders a first use after all work of the home stream; a second iteration would race."""
    s1, s2 = streams
    with qp.hazards.check(collect=True) as found:
        x, y = (qp.ndarray(qp.f32, shape=N, stream=s1) for _ in range(2))
        consume(x, y, stream=s2)  # the allocation and its zeros come first
        assert pairs(found) == []
        x.fill(1, stream=s1)
        consume(x, y, stream=s2)
    assert kinds(found) == ["read after write"]


def test_a_write_from_python_comes_after_the_users_of_the_array_but_others_do_not_wait_for_it(streams):
    s1, _ = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        x.fill(0)
        assert pairs(found) == []
        y.copy_from(x)
        x[3] = 5
        assert pairs(found) == []
        produce(x, stream=s1)
    assert set(kinds(found)) == {"write after write", "write after read"}


def test_reads_alone_are_no_hazard(streams):
    s1, s2 = streams
    x, y, z = arrays(3)
    with qp.hazards.check(collect=True) as found:
        consume(x, y, stream=s1)
        consume(x, z, stream=s2)
    assert pairs(found) == []


def test_a_kernel_that_returns_a_number_is_waited_for(streams):
    s1, s2 = streams
    (x,) = arrays(1)
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        total(x, stream=s1)
        produce(x, stream=s2)
    assert pairs(found) == []


def test_memory_that_is_allocated_again_has_no_history(streams):
    s1, s2 = streams
    with qp.hazards.check(collect=True) as found:
        for k in range(50):
            (x,) = arrays(1)
            produce(x, stream=(s1, s2)[k % 2])
            del x
    assert pairs(found) == []


def test_work_before_the_block_does_not_count(streams):
    s1, s2 = streams
    x, y = arrays()
    produce(x, stream=s1)
    with qp.hazards.check(collect=True) as found:
        consume(x, y, stream=s2)
    assert pairs(found) == []


def test_work_before_an_inner_block_counts(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as outer:
        produce(x, stream=s1)
        with qp.hazards.check(collect=True) as inner:
            consume(x, y, stream=s2)
    assert (kinds(outer), kinds(inner)) == ([], ["read after write"])


def test_two_threads_with_a_stream_each(streams):
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        for work in (lambda: produce(x, stream=streams[0]), lambda: consume(x, y, stream=streams[1])):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert kinds(found) == ["read after write"]


def test_what_is_allowed_is_listed_with_its_reason(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check() as found:
        produce(x, stream=s1)
        with qp.hazards.allow(x, reason="the values may be a step old"):
            consume(x, y, stream=s2)
    assert pairs(found) == []
    assert [h.allowed for h in found.allowed] == ["the values may be a step old"]


def test_what_was_allowed_once_is_found_later(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        for allowed in (qp.hazards.allow(x, reason="the first step may be wrong"), contextlib.nullcontext()):
            with allowed:
                produce(x, stream=s1)
                consume(x, y, stream=s2)
            qp.sync()
    assert (len(found.allowed), len(found.certain)) == (1, 1)


def test_a_certain_hazard_replaces_a_possible_one_of_the_same_lines(streams):
    s1, s2 = streams
    x, place = qp.ndarray(qp.f32, N), qp.ndarray(qp.i32, 1)
    listed = []
    with qp.hazards.check(collect=True) as found:
        for everywhere in (0, 1, 0):
            one_or_all(x, place, everywhere, stream=s1)
            produce(x, stream=s2)
            listed.append((len(found.possible), len(found.certain)))
            qp.sync()
    assert listed == [(1, 0), (0, 1), (0, 1)]


@pytest.mark.parametrize("reason", ["", " ", None, 3])
def test_allow_wants_a_reason(reason):
    with pytest.raises(qp.ArgumentError, match="reason"):
        qp.hazards.allow(arrays(1)[0], reason=reason)


def test_allow_wants_an_array():
    with pytest.raises(qp.ArgumentError, match="an ndarray or a field"):
        qp.hazards.allow(3, reason="it is a number")


def test_a_report_is_text_and_json(streams):
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        consume(x, y, stream=s2)
        text, facts = str(qp.hazards.report()), json.loads(qp.hazards.report().to_json())
    assert text == str(found)
    (hazard,) = facts["certain"] + facts["possible"]
    assert hazard["kind"] == "read after write"
    assert hazard["first"]["line"] < hazard["second"]["line"]


def test_init_turns_it_on_and_off(streams):
    s1, s2 = streams
    x, y = arrays()
    try:
        qp.init(arch=qp.cpu, hazards="collect")
        produce(x, stream=s1)
        consume(x, y, stream=s2)
        assert len(qp.hazards.report()) == 1
    finally:
        qp.init(arch=qp.cpu, hazards=False)
    with warnings.catch_warnings():
        produce(x, stream=s1)
        consume(x, y, stream=s2)
    assert len(qp.hazards.report()) == 1


@pytest.mark.parametrize("mode", ["yes", 2, []])
def test_init_refuses_other_modes(mode):
    with pytest.raises(qp.ArgumentError, match="hazards must be True, False or 'collect'"):
        qp.init(arch=qp.cpu, hazards=mode)


def test_a_program_that_never_waits_has_a_short_history(streams):
    s1, s2 = streams
    (x,) = arrays(1)
    with qp.hazards.check(collect=True):
        for k in range(200):
            x[k % N] = k
            part(x, k % N, N, stream=s1)
            part(x, 0, k % N, stream=s2)
        checker = CAPTURES.observer
        history = checker._memory.of_storage(x._memory()).ledger.touched
        assert len(history) <= 3
        assert all(len(records) <= 33 for records in history.values())


@pytest.mark.parametrize("parts", ["the same", "others"])
def test_streams_that_come_and_go_leave_a_short_history(streams, parts):
    """Each comes after the one before, and all touch one array: what the last one stands for is forgotten."""
    last, late = streams
    x, y = qp.ndarray(qp.f32, 2000), qp.ndarray(qp.f32, N)
    with qp.hazards.check(collect=True) as found, qp.create_event() as ready:
        for k in range(400):
            with qp.create_stream() as s:
                ready.wait(s)
                if parts == "the same":
                    consume(x, y, stream=s)
                else:
                    part(x, 5 * k, 5 * k + 5, stream=s)
                ready.record(s)
        ledger = CAPTURES.checker._memory.of_storage(x._memory()).ledger
        assert len(ledger.runs) <= 32
        assert len(ledger.touched) <= 40
        assert len(CAPTURES.checker._clocks.lanes) <= 320  # with the runs that calls may find again
        ready.wait(last)
        part(x, 0, 2000, stream=last)
        assert not pairs(found)
        part(x, 0, 2, stream=late)
    assert pairs(found)


def test_a_call_that_failed_is_only_possible(streams):
    """What an error interrupted may have run, or not."""
    s1, s2 = streams
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("quadpy.hazards.operations.Operation.done", lambda told: None)
            produce(x, stream=s1)
        consume(x, y, stream=s2)
    assert not found.certain
    assert [h.reason for h in found.possible] == ["of the first access, the call was interrupted, or failed"]


def test_the_host_has_no_stream(streams):
    s1, _ = streams
    x, y = arrays()
    result = np.zeros(N, np.float32)
    graph = qp.graph.Graph()
    graph.add_memcpy(result, x)
    with qp.hazards.check(collect=True) as found, graph.instantiate() as run:
        run.launch(s1)
        y.from_numpy(result)
        s1.synchronize()
        y.from_numpy(result)
    (hazard,) = found.certain
    assert hazard.second.stream == ""
    assert hazard.fix == "s1.synchronize()"


def test_a_fork_leaves_the_checker_usable():
    x, y = arrays()
    with qp.hazards.check(collect=True) as found:
        produce(x)
        child = os.fork()
        if not child:
            code = 1
            try:
                with qp.create_stream() as own:
                    consume(x, y, stream=own)
                code = 0 if kinds(found) == ["read after write"] else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert pairs(found) == []


def test_an_array_in_memory_that_was_freed_by_address_is_a_new_one():
    driver = RecordingDriver(history=False)
    driver.kernels = AnyKernel()
    with simulated(driver) as device, qp.hazards.check(collect=True) as found:
        for _ in range(3):
            device.streams.free_async(device.streams.malloc_async(4 * N, 0), 0)
            (x,) = arrays(1)
            x.fill(1)
            del x
    assert pairs(found) == []


@pytest.mark.parametrize("last", ["kernel", "fill"])
def test_edges_that_a_capture_adds_hide_none_of_the_users(last):
    """Of two nodes that the last one comes after, one comes after the other only by the edge of a first use."""
    driver = RecordingDriver(history=False)
    driver.kernels = AnyKernel()
    with simulated(driver), qp.hazards.check(collect=True) as found:
        origin, s1, s2 = (qp.create_stream() for _ in range(3))
        begin, end, *done = (qp.create_event() for _ in range(4))
        x, y = (qp.ndarray(qp.f32, shape=N, stream=origin) for _ in range(2))
        with qp.graph.capture(origin) as graph:
            begin.record(origin)
            for one in (s1, s2):
                begin.wait(one)
            for one, array, event in ((origin, y, done[0]), (s1, x, done[1])):
                produce(array, stream=one)
                event.record(one)
                event.wait(s2)
            produce(y, stream=s2) if last == "kernel" else y.fill(1, stream=s2)
            end.record(s2)
            end.wait(origin)
        graph.instantiate().destroy()
        first, second, *_ = graph
        assert (first.after, second.after) == ((), (first.name,))  # for which nobody asked
    assert pairs(found) == []


def test_the_default_stream_needs_no_name_in_the_line_that_mends(streams):
    s1, _ = streams
    (x,) = arrays(1)
    with qp.hazards.check(collect=True) as found:
        produce(x, stream=s1)
        produce(x)
    with qp.use_stream(s1), qp.hazards.check(collect=True) as elsewhere:
        produce(x)
        produce(x, stream=qp.Stream.from_handle(0))
    qp.sync()
    assert [hazard.fix for hazard in found.certain] == ["ready = qp.create_event(); ready.record(s1); ready.wait()"]
    assert [hazard.fix for hazard in elsewhere.certain] == [
        "ready = qp.create_event(); ready.record(s1); ready.wait(qp.Stream.from_handle(0))"
    ]


def test_one_check_may_be_entered_again(streams):
    s1, s2 = streams
    (x,) = arrays(1)
    check = qp.hazards.check(collect=True)
    with check as outer:
        with check as inner:
            produce(x, stream=s1)
        produce(x, stream=s2)
        qp.sync()
    with check as later:
        produce(x, stream=s1)
    assert [len(found.certain) for found in (outer, inner, later)] == [1, 0, 0]
    assert CAPTURES.observer is None
    qp.sync()


@qp.kernel
def scaled(x: F32, begin: qp.i32, end: qp.i32, factor: qp.f32):
    for i in range(begin, end):
        x[i] *= factor


def test_the_history_of_many_parts_stays_apart_from_other_parts(streams):
    """Two streams without order, each with hundreds of parts of its own half: none of it is a hazard."""
    s1, s2 = streams
    x = qp.ndarray(qp.f32, 2000)
    with qp.hazards.check(collect=True) as found:
        for k in range(700):
            part(x, k, k + 1, stream=s1)
        for k in range(200):
            part(x, 700 + k, 701 + k, stream=s1)
            part(x, 1000 + k, 1001 + k, stream=s2)
        assert not pairs(found)
        part(x, 950, 1000, stream=s2)
        assert not pairs(found)
        part(x, 899, 900, stream=s2)
        assert [h.certain for h in [*found.certain, *found.possible]] == [True]
        part(x, 3, 4, stream=s2)
    (old,) = found.possible
    assert (
        "of the first access, it stands for many accesses of different parts, whose history was shortened" in old.reason
    )


def test_parts_that_the_host_has_waited_for_are_forgotten(streams):
    s1, s2 = streams
    x = qp.ndarray(qp.f32, 2000)
    with qp.hazards.check(collect=True) as found:
        for k in range(300):
            part(x, k, k + 1, stream=s1)
        s1.synchronize()
        for k in range(300, 600):
            part(x, k, k + 1, stream=s1)
        part(x, 0, 300, stream=s2)
        assert not pairs(found)
        part(x, 599, 700, stream=s2)
    assert len(found.certain) == 1


def test_two_kernels_in_turn_keep_their_order(streams):
    """The last writer of each part counts, whichever kernel it is."""
    s1, s2 = streams
    x = qp.ndarray(qp.f32, 64)
    with qp.hazards.check(collect=True) as found:
        for k in range(20):
            part(x, k, k + 2, stream=s1)
            last = here(1)
            scaled(x, k + 1, k + 2, 0.5 * k, stream=s1)
        part(x, 20, 21, stream=s2)
    assert found.certain[0].first.location == last


def test_numbers_that_do_not_fit_leave_no_access(streams):
    """The call is refused, or done with numbers that fit."""
    s1, s2 = streams
    x = qp.ndarray(qp.f32, 64)
    with qp.hazards.check(collect=True) as found:
        for bad in ("1", 1 << 80):
            with pytest.raises(qp.ArgumentError):
                part(x, bad, 5, stream=s1)
        part(x, np.int64(8), np.int64(12), stream=s1)
        part(x, 0, 8, stream=s2)
        assert not pairs(found)
        part(x, 11, 12, stream=s2)
    assert len(found.certain) == 1


def test_arrays_that_went_before_somebody_asked_leave_their_history(streams):
    """What a launch touches is found out later, also where Python has dropped the array since."""
    s1, s2 = streams
    x = qp.ndarray(qp.f32, 64)
    with qp.hazards.check(collect=True) as found:
        for k in range(5):
            y = qp.ndarray(qp.f32, 64)
            part(y, k, k + 1, stream=s1)
            part(x, k, k + 1, stream=s1)
            del y
        part(x, 4, 5, stream=s2)
    assert len(found.certain) == 1
