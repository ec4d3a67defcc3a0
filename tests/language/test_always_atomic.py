"""``x[i] += v`` is one step among the iterations of its launch; ``qp.atomic_*`` is, among launches and sections, too."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

A = qp.types.ndarray
TURNS, LAUNCHES = 20_000, 30


@qp.kernel
def own(x: A(qp.i32, 1), turns: qp.i32):
    for i in x:
        for _ in range(turns):
            qp.atomic_add(x[i], 1)


@qp.kernel
def own_float(x: A(qp.f32, 1), turns: qp.i32):
    for i in x:
        for _ in range(turns):
            qp.atomic_add(x[i], 1.0)


@qp.kernel
def two_axes(x: A(qp.i32, 1), turns: qp.i32):
    for i, _ in qp.ndrange(x.shape[0], 1):
        for _ in range(turns):
            qp.atomic_sub(x[i], -1)


@qp.kernel
def first_and_only(x: A(qp.i32, 1), turns: qp.i32):
    for k in range(4):
        qp.loop_config(serialize=True)
        for _ in range(turns):
            qp.atomic_add(x[k], 1)


@qp.kernel
def serial(x: A(qp.i32, 1), turns: qp.i32):
    k = 0
    while k < turns:
        qp.atomic_add(x[0], 1)
        qp.atomic_add(x[1], 1)
        qp.atomic_add(x[2], 1)
        qp.atomic_add(x[3], 1)
        k += 1


@qp.kernel
def lists_places(x: A(qp.i32, 1), turns: qp.i32):
    for i in x:
        for _ in range(turns):
            before = qp.atomic_add(x[i], 1)
            if before < 0:
                x[i] = 0


def in_two_threads(work):
    """Twice at once, each on a stream of its own; on the CPU calls of two threads run at once."""
    together, failed = threading.Barrier(2), []

    def run():
        try:
            with qp.create_stream() as stream:
                together.wait()
                work(stream)
                stream.synchronize()
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.fixture
def one_thread(arch):
    """A loop runs on its caller's thread alone, so that the launches of two threads overlap."""
    qp.init(arch=arch, cpu_max_num_threads=1)
    yield
    qp.init(arch=arch, cpu_max_num_threads=2)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("kernel", [own, own_float, two_axes, first_and_only, serial, lists_places],
                         ids=lambda kernel: kernel.__name__)  # fmt: skip
def test_launches_at_once_lose_no_update(kernel, arch):
    x = qp.ndarray(qp.f32 if kernel is own_float else qp.i32, 4)
    x.fill(0)
    kernel(x, 1)
    qp.sync()
    turns, launches = (TURNS, LAUNCHES) if arch == "cpu" else (500, 4)
    in_two_threads(lambda stream: [kernel(x, turns, stream=stream) for _ in range(launches)])
    assert x.to_numpy().tolist() == [1 + 2 * turns * launches] * 4


@qp.kernel
def total(x: A(qp.f32, 1), out: A(qp.f32, 1)):
    for i in x:
        qp.atomic_add(out[0], x[i])
        qp.atomic_max(out[1], x[i])


@qp.kernel
def histogram(x: A(qp.i32, 1), out: A(qp.i32, 1)):
    for i in x:
        qp.atomic_add(out[x[i]], 1)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("n", [100, 20_000])
def test_partial_results_of_launches_at_once_lose_no_update(n, arch):
    """Sums of few iterations, whose merges are near each other in time; histograms on one copy, and on several."""
    x, keys = qp.ndarray(qp.f32, n), qp.ndarray(qp.i32, n)
    x.fill(1)
    keys.from_numpy(np.arange(n, dtype=np.int32) % 3)
    sums, bins = qp.ndarray(qp.f32, 2), qp.ndarray(qp.i32, 3)
    sums.fill(0)
    bins.fill(0)
    qp.sync()
    launches = 2_000_000 // n if arch == "cpu" else 3

    def work(stream):
        for _ in range(launches):
            total(x, sums, stream=stream)
            histogram(keys, bins, stream=stream)

    in_two_threads(work)
    few = min(2 * launches * n, 1 << 24)
    assert sums.to_numpy().tolist() == [few, 1]
    assert bins.to_numpy().tolist() == [2 * launches * (-(-(n - k) // 3)) for k in range(3)]


# What is plain, and what stays, on every target alike.

S = qp.types.struct(a=qp.f32, b=qp.f32)
FIELD = qp.field(qp.f32, 8)
VECTORS = qp.Vector.field(2, qp.f32, 8)
SPARSE = qp.field(qp.f32)
qp.root.pointer(qp.ij, (4, 4)).pointer(qp.ij, (2, 8)).place(SPARSE)


@qp.func
def adds_to(place: qp.template(), v):
    place += v


@qp.func
def adds_atomically(x: qp.template(), i, v):
    qp.atomic_add(x[i], v)


@qp.kernel
def plain(x: A(qp.f32, 1), y: A(qp.f32, 2), v: A(qp.math.vec2, 1), s: A(S, 1), n: qp.i32):
    for i in range(n):
        x[i] += 1.0
    for i in range(n):
        adds_to(x[i], 1.0)
    for i in range(n):
        x[n - 1 - i] *= 2.0
    for i in range(n):
        j, last = i + 3, n - 1
        x[j] -= 1.0
        x[i + 3] -= x[last - i]
    for i, j in qp.ndrange(n, n):
        y[j, i] += y[j - 1, i] + y[j + 1, i]
    for i in range(n):
        y[i, 0] += 1.0
        y[i, 1] += y[i, 0]
        for k in range(2, n):
            y[i, k] += 1.0
    for i in range(n):
        v[i] += v[0]
        v[i].x -= 1.0
    for i in range(n):
        s[i].a += s[i].b
    for i in FIELD:
        FIELD[i] += 1.0
    for i in VECTORS:
        VECTORS[i] += 1.0
    for i, j in SPARSE:
        SPARSE[i, j] += 1.0
        SPARSE[i, j] *= 2.0
    for i in range(64):
        y[i // 8, i % 8] += 1.0
    for i, j in qp.ndrange(8, 4):
        k = i * 4 + j
        row, column = k >> 3, k & 7
        y[row, column] += y[row + 1, column]
        x[4 * i + j] += 1.0
    x[0] += 1.0


@qp.kernel
def stays(x: A(qp.f32, 1), y: A(qp.f32, 2), at: A(qp.i32, 1), n: qp.i32):
    for i in range(n):
        x[at[i]] += x[0]
    for i in range(n):
        x[i] += x[0]
        x[n - 1 - i] += 1.0
    for i in range(n):
        x[i // 2] += x[0]
    for i, j in qp.ndrange(n, n):
        y[i, 0] += y[j, 0]
    for i, j in qp.ndrange(n, n):
        y[i + j, j + i] += y[0, 0]
    for i in range(n):
        x[i] += 1.0
        x[at[i]] = 0.0
    for i in range(n):
        x[qp.i8(i)] += x[0]
    for i in range(n):
        y[i % 3, i * 65536] += y[0, 0]
    for i in range(64):
        y[i // 8, i % 7] += y[0, 0]
    for i, j in qp.ndrange(8, 5):
        x[4 * i + j] += x[0]
    for i in range(1 << 14):
        j = i * (1 << 20)  # wraps
        y[j >> 20, j & 1023] += y[0, 0]


@qp.kernel
def always(x: A(qp.f32, 1), v: A(qp.math.vec2, 1), s: A(S, 1), n: qp.i32):
    for i in range(n):
        qp.atomic_add(x[i], 1.0)
    for i in range(n):
        adds_atomically(x, i, 1.0)
    for i in range(n):
        x[i] = qp.atomic_exchange(x[i], 2.0)
    for i in range(n):
        qp.atomic_cas(x[i], 1.0, 2.0)
    for i in range(n):
        qp.atomic_min(v[i].x, 1.0)
    for i in range(n):
        qp.atomic_max(s[i].a, 1.0)
    for i in FIELD:
        qp.atomic_mul(FIELD[i], 1.0)
    for i in range(n):
        x[i] += 1.0
        qp.atomic_add(x[i], 1.0)
    qp.atomic_sub(x[0], 1.0)


def atomics_of(kernel):
    """For each task, how many atomic operations it has."""
    tasks = trace_for(kernel, {}).kernel.tasks
    return [sum(isinstance(node, ir.Atomic) for node in walk(task)) for task in tasks]


def test_updates_that_are_proved_apart_are_plain():
    assert set(atomics_of(plain)) == {0}


def test_others_are_atomic():
    assert all(atomics_of(stays)), atomics_of(stays)


def test_calls_are_always_atomic():
    assert set(atomics_of(always)) == {1}


@qp.kernel
def in_sections(x: A(qp.i32, 1), n: qp.i32):
    with qp.stream_parallel():
        for i in x:
            qp.atomic_add(x[i], 1)
    with qp.stream_parallel():
        for i in range(n):
            qp.atomic_add(x[i % 4], 1)
    with qp.stream_parallel():
        qp.atomic_add(x[0], 5)


def test_updates_of_sections_commute():
    x = np.zeros(4, np.int32)
    in_sections(x, 400)
    assert x.tolist() == [106, 101, 101, 101]
