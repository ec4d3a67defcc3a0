"""What no method of graphs takes is refused by an error of the project's, never by one of Python's from within."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError, DeviceError, GraphError, QuadpyError
from quadpy.graph import Graph, Semaphore, host_function, memory_info, trim
from quadpy.graph.captures.capture import capture
from quadpy.graph.replays.decorator import replay

NOTHING_OF_USE = [5, -1, 3.5, "x", b"x", (1, 2), [[]], {"a": 1}, object(), len]


@pytest.fixture(params=NOTHING_OF_USE, ids=lambda bad: type(bad).__name__ + str(bad)[:2])
def bad(request):
    return request.param


def refused(call):
    with pytest.raises(QuadpyError) as caught:
        call()
    assert caught.value.message


def test_where_a_device_is_wanted(bad):
    for call in (Graph, memory_info, trim):
        refused(lambda call=call: call(bad))
    refused(lambda: capture(device=bad).__enter__())
    refused(lambda: Semaphore.from_fd(0, device=bad))
    refused(lambda: qp.Stream.from_handle(0, bad))


def test_where_dependencies_and_names_are_wanted(on, bad):
    graph = on.graph()
    refused(lambda: graph.add_empty(deps=bad))
    refused(lambda: graph.add_empty(deps=[bad]))
    if not isinstance(bad, str):
        refused(lambda: graph.add_empty(name=bad))
    refused(lambda: graph[bad])
    assert bad not in graph
    assert len(graph) == 0


def test_an_array_without_axes_is_no_list(on):
    graph, bad = on.graph(), np.zeros(())
    for call in (
        lambda: graph.add_empty(deps=bad),
        lambda: graph.add_alloc(64, peers=bad),
        lambda: graph.add_host(print, reads=bad),
    ):
        refused(call)
    assert len(graph) == 0


def test_where_memory_and_numbers_are_wanted(on, bad):
    graph, x = on.graph(), on.buffer(0, 0)
    number, memory = isinstance(bad, int), isinstance(bad, (int, bytes))  # which may be an address, and which is memory
    for taken, call in (
        (memory, lambda: graph.add_memcpy(x.pointer, bad, nbytes=8)),
        (number, lambda: graph.add_memset(bad, 0)),
        (bad is len, lambda: graph.add_host(bad)),
        (memory, lambda: graph.add_host(print, reads=[bad])),
        (bad == 5, lambda: graph.add_alloc(bad)),
        (False, lambda: graph.add_alloc(64, peers=bad)),
        (False, lambda: graph.add_alloc(64, peers=[bad])),
        (False, lambda: graph.add_free(bad)),
        (False, lambda: graph.add_child(bad)),
        (False, lambda: graph.add_event_record(bad)),
        (False, lambda: graph.add_event_wait(bad)),
        (False, lambda: graph.add_semaphore_signal(bad)),
        (False, lambda: graph.add_semaphore_wait((bad, bad))),
        (False, lambda: graph.add_kernel(bad)),
        (False, lambda: graph.instantiate(fuse=bad)),
    ):
        if not taken:
            refused(call)
    assert len(graph) == 0


def test_where_a_function_or_a_stream_is_wanted(bad):
    if bad is not len:
        refused(lambda: host_function(bad))
        refused(lambda: replay(bad))
    if bad != 5:
        refused(lambda: replay(len, warmup=bad))
    refused(lambda: host_function(print, stream=bad))


@pytest.fixture
def run(on):
    """An executable graph with a node of each kind that every device has."""
    graph, x, y = on.graph(), on.buffer(0), on.buffer(0)
    inner = on.graph()
    inner.add_memset(y, 0)
    event = on.device.create_event()
    graph.add_memset(x, 0, name="memset")
    graph.add_memcpy(y, x, name="memcpy")
    graph.add_kernel(on.adder(x, 1), name="kernel")
    graph.add_host(print, name="host")
    graph.add_child(inner, name="child")
    graph.add_event_record(event, name="record")
    graph.add_event_wait(event, name="wait")
    graph.add_empty(name="empty")
    with graph.instantiate(fuse=False) as made:
        yield made
    event.destroy()


@pytest.mark.parametrize("name", ["memset", "memcpy", "kernel", "host", "child", "record", "wait", "empty"])
def test_an_update_says_what_a_node_takes(run, name):
    before = run.nodes
    for arguments, options in (
        ((), {}),
        ((1, 2, 3, 4, 5, 6), {}),
        ((object(),), {}),
        ((object(), object()), {}),
        ((), {"deps": []}),
        ((), {"name": "other"}),
    ):
        refused(lambda a=arguments, o=options: run.update(name, *a, **o))
    assert run.nodes == before
    run.launch()


def test_an_update_of_what_is_no_name(run, bad):
    for call in (lambda: run.update(bad), lambda: run.enable(bad)):
        refused(call)


def test_the_message_names_the_arguments_that_a_node_takes(run):
    with pytest.raises(ArgumentError, match=re.escape("it takes (event)")):
        run.update("record")


def test_a_host_function_destroys_nothing(on):
    """The device waits for it, and the CPU is in the middle of the launch."""
    errors, made = [], []

    def destroy():
        for thing in made:
            with pytest.raises(DeviceError) as caught:
                thing.destroy()
            errors.append(caught.value)

    x, graph = on.buffer(0), on.graph()
    graph.add_host(destroy)
    graph.add_kernel(on.adder(x, 1))
    with graph.instantiate(fuse=False) as run, on.device.create_event() as event, on.device.create_stream() as stream:
        made += [run, event, stream]
        run.launch()
        assert on.numbers(x) == [1]
        assert len(errors) == 3
        assert not any(thing.destroyed for thing in made)
        assert all("host function" in str(error) for error in errors)


def test_memory_of_numpy_that_is_written_may_not_be_read_only(on):
    x, graph = on.buffer(0), on.graph()
    target = np.zeros(1, np.int32)
    target.flags.writeable = False
    with pytest.raises((ArgumentError, GraphError)):
        graph.add_memcpy(target, x)


def test_a_priority_is_an_int(on, bad):
    graph, x = on.graph(), on.buffer(0)
    if isinstance(bad, int):
        assert graph.add_kernel(on.adder(x, 1), priority=bad).priority == bad
    else:
        with pytest.raises(ArgumentError, match="priority="):
            graph.add_kernel(on.adder(x, 1), priority=bad)


def test_bytes_are_counted_by_any_integer(on):
    assert on.graph().add_alloc(np.int64(64)).nbytes == 64
    with pytest.raises(ArgumentError, match="nbytes is 0, which is too few"):
        on.graph().add_alloc(0)


def test_what_is_no_address_is_said(on):
    with pytest.raises(ArgumentError, match="-5 is not an address of memory"):
        on.graph().add_memcpy(-5, -5, nbytes=8)


def test_a_node_stays_in_its_process_and_is_named_shortly(on):
    graph, x = on.graph(), on.buffer(0)
    first = graph.add_kernel(on.adder(x, 1), name="first")
    second = graph.add_memset(x, name="second")
    assert repr(second) == "<memset node 'second' after 'first'>"
    for node in (first, second):
        assert copy.copy(node) is node is copy.deepcopy(node)
        with pytest.raises(GraphError, match="cannot be pickled"):
            pickle.dumps(node)
