"""Explicit graphs: edges that are left out, and graphs among other work."""

from __future__ import annotations

import numpy as np

import quadpy as qp

from .kernels import add, copy, count, every, note, ones, part, ramp
from .program import clean, possible, racy


@racy("read after write")
def an_edge_between_kernels(x, y):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, deps=[])  # first
    # fixed to: graph.add_kernel(copy, x, y, deps=["ramp"])
    graph.add_kernel(copy, x, y, deps=[])  # second
    graph.instantiate().launch()


@racy("write after write")
def an_edge_between_fills(x):
    graph = qp.graph.Graph()
    graph.add_memset(x, 1.0, deps=[])  # first
    # fixed to: graph.add_memset(x, 2.0, deps=["memset"])
    graph.add_memset(x, 2.0, deps=[])  # second
    graph.instantiate().launch()


@racy("write after read")
def an_edge_from_a_reader(x, y):
    graph = qp.graph.Graph()
    graph.add_kernel(copy, x, y, deps=[])  # first
    # fixed to: graph.add_memset(x, 0.0, deps=["copy"])
    graph.add_memset(x, 0.0, deps=[])  # second
    graph.instantiate().launch()


@racy("read after write")
def an_edge_from_a_copy(x, y, z):
    graph = qp.graph.Graph()
    graph.add_memcpy(y, x, deps=[])  # first
    # fixed to: graph.add_kernel(copy, y, z, deps=["memcpy"])
    graph.add_kernel(copy, y, z, deps=[])  # second
    graph.instantiate().launch()


@racy("read after write")
def an_edge_of_two(x, y, z):
    """The sum depends on one of its two operands."""
    graph = qp.graph.Graph()
    one = graph.add_kernel(ramp, x, deps=[])
    graph.add_kernel(ones, y, deps=[])  # first
    # fixed to: graph.add_kernel(add, x, y, z, deps=[one, "ones"])
    graph.add_kernel(add, x, y, z, deps=[one])  # second
    graph.instantiate().launch()


@racy("read after write")
def an_edge_to_the_wrong_node(x, y, z):
    graph = qp.graph.Graph()
    first = graph.add_kernel(ramp, z, deps=[])
    graph.add_kernel(ramp, x, deps=[first])  # first
    # fixed to: graph.add_kernel(copy, x, y, deps=["ramp.1"])
    graph.add_kernel(copy, x, y, deps=[first])  # second
    graph.instantiate().launch()


@racy("read after write")
def a_result_that_is_copied_too_early(x):
    result = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, deps=[])  # first
    # fixed to: graph.add_memcpy(result, x, deps=["ramp"])
    graph.add_memcpy(result, x, deps=[])  # second
    graph.instantiate().launch()


@racy("read after write")
def a_host_function_that_says_what_it_reads(x):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, deps=[])  # first
    # fixed to: graph.add_host(str, reads=[x], deps=["ramp"])
    graph.add_host(str, reads=[x], deps=[])  # second
    graph.instantiate().launch()


@racy("read after write")
def a_graph_in_a_graph(x, y):
    inner = qp.graph.Graph()
    inner.add_kernel(ramp, x)
    graph = qp.graph.Graph()
    graph.add_child(inner, deps=[])  # first
    # fixed to: graph.add_kernel(copy, x, y, deps=["child"])
    graph.add_kernel(copy, x, y, deps=[])  # second
    graph.instantiate().launch()


@racy("write after write")
def parts_of_a_graph_that_overlap(x):
    graph = qp.graph.Graph()
    graph.add_kernel(part, x, 0, 40, deps=[])  # first
    # fixed to: graph.add_kernel(part, x, 40, 64, deps=[])
    graph.add_kernel(part, x, 32, 64, deps=[])  # second
    graph.instantiate().launch()


@racy("read after write")
def fused_without_an_edge(x, y):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, deps=[])  # first
    # fixed to: graph.add_kernel(copy, x, y, deps=["ramp"])
    graph.add_kernel(copy, x, y, deps=[])  # second
    graph.instantiate(fuse="auto").launch()


@racy("read after write")
def a_graph_and_a_reader(s1, s2, x, y, ready):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("write after read")
def a_graph_reads_what_is_replaced(s1, s2, x, y, z, ready):
    graph = qp.graph.Graph()
    graph.add_kernel(copy, x, y)
    graph.add_kernel(copy, y, z)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    ramp(x, stream=s2)  # second


@racy("read after write")
def a_producer_and_a_graph(s1, s2, x, y, ready):
    graph = qp.graph.Graph()
    graph.add_kernel(copy, x, y)
    run = graph.instantiate()
    ramp(x, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    run.launch(s2)  # second


@racy("write after write")
def two_graphs(s1, s2, x, ready):
    one, two = qp.graph.Graph(), qp.graph.Graph()
    one.add_memset(x, 1.0)
    two.add_kernel(ramp, x)
    first, second = one.instantiate(), two.instantiate()
    first.launch(s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    second.launch(s2)  # second


@racy("write after write")
def launches_that_may_overlap(s1, s2, x):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed to: run.launch(s2)
    run.launch(s2, overlap=True)  # second


@racy("read after write")
def updated_arguments(s1, s2, x, y, z, ready):
    """After the update, the graph writes the array that the other stream reads."""
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, name="produce")
    run = graph.instantiate()
    run.launch(s1)
    run.update("produce", y)
    run.launch(s1)  # first
    # fixed by: ready.record(s1); ready.wait(s2)
    copy(y, z, stream=s2)  # second


@racy("read after write")
def the_host_reads_too_soon(s1, x, y):
    """The graph copies its result to the host, which uses it before the graph is done."""
    result = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    graph.add_memcpy(result, x)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed by: s1.synchronize()
    y.from_numpy(result)  # second


@racy("read after write")
def a_kernel_reads_the_hosts_copy_too_soon(s1, s2, x, y):
    result = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_memcpy(result, x)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed by: run.synchronize()
    copy(result, y, stream=s2)  # second


@racy("write after read")
def the_hosts_array_is_reused(s1, s2, x, y):
    """The buffer gets its next values while the graph still copies the last ones to the device."""
    source = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_memcpy(x, source)
    run = graph.instantiate()
    run.launch(s1)  # first
    # fixed by: s1.synchronize()
    copy(y, source, stream=s2)  # second


@racy("write after read")
def the_hosts_array_is_reused_in_a_loop(s1, s2, x, y):
    source = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_memcpy(x, source)
    run = graph.instantiate()
    for _ in range(2):
        copy(y, source, stream=s2)  # second
        run.launch(s1)  # first
        # fixed by: s1.synchronize()


@racy("read after write")
def an_event_of_a_graph_comes_too_early(s1, s2, x, y, ready):
    graph = qp.graph.Graph()
    # fixed to: graph.add_kernel(ramp, x); graph.add_event_record(ready, deps=["ramp"])
    graph.add_event_record(ready, deps=[])
    # fixed to: pass
    graph.add_kernel(ramp, x, deps=[])
    run = graph.instantiate()
    run.launch(s1)  # first
    ready.wait(s2)
    copy(x, y, stream=s2)  # second


@racy("write after write", "read after write")
def a_counter_that_is_cleared(c):
    graph = qp.graph.Graph()
    graph.add_memset(c, 0, deps=[])  # first
    # fixed to: graph.add_kernel(count, c, deps=["memset"])
    graph.add_kernel(count, c, deps=[])  # second
    graph.instantiate().launch()


@possible("read after write", "write after write", "write after read", reason="host function")
def a_host_function_that_does_not_say(x):
    """Without ``reads`` and ``writes`` it may touch anything, and nothing orders it here."""
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, deps=[])  # first
    # fixed to: graph.add_host(str, deps=["ramp"])
    graph.add_host(str, deps=[])  # second
    graph.instantiate().launch()


@clean
def derived_edges(x, y, z):
    graph = qp.graph.Graph()
    graph.add_memset(x, 1.0)
    graph.add_kernel(copy, x, y)
    graph.add_kernel(ramp, x)
    graph.add_kernel(add, x, y, z)
    run = graph.instantiate()
    run.launch()
    run.launch()


@clean
def nodes_that_have_nothing_in_common(x, y):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, deps=[])
    graph.add_kernel(ramp, y, deps=[])
    graph.instantiate().launch()


@clean
def halves_of_an_array(x):
    graph = qp.graph.Graph()
    graph.add_kernel(part, x, 0, 32, deps=[])
    graph.add_kernel(part, x, 32, 64, deps=[])
    graph.instantiate().launch()


@clean
def even_and_odd_nodes(x):
    graph = qp.graph.Graph()
    graph.add_kernel(every, x, 0, 2, deps=[])
    graph.add_kernel(every, x, 1, 2, deps=[])
    graph.instantiate().launch()


@clean
def readers_side_by_side(x, y, z):
    graph = qp.graph.Graph()
    graph.add_kernel(copy, x, y, deps=[])
    graph.add_kernel(copy, x, z, deps=[])
    graph.instantiate().launch()


@clean
def counters_side_by_side(c, d):
    graph = qp.graph.Graph()
    one = graph.add_kernel(count, c, deps=[])
    two = graph.add_kernel(count, c, deps=[])
    graph.add_kernel(note, c, d, deps=[one, two])
    graph.instantiate().launch()


@clean
def an_edge_through_another_node(x, y, z):
    graph = qp.graph.Graph()
    one = graph.add_kernel(ramp, x, deps=[])
    two = graph.add_empty(deps=[one])
    three = graph.add_kernel(copy, x, y, deps=[two])
    graph.add_kernel(add, x, y, z, deps=[three])
    graph.instantiate().launch()


@clean
def launches_of_one_graph(s1, s2, x, y):
    """A launch comes after the earlier launches of the same graph, whatever their stream."""
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    graph.add_kernel(copy, x, y)
    with graph.instantiate() as run:
        run.launch(s1)
        run.launch(s2)
        run.launch(s1)


@clean
def a_graph_between_kernels(s1, s2, x, y, z, ready, done):
    graph = qp.graph.Graph()
    graph.add_kernel(copy, x, y)
    ramp(x, stream=s1)
    with graph.instantiate() as run:
        run.launch(s1)
    ready.record(s1)
    ready.wait(s2)
    copy(y, z, stream=s2)


@clean
def the_host_waits_for_a_graph(s1, s2, x, y):
    result = np.zeros(64, np.float32)
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    graph.add_memcpy(result, x)
    with graph.instantiate() as run:
        run.launch(s1)
        run.synchronize()
    copy(result, y, stream=s2)
    ones(x, stream=s2)


@clean
def updated_to_other_arrays(s1, s2, x, y, z):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, name="produce")
    with graph.instantiate() as run:
        run.launch(s1)
        run.update("produce", y)
        run.launch(s1)
        s1.synchronize()
        run.update("produce", z)
        run.launch(s1)
        copy(x, y, stream=s2)


@clean
def an_event_of_a_graph(s1, s2, x, y, ready):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    graph.add_event_record(ready)
    with graph.instantiate() as run:
        run.launch(s1)
    ready.wait(s2)
    copy(x, y, stream=s2)


@clean
def a_graph_waits_for_an_event(s1, s2, x, y, ready):
    graph = qp.graph.Graph()
    graph.add_event_wait(ready)
    graph.add_kernel(copy, x, y)
    with graph.instantiate() as run:
        ramp(x, stream=s1)
        ready.record(s1)
        run.launch(s2)


@clean
def a_node_that_is_switched_off(s1, s2, x, y):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x, name="produce")
    graph.add_kernel(ramp, y)
    with graph.instantiate() as run:
        run.enable("produce", enabled=False)
        run.launch(s1)
        ones(x, stream=s2)


@clean
def a_host_function_in_order(s1, x, y):
    graph = qp.graph.Graph()
    graph.add_kernel(ramp, x)
    graph.add_host(str)
    graph.add_kernel(copy, x, y)
    with graph.instantiate() as run:
        run.launch(s1)
        s1.synchronize()
