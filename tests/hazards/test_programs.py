"""Small programs over all kinds of work: each with a race is reported, by its kind; each without one is not."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import quadpy as qp

from .corpus.memory import array_at

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
F64x2 = qp.types.ndarray(dtype=qp.f64, ndim=2)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
VEC = qp.types.ndarray(dtype=qp.math.vec3, ndim=1)
N = 24


@qp.kernel
def put(x: F32, begin: qp.i32, end: qp.i32):
    for i in range(begin, end):
        x[i] = i


@qp.kernel
def every(x: F32, first: qp.i32, step: qp.i32):
    for k in range((N - first + step - 1) // step):
        x[first + k * step] = 1


@qp.kernel
def backwards(x: F32, n: qp.i32):
    for i in range(n):
        x[N - 1 - i] = i


@qp.kernel
def take(x: F32, begin: qp.i32, end: qp.i32, y: F32):
    for i in range(begin, end):
        y[i] = x[i]


@qp.kernel
def stencil(x: F32, y: F32, begin: qp.i32, end: qp.i32):
    for i in range(begin, end):
        y[i] = x[i - 1] + x[i + 1]


@qp.kernel
def gather(x: F32, at: I32, y: F32):
    for i in y:
        y[i] = x[at[i]]


@qp.kernel
def some(x: F32, y: F32):
    for i in x:
        if x[i] > 2:
            y[i] = 1


@qp.kernel
def total(x: F32) -> qp.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


@qp.kernel
def into(x: F32, out: F32):
    for i in x:
        out[0] += x[i]


@qp.kernel
def add_to(c: I32):
    for i in range(100):
        qp.atomic_add(c[i % 4], 1)


@qp.kernel
def subtract_from(c: I32):
    for i in range(100):
        qp.atomic_sub(c[i % 4], 1)


@qp.kernel
def most_of(c: I32):
    for i in range(100):
        qp.atomic_max(c[i % 4], i)


@qp.kernel
def row(m: F64x2, i: qp.i32):
    for j in range(m.shape[1]):
        m[i, j] = j


@qp.kernel
def column(m: F64x2, j: qp.i32):
    for i in range(m.shape[0]):
        m[i, j] = i


@qp.kernel
def block(m: F64x2, i0: qp.i32, i1: qp.i32, j0: qp.i32, j1: qp.i32):
    for i, j in qp.ndrange((i0, i1), (j0, j1)):
        m[i, j] = 1


@qp.kernel
def set_x(v: VEC):
    for i in v:
        v[i].x = 1


@qp.kernel
def set_yz(v: VEC):
    for i in v:
        v[i].yz = qp.math.vec2(2, 3)


@qp.kernel
def swap(x: F32, y: F32):
    for i in x:
        t = x[i]
        x[i] = y[i]
        y[i] = t


@qp.kernel
def early(x: F32, n: qp.i32):
    for i in x:
        if i >= n:
            continue
        x[i] = 1


@qp.kernel
def late(x: F32, n: qp.i32):
    for i in x:
        if i < n:
            continue
        x[i] = 1


class World:
    """What a program has: two streams beside the default one, events and arrays."""

    def __init__(self):
        self.main = qp.Stream.from_handle(0)
        self.s, self.t = qp.create_stream(), qp.create_stream()
        self.e, self.f = qp.create_event(), qp.create_event()
        self.x, self.y, self.z = (qp.ndarray(qp.f32, N) for _ in range(3))
        self.c, self.at = qp.ndarray(qp.i32, N), qp.ndarray(qp.i32, N)
        self.m, self.v = qp.ndarray(qp.f64, (8, 10)), qp.ndarray(qp.math.vec3, 6)
        self.streams = self.s.device.streams
        qp.sync()

    def array_at(self, pointer):
        return array_at(pointer, self.x, N)

    def order(self, first, second):
        event = qp.create_event()
        event.record(first)
        event.wait(second)


PROGRAMS = []
RAW, WAR, WAW = "read after write", "write after read", "write after write"
FREED = "use after free"


def program(*kinds, maybe=()):
    """A program whose certain hazards have ``kinds``, in any order, and whose possible ones have ``maybe``."""

    def keep(fn):
        PROGRAMS.append(pytest.param(fn, sorted(kinds), sorted(maybe), id=fn.__name__))
        return fn

    return keep


# kernels and elements


@program(WAW)
def ranges_that_share_one_element(w):
    put(w.x, 0, 9, stream=w.s)
    put(w.x, 8, 12, stream=w.t)


@program()
def ranges_that_touch(w):
    put(w.x, 0, 9, stream=w.s)
    put(w.x, 9, 12, stream=w.t)


@program()
def an_empty_range(w):
    put(w.x, 0, N, stream=w.s)
    put(w.x, 7, 7, stream=w.t)
    put(w.x, 9, 3, stream=w.t)


@program()
def even_and_odd(w):
    every(w.x, 0, 2, stream=w.s)
    every(w.x, 1, 2, stream=w.t)


@program(WAW)
def every_second_and_every_third(w):
    every(w.x, 0, 2, stream=w.s)
    every(w.x, 1, 3, stream=w.t)


@program()
def every_fourth_from_one_and_every_sixth_from_two(w):
    every(w.x, 1, 4, stream=w.s)
    every(w.x, 2, 6, stream=w.t)


@program(WAW)
def backwards_over_the_end(w):
    backwards(w.x, 5, stream=w.s)
    put(w.x, 0, N - 4, stream=w.t)


@program()
def backwards_up_to_it(w):
    backwards(w.x, 5, stream=w.s)
    put(w.x, 0, N - 5, stream=w.t)


@program(RAW)
def a_halo_too_early(w):
    put(w.x, 12, N, stream=w.s)
    stencil(w.x, w.y, 1, 12, stream=w.t)


@program()
def an_interior_beside_a_boundary(w):
    put(w.x, 12, N, stream=w.s)
    stencil(w.x, w.y, 1, 11, stream=w.t)


@program(WAR)
def a_buffer_is_filled_again_too_early(w):
    take(w.x, 0, N, w.y, stream=w.s)
    put(w.x, 0, N, stream=w.t)


@program()
def two_readers(w):
    take(w.x, 0, N, w.y, stream=w.s)
    take(w.x, 0, N, w.z, stream=w.t)


@program()
def a_row_each(w):
    row(w.m, 2, stream=w.s)
    row(w.m, 3, stream=w.t)


@program()
def a_column_each(w):
    column(w.m, 0, stream=w.s)
    column(w.m, 9, stream=w.t)


@program(WAW)
def a_row_and_a_column(w):
    row(w.m, 7, stream=w.s)
    column(w.m, 0, stream=w.t)


@program()
def tiles(w):
    block(w.m, 0, 4, 0, 5, stream=w.s)
    block(w.m, 0, 4, 5, 10, stream=w.t)
    block(w.m, 4, 8, 0, 10, stream=w.main)


@program(WAW)
def tiles_that_share_a_corner(w):
    block(w.m, 0, 4, 0, 5, stream=w.s)
    block(w.m, 3, 8, 4, 10, stream=w.t)


@program()
def other_components(w):
    set_x(w.v, stream=w.s)
    set_yz(w.v, stream=w.t)


@program(WAW)
def the_same_component(w):
    set_yz(w.v, stream=w.s)
    set_yz(w.v, stream=w.t)


@program(maybe=[RAW])
def indices_from_memory(w):
    put(w.x, 0, 3, stream=w.s)
    gather(w.x, w.at, w.y, stream=w.t)


@program(RAW)
def the_indices_themselves(w):
    add_to(w.at, stream=w.s)
    qp.sync()
    add_to(w.at, stream=w.s)
    gather(w.x, w.at, w.y, stream=w.t)


@program(maybe=[WAW])
def a_write_that_depends_on_data(w):
    put(w.y, 0, 3, stream=w.s)
    some(w.x, w.y, stream=w.t)


@program()
def guards_that_exclude_each_other(w):
    early(w.x, 9, stream=w.s)
    late(w.x, 9, stream=w.t)


@program(WAW)
def guards_that_meet(w):
    early(w.x, 10, stream=w.s)
    late(w.x, 9, stream=w.t)


@program(RAW, WAR)
def both_arrays_at_once(w):
    swap(w.x, w.y, stream=w.s)
    w.order(w.s, w.main)
    swap(w.y, w.z, stream=w.s)
    take(w.z, 0, N, w.x, stream=w.t)
    w.s.synchronize()


# atomic operations and reductions


@program()
def additions_commute(w):
    add_to(w.c, stream=w.s)
    add_to(w.c, stream=w.t)
    subtract_from(w.c, stream=w.main)


@program(WAW)
def an_addition_and_a_maximum_do_not(w):
    add_to(w.c, stream=w.s)
    most_of(w.c, stream=w.t)


@program(RAW)
def two_sums_into_one_place(w):
    into(w.x, w.z, stream=w.s)
    into(w.y, w.z, stream=w.t)


@program(RAW)
def a_result_of_an_array_that_is_written(w):
    put(w.x, 0, N, stream=w.s)
    total(w.x, stream=w.t)


@program()
def what_returns_has_waited(w):
    total(w.x, stream=w.s)
    put(w.x, 0, N, stream=w.t)


# order


@program(RAW)
def an_event_recorded_too_early(w):
    w.e.record(w.s)
    put(w.x, 0, N, stream=w.s)
    w.e.wait(w.t)
    take(w.x, 0, 4, w.y, stream=w.t)


@program(WAW)
def an_event_recorded_again_on_another_stream(w):
    put(w.x, 0, N, stream=w.s)
    w.e.record(w.s)
    w.e.record(w.main)
    w.e.wait(w.t)
    put(w.x, 0, N, stream=w.t)


@program()
def a_wait_keeps_what_the_event_was(w):
    put(w.x, 0, N, stream=w.s)
    w.e.record(w.s)
    w.e.wait(w.t)
    w.e.record(w.main)
    put(w.x, 0, N, stream=w.t)


@program()
def a_chain_of_events(w):
    put(w.x, 0, N, stream=w.s)
    w.order(w.s, w.main)
    w.order(w.main, w.t)
    put(w.x, 0, N, stream=w.t)


@program(WAW)
def a_chain_in_the_wrong_order(w):
    put(w.x, 0, N, stream=w.s)
    w.order(w.main, w.t)
    w.order(w.s, w.main)
    put(w.x, 0, N, stream=w.t)


@program(WAW)
def work_after_the_record(w):
    put(w.x, 0, 4, stream=w.s)
    w.e.record(w.s)
    put(w.x, 4, 8, stream=w.s)
    w.e.wait(w.t)
    put(w.x, 0, 8, stream=w.t)


@program()
def only_the_ordered_part(w):
    put(w.x, 0, 4, stream=w.s)
    w.e.record(w.s)
    put(w.x, 4, 8, stream=w.s)
    w.e.wait(w.t)
    put(w.x, 0, 4, stream=w.t)


@program()
def a_query_that_says_yes(w):
    put(w.x, 0, N, stream=w.s)
    w.e.record(w.s)
    while not w.e.query():
        pass
    put(w.x, 0, N, stream=w.t)


@program(WAW)
def a_host_that_waited_for_another_stream(w):
    put(w.x, 0, N, stream=w.s)
    w.main.synchronize()
    put(w.x, 0, N, stream=w.t)


@program(RAW)
def the_second_turn_of_a_loop(w):
    for _ in range(2):
        put(w.x, 0, N, stream=w.s)
        w.order(w.s, w.t)
        take(w.x, 0, N, w.y, stream=w.t)
        take(w.y, 0, N, w.z, stream=w.s)
        w.order(w.t, w.s)


@program(WAR)
def a_ring_without_its_last_edge(w):
    for _ in range(2):
        put(w.x, 0, N, stream=w.s)
        w.order(w.s, w.t)
        take(w.x, 0, N, w.y, stream=w.t)


@program()
def a_ring_with_it(w):
    for _ in range(5):
        put(w.x, 0, N, stream=w.s)
        w.order(w.s, w.t)
        take(w.x, 0, N, w.y, stream=w.t)
        w.order(w.t, w.s)


@program(WAW, WAW)
def a_third_stream_after_two_that_take_turns(w):
    for _ in range(5):
        put(w.x, 0, N, stream=w.s)
        w.order(w.s, w.t)
        put(w.x, 0, N, stream=w.t)
        w.order(w.t, w.s)
    w.order(w.s, w.t)
    put(w.x, 3, 4, stream=w.t)
    put(w.x, 3, 4, stream=w.main)


@program(WAW)
def turns_that_end(w):
    for _ in range(5):
        put(w.x, 0, N, stream=w.s)
        w.order(w.s, w.t)
        put(w.x, 0, N, stream=w.t)
        w.order(w.t, w.s)
    put(w.x, 0, 1, stream=w.s)
    put(w.x, 0, 1, stream=w.t)


@program(WAW)
def an_old_call_of_another_part(w):
    """What was kept of a stream's calls is more than the last one."""
    put(w.x, 20, N, stream=w.s)
    for k in range(10):
        put(w.x, k, k + 1, stream=w.s)
    put(w.x, 23, 24, stream=w.t)


# copies, fills and the host


@program(WAW)
def a_fill_and_a_kernel(w):
    w.x.fill(1, stream=w.s)
    put(w.x, 5, 6, stream=w.t)


@program()
def a_fill_waits_for_kernels(w):
    put(w.x, 5, 6, stream=w.t)
    w.x.fill(1, stream=w.s)


@program(RAW)
def an_upload_is_read_on_another_stream(w):
    w.x.from_numpy(np.ones(N, np.float32), stream=w.s)
    take(w.x, 0, 1, w.y, stream=w.t)


@program()
def a_download_waits(w):
    put(w.x, 0, N, stream=w.s)
    w.x.to_numpy(stream=w.t)
    put(w.x, 0, N, stream=w.t)


@program(WAR)
def a_copy_reads_its_source(w):
    w.y.copy_from(w.x, stream=w.s)
    put(w.x, 0, 1, stream=w.t)


@program()
def a_copy_of_copies(w):
    w.y.copy_from(w.x, stream=w.s)
    w.z.copy_from(w.y, stream=w.t)
    w.z.to_numpy(stream=w.main)


@program(WAW)
def an_element_of_the_host(w):
    w.x[3] = 1.0
    put(w.x, 3, 4, stream=w.s)


@program()
def another_element(w):
    w.x[3] = 1.0
    put(w.x, 4, 5, stream=w.s)


@program(WAW)
def a_slice_of_the_host(w):
    w.m[2:4, 3] = 1.0
    column(w.m, 3, stream=w.s)


@program()
def a_slice_beside_a_column(w):
    w.m[2:4, 3] = 1.0
    column(w.m, 4, stream=w.s)


@program()
def the_host_reads_an_element(w):
    put(w.x, 0, N, stream=w.s)
    assert w.x[3] >= 0
    put(w.x, 0, N, stream=w.t)


@program()
def an_array_of_numpy_is_done(w):
    a = np.zeros(N, np.float32)
    put(a, 0, N, stream=w.s)
    put(a, 0, N, stream=w.t)
    take(a, 0, N, w.y, stream=w.main)


# memory


@program(FREED)
def freed_beside_its_kernel(w):
    p = w.streams.malloc_async(4 * N, 0)
    x = w.array_at(p)
    w.order(w.main, w.s)
    put(x, 0, N, stream=w.s)
    w.streams.free_async(p, 0)


@program()
def freed_after_its_kernel(w):
    p = w.streams.malloc_async(4 * N, 0)
    x = w.array_at(p)
    w.order(w.main, w.s)
    put(x, 0, N, stream=w.s)
    w.order(w.s, w.main)
    w.streams.free_async(p, 0)


@program("use before allocation")
def used_before_it_is_allocated(w):
    p = w.streams.malloc_async(4 * N, 0)
    put(w.array_at(p), 0, N, stream=w.s)


@program()
def arrays_that_go_while_work_is_pending(w):
    for _ in range(4):
        x = qp.ndarray(qp.f32, N)
        w.order(w.main, w.s)
        put(x, 0, N, stream=w.s)
        del x


# views and other libraries


@program(WAW)
def a_view_of_the_same_elements(w):
    v = qp.from_dlpack(np.asarray(w.x)[8:16])
    put(w.x, 0, 9, stream=w.s)
    put(v, 0, 1, stream=w.t)


@program()
def a_view_beside_them(w):
    v = qp.from_dlpack(np.asarray(w.x)[8:16])
    put(w.x, 0, 8, stream=w.s)
    put(v, 0, 8, stream=w.t)


@program(WAW)
def two_views(w):
    a = np.asarray(w.x)
    put(qp.from_dlpack(a[:12]), 11, 12, stream=w.s)
    put(qp.from_dlpack(a[11:]), 0, 1, stream=w.t)


@program(RAW)
def declared_work(w):
    put(w.x, 0, 4, stream=w.s)
    qp.hazards.declare("a solver", reads=[w.x], writes=[w.y], stream=w.t)


@program()
def declared_work_in_order(w):
    put(w.x, 0, 4, stream=w.s)
    w.order(w.s, w.t)
    qp.hazards.declare("a solver", reads=[w.x], writes=[w.y], stream=w.t)
    take(w.y, 0, 4, w.z, stream=w.t)


@program(RAW)
def the_host_uses_a_view_too_early(w):
    view = np.asarray(w.x)
    put(w.x, 0, 4, stream=w.s)
    qp.hazards.declare("NumPy", reads=[w.x], stream="host")
    assert view.size == N


# graphs


def graph_of(*steps, **options):
    graph = qp.graph.Graph()
    for number, (kernel, *args) in enumerate(steps):
        graph.add_kernel(kernel, *args, name=f"n{number}", **options)
    return graph.instantiate()


@program(WAW)
def a_graph_and_a_kernel(w):
    graph = graph_of((put, w.x, 0, 4), (put, w.y, 0, 4))
    graph.launch(w.s)
    put(w.y, 3, 5, stream=w.t)


@program()
def a_graph_and_other_elements(w):
    graph = graph_of((put, w.x, 0, 4), (put, w.y, 0, 4))
    graph.launch(w.s)
    put(w.y, 4, 5, stream=w.t)


@program()
def a_graph_waits_for_itself(w):
    graph = graph_of((put, w.x, 0, 4))
    graph.launch(w.s)
    graph.launch(w.t)


@program(WAW)
def two_graphs(w):
    graph_of((put, w.x, 0, 4)).launch(w.s)
    graph_of((put, w.x, 3, 4)).launch(w.t)


@program(WAW)
def a_capture_replayed_beside_a_kernel(w):
    with qp.graph.capture(w.s) as graph:
        put(w.x, 0, 4, stream=w.s)
    run = graph.instantiate()
    run.launch(w.s)
    put(w.x, 0, 1, stream=w.t)


@program()
def a_capture_in_order(w):
    with qp.graph.capture(w.s) as graph:
        put(w.x, 0, 4, stream=w.s)
    run = graph.instantiate()
    for _ in range(3):
        run.launch(w.s)
    w.order(w.s, w.t)
    put(w.x, 0, 1, stream=w.t)


@program(WAW)
def a_capture_with_a_fork_that_is_not_ordered(w):
    with qp.graph.capture(w.s) as graph:
        w.e.record(w.s)
        w.e.wait(w.t)
        put(w.x, 0, 4, stream=w.s)
        put(w.x, 3, 8, stream=w.t)
        w.f.record(w.t)
        w.f.wait(w.s)
    graph.instantiate()


@program()
def a_capture_with_a_fork(w):
    with qp.graph.capture(w.s) as graph:
        w.e.record(w.s)
        w.e.wait(w.t)
        put(w.x, 0, 4, stream=w.s)
        put(w.x, 4, 8, stream=w.t)
        w.f.record(w.t)
        w.f.wait(w.s)
        take(w.x, 0, 8, w.y, stream=w.s)
    graph.instantiate().launch(w.s)


@program(RAW)
def nodes_without_an_edge(w):
    graph = qp.graph.Graph()
    graph.add_kernel(put, w.x, 0, 4, name="a", deps=[])
    graph.add_kernel(take, w.x, 3, 9, w.y, name="b", deps=[])
    graph.instantiate()


@program()
def nodes_with_an_edge(w):
    graph = qp.graph.Graph()
    first = graph.add_kernel(put, w.x, 0, 4, name="a", deps=[])
    graph.add_kernel(take, w.x, 3, 9, w.y, name="b", deps=[first])
    graph.instantiate().launch(w.t)


@program(WAW)
def a_copy_node_without_an_edge(w):
    graph = qp.graph.Graph()
    graph.add_kernel(put, w.x, 0, 4, name="a", deps=[])
    graph.add_memcpy(w.x, w.y, name="b", deps=[])
    graph.instantiate()


# threads


def in_thread(function):
    failed = []

    def run():
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - shown below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed, failed


@program(WAW)
def a_thread_with_a_stream_of_its_own(w):
    put(w.x, 0, N, stream=w.s)
    in_thread(lambda: put(w.x, 0, 1, stream=w.t))


@program()
def a_thread_that_waits(w):
    put(w.x, 0, N, stream=w.s)
    in_thread(w.s.synchronize)
    in_thread(lambda: put(w.x, 0, 1, stream=w.t))


@program()
def a_thread_on_the_same_stream(w):
    put(w.x, 0, N, stream=w.s)
    in_thread(lambda: put(w.x, 0, 1, stream=w.s))


@program(WAW)
def a_stream_of_a_with_block(w):
    with w.s:
        put(w.x, 0, N, stream=w.s)
    with qp.create_stream() as own:
        put(w.x, 0, 1, stream=own)


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, hazards=False)
    yield
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize(("body", "kinds", "maybe"), PROGRAMS)
def test_its_hazards_are_found(body, kinds, maybe):
    with warnings.catch_warnings(), qp.hazards.check(collect=True) as found:
        warnings.simplefilter("ignore")
        body(World())
    assert (sorted(h.kind for h in found.certain), sorted(h.kind for h in found.possible)) == (kinds, maybe), str(found)


def test_streams_and_arrays_of_objects_have_names():
    w = World()
    with qp.hazards.check(collect=True) as found:
        put(w.x, 0, N, stream=w.s)
        w.x.fill(1, stream=w.s)
        put(w.x, 0, N, stream=w.t)
    (hazard,) = found.certain
    assert (hazard.first.array, hazard.first.stream, hazard.second.stream) == ("w.x", "w.s", "w.t")
    assert hazard.fix == "ready = qp.create_event(); ready.record(w.s); ready.wait(w.t)"
