"""``qp.graph.capture``: what it records, what it refuses, and that it leaves nothing open."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError, CaptureError, DeviceError, OutOfDeviceMemory
from quadpy.runtime.launch.capturing import CAPTURES, thread_captures

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def count(x: I32) -> qp.i32:
    found = 0
    for i in x:
        found += x[i]
    return found


def _give_back_what_died(device):
    """Also what earlier tests on the same device left to the collector: one that ends later would give memory back then."""
    before = None
    while before != (used := device.memory_stats().used):
        before = used
        gc.collect()
        device.synchronize()


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert CAPTURES.count == 0
    assert thread_captures() == ([], {})


def numbers(x):
    return x.to_numpy().tolist()


# what is recorded


def test_a_block_of_calls_becomes_a_graph_and_runs_when_it_is_launched(here):
    x, y = here.array(1, 2, 3), here.array(0, 0, 0)
    with qp.graph.capture() as g:
        here.add(10, x)
        here.mix(1, x, y)
        here.twice(1, x)
    assert (numbers(x), numbers(y)) == ([1, 2, 3], [0, 0, 0])
    assert isinstance(g, qp.graph.Graph)
    assert g.inspect().edges == (("add", "mix"), ("mix", "twice"))
    with g.instantiate() as run:
        run.launch()
        assert (numbers(x), numbers(y)) == ([24, 26, 28], [12, 13, 14])
        run.launch()
        assert numbers(y) == [3 * 12 + 24 + 10 + 1, 3 * 13 + 26 + 10 + 1, 3 * 14 + 28 + 10 + 1]


def test_captured_nodes_are_changed_like_any_others(here):
    x, y = here.array(1), here.array(2)
    with qp.graph.capture() as g:
        here.add(1, x)
        here.mix(0, x, y)
    with g.instantiate() as run:
        run.update("add", here.add, 10, x)
        run.launch()
        assert (numbers(x), numbers(y)) == ([11], [17])


@pytest.mark.parametrize("first", [True, False])
def test_captured_kernels_are_changed_with_and_without_their_kernel_first(here, first):
    x, y = here.array(1), here.array(2)
    with qp.graph.capture() as g:
        here.add(1, x)
    with g.instantiate() as run:
        for v in (10, 20):
            for named in (first, first, not first):
                run.update("add", *((here.add,) if named else ()), v, y)
                run.launch()
        run.update("add", here.add.prepare(5, x))
        run.launch()
        assert (numbers(x), numbers(y)) == ([6], [92])
        with pytest.raises(ArgumentError):
            run.update("add", 10)


def test_the_line_of_each_call_is_known(here):
    x = here.array(1)
    with qp.graph.capture() as g:
        here.add(1, x)
    assert g["add"].span.file == __file__


def test_fills_copies_and_constants(here):
    x, y, z, source = here.array(0, 0), here.array(0, 0), here.array(7, 8), np.array([5, 6], np.int32)
    with qp.graph.capture() as g:
        x.fill(3)
        y.from_numpy(source)
        z[1] = -1
        here.mix(0, x, y)
        x.copy_from(y)
        x.copy_from(x)
    source[:] = 99
    assert [node.kind for node in g] == ["memset", "memcpy", "memset", "kernel", "memcpy"]
    with g.instantiate() as run:
        for _ in range(2):
            run.launch()
            assert (numbers(x), numbers(y), numbers(z)) == ([18, 21], [18, 21], [7, -1])


def test_wide_numbers_fields_and_layouts(here):
    wide, f = qp.ndarray(qp.i64, 3), qp.field(qp.f32, shape=(2, 3), order="ji")
    v = qp.Vector.field(2, qp.f32, shape=3, layout=qp.Layout.SOA)
    plain = np.arange(6, dtype=np.float32).reshape(2, 3)
    with qp.graph.capture() as g:
        wide.fill(0x0102030405060708)
        f.from_numpy(plain)
        f[1, 2] = 9.0
        v.fill(qp.Vector([1.5, 2.5]))
    with g.instantiate() as run:
        run.launch()
    plain[1, 2] = 9
    assert numbers(wide) == [0x0102030405060708] * 3
    assert f.to_numpy().tolist() == plain.tolist()
    assert v.to_numpy().tolist() == [[1.5, 2.5]] * 3


def test_a_stream_that_waits_for_an_event_is_a_fork(here):
    x, y = here.array(1), here.array(2)
    with qp.create_stream() as side, qp.create_event() as fork, qp.create_event() as join:
        with qp.graph.capture() as g:
            here.add(1, x)
            fork.record()
            fork.wait(side)
            here.add(1, y, stream=side)
            here.add(2, x)
            join.record(side)
            join.wait()
            here.mix(0, x, y)
        assert g.inspect().edges == (
            ("add", "add.1"), ("add", "add.2"), ("add.2", "mix"), ("add.1", "mix"),
        )  # fmt: skip
        if not here.is_cpu:  # and so it is in the driver's graph
            with g.instantiate(fuse=False) as run:
                built = run._owner.engine.graph
                names = {handle: node.name for node in g for handle in built.handles(node.name)}
                found = {(names[a], names[b]) for a, b in built.graphs.edges(built.handle)}
                assert found == set(g.inspect().edges)
        with g.instantiate() as run:
            run.launch()
            assert numbers(y) == [3 * 3 + 4]


def test_the_first_use_on_another_stream_comes_after_the_allocation(here):
    """The order needs no events, as outside of a capture."""
    with qp.create_stream() as side:
        fork, join = qp.create_event(), qp.create_event()
        with qp.graph.capture() as g:
            fork.record()
            fork.wait(side)
            t = qp.ndarray(qp.i32, 2, stream=side)
            here.add(1, t)
            join.record(side)
            join.wait()
        if not here.is_cpu:  # which runs nodes in the order of their making
            assert g["add"].after == ("memset",)
        with g.instantiate() as run:
            run.launch()
            assert numbers(t) == [1, 1]


def test_a_fork_may_come_first_and_go_through_several_streams(here):
    x, y, z, w = here.array(1), here.array(2), here.array(3), here.array(4)
    events = [qp.create_event() for _ in range(4)]
    with qp.create_stream() as one, qp.create_stream() as two:
        with qp.graph.capture() as g:
            events[0].record()
            events[0].wait(one)
            here.add(1, x, stream=one)
            events[1].record(one)
            events[1].wait(two)
            here.mix(0, x, z, stream=two)
            here.add(5, w, stream=one)
            here.add(1, y)
            events[2].record(one)
            events[2].wait(two)
            events[3].record(two)
            events[3].wait()
            here.mix(0, w, y)
        assert g.inspect().roots == ("add", "add.2")
        assert g["mix.1"].after == ("add.2", "mix", "add.1")
        with g.instantiate() as run:
            run.launch()
            assert (numbers(x), numbers(y), numbers(z)) == ([2], [3 * 3 + 9], [9 + 2])


def test_captured_explicit_and_eager_give_the_same_bytes_and_the_same_structure_h2(here):
    def arrays():
        return here.array(1, 2), here.array(3, 4)

    (a, b), (c, d), (e, f) = arrays(), arrays(), arrays()
    here.add(1, a)
    b.fill(5)
    here.mix(2, a, b)
    with qp.graph.capture() as captured:
        here.add(1, c)
        d.fill(5)
        here.mix(2, c, d)
    explicit = qp.graph.Graph()
    explicit.add_kernel(here.add, 1, e)
    explicit.add_memset(f, 5, deps=["add"])
    explicit.add_kernel(here.mix, 2, e, f)
    assert type(captured) is type(explicit)
    shapes = [[(n.name, n.kind, n.after) for n in g.inspect().nodes] for g in (captured, explicit)]
    assert shapes[0] == shapes[1]
    for g in (captured, explicit):
        with g.instantiate() as run:
            run.launch()
    assert numbers(a) == numbers(c) == numbers(e)
    assert numbers(b) == numbers(d) == numbers(f)


def test_arrays_made_inside_are_zero_each_time_and_live_as_long_as_the_graph(here):
    out = here.array(0, 0)
    gc.collect()  # what earlier tests left
    here.device.synchronize()
    before = here.device.memory_stats().used

    def captured():
        with qp.graph.capture() as g:
            t = qp.ndarray(qp.i32, 2)
            here.add(4, t)
            out.copy_from(t)
        return g.instantiate()

    run = captured()
    gc.collect()
    for _ in range(2):
        run.launch()
        assert numbers(out) == [4, 4]
    run.destroy()
    del run
    gc.collect()
    here.device.synchronize()
    here.device.memory.trim()
    assert here.device.memory_stats().used == before


def test_a_graph_keeps_alive_what_it_touches_and_nothing_keeps_a_destroyed_graphs_memory(here):
    x, out = here.array(3), here.array(0)
    seen = weakref.ref(x)
    with qp.graph.capture() as g:
        here.mix(0, x, out)
    run = g.instantiate()
    del x, g
    gc.collect()
    run.launch()
    assert numbers(out) == [3]
    run.destroy()
    gc.collect()
    here.device.synchronize()
    assert seen() is None


def test_host_functions_are_nodes_inside_and_calls_in_order_outside(here):
    seen, x = [], here.array(0)
    with qp.graph.capture() as g:
        here.add(1, x)
        qp.graph.host_function(seen.append, "inside")
    assert seen == []
    with g.instantiate() as run:
        run.launch()
        run.launch()
        run.synchronize()
    qp.graph.host_function(seen.append, "outside")
    qp.sync()
    assert seen == ["inside", "inside", "outside"]
    with pytest.raises(ArgumentError, match="not a function"):
        qp.graph.host_function(3)


def test_a_launch_inside_becomes_a_child_and_does_not_run(here):
    x = here.array(1)
    with qp.graph.capture() as inner:
        here.add(1, x)
        here.twice(1, x)
    with inner.instantiate() as run:
        run.enable("twice", False)
        with qp.graph.capture() as outer:
            here.add(10, x)
            run.launch()
            here.add(100, x)
        assert numbers(x) == [1]
        assert [node.kind for node in outer] == ["kernel", "child", "kernel"]
        assert run.stats().launches == 0
    with outer.instantiate() as run:
        run.launch()
        assert numbers(x) == [112]


def test_host_arrays_are_read_and_written_by_each_launch(here):
    x, y = np.array([1, 2], np.int32), np.array([5, 5], np.int32)
    with qp.graph.capture() as g:
        here.mix(0, x, y)
    assert y.tolist() == [5, 5]
    with g.instantiate() as run:
        run.launch()
        run.synchronize()
        assert y.tolist() == [16, 17]
        x[:] = 100
        run.launch()
        run.synchronize()
        assert y.tolist() == [148, 151]


def test_work_on_other_streams_runs_at_once(here):
    x, y = here.array(1), here.array(1)
    with qp.create_stream() as other, qp.graph.capture() as g:
        here.add(1, x)
        here.add(1, y, stream=other)
        assert y.to_numpy(stream=other).tolist() == [2]
        other.synchronize()
    assert len(g) == 1
    assert numbers(x) == [1]


def test_a_stream_of_ones_own_is_captured_and_the_current_one_is_not(here):
    x, y = here.array(1), here.array(1)
    with qp.create_stream() as s:
        with qp.graph.capture(s) as g:
            here.add(1, x, stream=s)
            with qp.use_stream(s):
                here.add(2, x)
            here.add(1, y)
            assert numbers(y) == [2]
        assert [node.after for node in g] == [(), ("add",)]
        with g.instantiate() as run:
            run.launch(s)
        assert numbers(x) == [4]


def test_threads_capture_at_once_each_its_own(here):
    arrays = [here.array(0) for _ in range(4)]
    graphs, meet = [None] * 4, threading.Barrier(4)

    def work(k):
        with qp.graph.capture() as g:
            meet.wait(30)
            for v in range(k + 1):
                here.add(v + 1, arrays[k])
            meet.wait(30)
        graphs[k] = g

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(g) for g in graphs] == [1, 2, 3, 4]
    for g in graphs:
        with g.instantiate() as run:
            run.launch()
    assert [numbers(x) for x in arrays] == [[1], [3], [6], [10]]


def test_another_thread_invalidates_nothing(here):
    x, y = here.array(0), here.array(0)
    with qp.graph.capture() as g:
        here.add(1, x)

        def other():
            here.add(1, y)
            qp.sync()
            y.to_numpy()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        here.add(1, x)
    assert (len(g), numbers(y)) == (2, [1])


def test_a_kernel_that_first_compiles_inside(here):
    if here.is_simulated:
        return  # it has Python for the kernels of these tests alone

    @qp.kernel
    def new(x: I32):
        for i in x:
            x[i] = x[i] + 77

    x = here.array(1)
    with qp.graph.capture() as g:
        new(x)
    with g.instantiate() as run:
        run.launch()
    assert numbers(x) == [78]


# what is refused


def refused(here, what, *calls):
    """The call is refused with its source line, there is no graph, and the stream works."""
    for call in calls:
        x = here.array(1)
        with pytest.raises(CaptureError, match=what) as caught, qp.graph.capture() as g:  # noqa: PT012 - a capture is a block
            here.add(1, x)
            call(x)
        assert caught.value.span.file == __file__
        assert caught.value.hint
        with pytest.raises(CaptureError, match="aborted"):
            g.instantiate()
        assert numbers(x) == [1]
        here.add(1, x)
        assert numbers(x) == [2]


def test_reading_is_refused(here):
    refused(
        here, "reading an array",
        lambda x: x[0], lambda x: x.to_numpy(), np.asarray, lambda x: x.to_numpy(copy=False) if here.is_cpu else x[0],
    )  # fmt: skip


def test_showing_an_array_to_another_library_is_refused(here):
    what = "reading an array" if here.is_cpu else "export of an array to another library"
    refused(here, what, lambda x: x.__dlpack__())
    if not here.is_cpu:
        refused(here, what, lambda x: x.__cuda_array_interface__)


def test_waiting_and_asking_are_refused_g5(here):
    stream = here.device.default_stream
    refused(here, r"synchronize\(\)", lambda _: stream.synchronize())
    refused(here, r"query\(\)", lambda _: stream.query())
    refused(here, "synchronize of the whole device", lambda _: qp.sync())
    refused(here, "synchronize of the whole device", lambda _: here.device.synchronize())


def test_verbs_with_handles_are_refused(here):
    """On the CPU these concern no particular stream, and do nothing."""
    streams, pointer = here.device.streams, here.device.streams.malloc_async(64, 0)
    event = streams.create_event()
    verbs = {
        "synchronize_stream": lambda: streams.synchronize_stream(0),
        "query_stream": lambda: streams.query_stream(0),
        "record_event": lambda: streams.record_event(event, 0),
        "stream_wait_event": lambda: streams.stream_wait_event(0, event),
        "free_async": lambda: streams.free_async(pointer, 0),
    }
    for name, verb in verbs.items():
        if here.is_cpu:
            with qp.graph.capture():
                verb()
        else:
            refused(here, name, lambda _, verb=verb: verb())
    if not here.is_cpu:
        streams.free_async(pointer, 0)
    streams.destroy_event(event)


def test_results_are_refused(here):
    if here.is_simulated:
        return  # it has Python for the kernels of these tests alone
    refused(here, "returns a number", count)


def test_events_of_the_outside_are_refused_inside(here):
    with qp.create_event() as outside, qp.create_event() as never:
        outside.record()
        refused(here, r"cannot note a wait of .* recorded outside", lambda _: outside.wait())
        x = here.array(1)
        with qp.graph.capture() as g:
            never.wait()
            here.add(1, x)
        assert len(g) == 1


def test_events_of_the_inside_are_refused_outside(here):
    with qp.create_event() as inside, qp.create_stream() as other:
        for question in (inside.query, inside.synchronize):
            refused(here, r"(query|synchronize)\(\) of an event", lambda _, ask=question: (inside.record(), ask()))
        with qp.graph.capture():
            inside.record()
        with pytest.raises(CaptureError, match="has ended"):
            inside.wait(other)
        inside.record()
        inside.wait(other)
        assert inside.query() in (True, False)


def test_an_event_of_a_capture_that_has_ended_answers_nothing_of_its_old_record(here):
    with qp.create_event(timing=True) as inside, qp.create_event(timing=True) as end, qp.create_stream() as other:
        inside.record()
        end.record()
        end.synchronize()
        with qp.graph.capture() as g:
            inside.record()
        for ask in (
            inside.query,
            inside.synchronize,
            lambda: inside.elapsed_time(end),
            lambda: end.elapsed_time(inside),
            lambda: inside.wait(other),
        ):
            with pytest.raises(CaptureError, match="has ended") as caught:
                ask()
            assert caught.value.span.file == __file__
            assert "add_event_record" in caught.value.hint
        for graph in (g, qp.graph.Graph()):  # as a node, and as a node of a child
            if graph is g:
                graph.add_event_record(inside)
            else:
                graph.add_child(g)
                with qp.graph.capture():
                    inside.record()
            with graph.instantiate() as run:
                with pytest.raises(CaptureError, match="has ended"):
                    inside.query()
                run.launch()
                inside.wait(other)
                inside.synchronize()
                assert inside.query()
                assert end.elapsed_time(inside) >= 0


def test_an_aborted_capture_forgets_no_record_that_was_made_meanwhile(here):
    with qp.create_event() as event, qp.create_stream() as other:
        with qp.graph.capture():
            event.record()
        with pytest.raises(ZeroDivisionError), qp.graph.capture():  # noqa: PT012 - a capture is a block
            event.record()
            event.record(other)
            raise ZeroDivisionError
        event.synchronize()


def test_another_capture_cannot_wait_for_an_event_of_this_one(here):
    with qp.create_event() as inside, qp.create_stream() as s, qp.create_stream() as t:  # noqa: SIM117 - one line would be too long
        with pytest.raises(CaptureError, match="is not captured, for"), qp.graph.capture(s), qp.graph.capture(t):  # noqa: PT012 - a capture is a block
            inside.record(s)
            inside.wait(t)


def on_another_thread(function):
    """What ``function`` returns on another thread, or the error that it raises."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(function)
        return future.exception() or future.result()


@pytest.mark.parametrize("verb", ["query", "synchronize", "wait", "elapsed_time"])
def test_another_threads_question_to_an_event_of_a_capture_is_refused_there_alone(here, verb):
    """For example, a monitor that polls the earlier record of the event."""
    x = here.array(0)
    with qp.create_event(timing=True) as event:
        event.record()
        arguments = [event] if verb == "elapsed_time" else []
        with qp.graph.capture() as g:
            here.add(1, x)
            event.record()
            error = on_another_thread(lambda: getattr(event, verb)(*arguments))
            here.add(2, x)
        assert isinstance(error, CaptureError)
        assert "another thread" in str(error)
        with g.instantiate(fuse=False) as run:
            run.launch()
        assert x.to_numpy().tolist() == [3]


def test_a_capture_that_waits_for_an_event_of_another_threads_comes_to_nothing_itself(here):
    x, y = here.array(0), here.array(0)
    with qp.create_stream() as one, qp.create_stream() as two, qp.create_event() as event:

        def other():
            with qp.graph.capture(two):
                here.add(1, y, stream=two)
                event.wait(two)

        with qp.graph.capture(one) as g:
            here.add(1, x, stream=one)
            event.record(one)
            error = on_another_thread(other)
        assert isinstance(error, CaptureError)
        assert "another thread's capture" in str(error)
        with g.instantiate(fuse=False) as run:
            run.launch()
        assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([1], [0])


def test_an_event_recorded_in_a_capture_keeps_nothing_of_it_alive(here):
    """Events for forks and joins often live as long as the program; they must not keep the memory of a graph alive."""
    fork, join, side = qp.create_event(), qp.create_event(), qp.create_stream()
    _give_back_what_died(here.device)
    before = here.device.memory_stats().used

    def build():
        x = here.array(0)
        with qp.graph.capture() as g:
            made = qp.ndarray(qp.i32, 1)
            fork.record()
            fork.wait(side)
            here.mix(1, x, made, stream=side)
            join.record(side)
            join.wait()
        with g.instantiate(fuse=False) as run:
            run.launch()
        return weakref.ref(g)

    graph = build()
    _give_back_what_died(here.device)
    assert graph() is None
    assert here.device.memory_stats().used == before
    with pytest.raises(CaptureError, match="has ended"):
        fork.query()
    for owned in (fork, join, side):
        owned.destroy()


def test_a_launch_of_a_graph_with_memory_of_its_own_is_refused(here):
    graph = qp.graph.Graph()
    memory = graph.add_alloc(64)
    graph.add_free(memory)
    with graph.instantiate() as run:
        run.launch()
        refused(here, "a launch of a graph that allocates or frees memory", lambda _: run.launch())
        run.launch()


def test_an_aborted_capture_leaves_events_as_they_were(here):
    with qp.create_event() as event, qp.create_stream() as other:
        event.record()
        with pytest.raises(ZeroDivisionError), qp.graph.capture():  # noqa: PT012 - a capture is a block
            event.record()
            raise ZeroDivisionError
        event.wait(other)
        event.synchronize()


def test_a_fork_that_is_not_joined_is_named(here):
    x = here.array(1)
    with qp.create_stream() as side, qp.create_event() as fork:
        with pytest.raises(CaptureError, match=r"nothing waits for 'add.1' \(.*test_capture.py:\d+\)") as caught:  # noqa: PT012, SIM117 - a capture is a block
            with qp.graph.capture():
                here.add(1, x)
                fork.record()
                fork.wait(side)
                here.add(1, x, stream=side)
        assert "fork.wait(side)" in str(caught.value)
        here.add(1, x, stream=side)
        side.synchronize()
        assert numbers(x) == [2]


def test_a_branch_without_work_need_not_be_joined(here):
    with qp.create_stream() as side, qp.create_event() as fork:
        with qp.graph.capture() as g:
            fork.record()
            fork.wait(side)
        assert len(g) == 0


def test_nested_captures_of_one_stream_are_refused(here):
    with pytest.raises(CaptureError, match="already being captured"), qp.graph.capture(), qp.graph.capture():
        pass
    with qp.create_stream() as s, qp.graph.capture() as outer:
        x = here.array(1)
        with qp.graph.capture(s) as inner:
            here.add(1, x, stream=s)
    assert (len(outer), len(inner)) == (2, 1)


def test_a_capture_object_serves_once(here):
    once = qp.graph.capture()
    with once:
        pass
    with pytest.raises(CaptureError, match="once") as caught, once:
        pass
    assert caught.value.span.file == __file__


def test_a_captured_stream_is_not_destroyed(here):
    with qp.create_stream() as s:
        with pytest.raises(CaptureError, match="destroy"), qp.graph.capture(s):
            s.destroy()
        with qp.graph.capture(s):
            failed = []

            def other():
                try:
                    s.destroy()
                except CaptureError as error:
                    failed.append(error.message)

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            assert "another thread" in failed[0]
        s.synchronize()


def test_another_threads_work_on_a_captured_stream_is_refused(here):
    x, failed = here.array(1), []
    with qp.create_stream() as s, qp.graph.capture(s):

        def other():
            try:
                here.add(1, x, stream=s)
            except CaptureError as error:
                failed.append(error.message)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "another thread" in failed[0]
    assert numbers(x) == [1]


def test_a_device_is_not_closed_while_it_captures(simulated_device):
    with qp.graph.capture(device=simulated_device), pytest.raises(CaptureError, match="cannot be closed"):
        simulated_device.close()


def test_a_graph_of_a_closed_device_says_so(simulated_device):
    with qp.graph.capture(device=simulated_device) as g:
        pass
    run = g.instantiate()
    simulated_device.close()
    with pytest.raises(DeviceError, match="closed"):
        run.launch()


def test_a_call_that_was_refused_is_told_at_the_end_though_somebody_caught_it(here):
    x = here.array(1)
    with pytest.raises(CaptureError, match="reading an array"), qp.graph.capture() as g:  # noqa: PT012 - a capture is a block
        try:
            x.to_numpy()
        except CaptureError:
            here.add(1, x)
    assert len(g) == 0


def test_it_cannot_be_instantiated_before_its_end(here):
    x = here.array(1)
    with qp.graph.capture() as g:
        here.add(1, x)
        for make in (g.instantiate, g.clone):
            with pytest.raises(CaptureError, match="not complete") as caught:
                make()
            assert caught.value.span.file == __file__
    g.instantiate().destroy()


# exceptions


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_is_raised_as_it_is_and_nothing_ran_x5(here, error):
    x, raised = here.array(1), error()
    with pytest.raises(error) as caught, qp.graph.capture() as g:  # noqa: PT012 - a capture is a block
        here.add(1, x)
        raise raised
    assert caught.value is raised
    assert (numbers(x), len(g)) == ([1], 0)
    here.add(1, x)
    assert numbers(x) == [2]


def test_a_wrong_argument_inside_x5(here):
    x = here.array(1)
    with pytest.raises(ArgumentError, match="add"), qp.graph.capture():
        here.add("one", x)
    with qp.graph.capture() as g:
        here.add(1, x)
    assert len(g) == 1


def test_a_generator_that_is_closed_ends_its_capture_x5_x6(here):
    x = here.array(1)

    def steps():
        with qp.graph.capture():
            here.add(1, x)
            yield

    stopped = steps()
    next(stopped)
    stopped.close()
    dropped = steps()
    next(dropped)
    del dropped
    gc.collect()
    assert numbers(x) == [1]


def test_garbage_collection_inside(here):
    """Cycles of arrays that die inside a capture are freed as usual."""

    class Ring:
        def __init__(self):
            self.array, self.me = here.array(1, 2, 3), self

    x = here.array(1)
    _give_back_what_died(here.device)
    before = here.device.memory_stats().used
    with qp.graph.capture() as g:
        for _ in range(5):
            Ring()
        gc.collect()
        here.add(1, x)
        del g
    _give_back_what_died(here.device)
    assert here.device.memory_stats().used == before


def test_out_of_memory_inside(simulated_device):
    with pytest.raises(OutOfDeviceMemory), qp.graph.capture(device=simulated_device):
        simulated_device.allocate(1 << 40, simulated_device.default_stream)
    assert simulated_device.memory_stats().used == 0
    with qp.graph.capture(device=simulated_device):
        pass


def test_capture_tells_the_driver_nothing_g1_g2(here):
    """A capture launches nothing, and a program without captures calls the driver as before."""
    if not here.is_simulated:
        return
    x = here.array(1)
    before = len(here.driver.calls)
    with qp.graph.capture():
        here.add(1, x)
        x.fill(2)
    verbs = {call.verb for call in here.driver.calls[before:]}
    assert verbs <= {"module_load", "module_function"}


def test_nodes_are_not_added_by_hand_while_calls_are_captured(here):
    """They would have no place in the order of the captured calls."""
    x = here.array(1)
    with qp.graph.capture() as g:
        here.add(1, x)
        for use in (lambda: g.add_memset(x, 0), lambda: qp.graph.Graph().add_child(g), lambda: g.add_alloc(4)):
            with pytest.raises(CaptureError, match="being captured") as caught:
                use()
            assert "after the capture has ended" in caught.value.hint
        here.add(2, x)
    g.add_memset(x, 5)
    with g.instantiate() as run:
        run.launch()
    assert numbers(x) == [5]


def test_an_aborted_capture_cannot_be_used_as_a_graph(here):
    with contextlib.suppress(ValueError), qp.graph.capture() as g:
        raise ValueError
    for use in (lambda: qp.graph.Graph().add_child(g), g.add_empty, g.instantiate):
        with pytest.raises(CaptureError) as caught:
            use()
        assert caught.value.hint == "capture the calls again"
