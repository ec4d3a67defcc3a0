"""What kernels read that changes by itself: elements that others write, the clock; and where elements lie."""

from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.core.target import parse_target
from quadpy.jit.offline import trace_for

A = qp.types.ndarray
TYPES = [
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.bool_,
]


@qp.kernel
def copied(x: A(ndim=1), y: A(ndim=1)):
    for i in x:
        y[i] = qp.volatile_load(x[i])


@pytest.mark.parametrize("dtype", TYPES)
def test_volatile_load_gives_every_bit_of_every_type(dtype, arch):
    size = np.dtype(dtype).itemsize
    x = np.random.default_rng(1).integers(0, 256, 64 * size, np.uint8).view(dtype) if dtype != np.bool_ else (
        np.arange(64) % 3 == 0
    )  # fmt: skip
    if np.dtype(dtype).kind == "f":
        x = np.where(np.isnan(x), dtype(-0.0), x)
    y = np.ones_like(x)
    copied(x, y)
    assert y.tobytes() == x.tobytes()


@qp.kernel
def parts(v: A(dtype=qp.types.vector(3, qp.f32), ndim=1), k: qp.i32, out: A(ndim=1)):
    for i in v:
        w = qp.volatile_load(v[i])
        out[4 * i] = w.x + w.z
        out[4 * i + 1] = qp.volatile_load(v[i][1])
        out[4 * i + 2] = qp.volatile_load(v[i][k])
        local = 2.5
        out[4 * i + 3] = qp.volatile_load(local)


def test_volatile_load_of_vectors_components_and_variables(arch):
    v, out = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(16, np.float32)
    parts(v, 2, out)
    assert out.reshape(4, 4).tolist() == [[2 * a + 2, a + 1, a + 2, 2.5] for a in (0, 3, 6, 9)]


@qp.kernel
def wait(flag: A(qp.f32, 1), most: qp.i64) -> qp.i64:
    turns = qp.i64(0)
    while qp.volatile_load(flag[0]) == 0.0 and turns < most:
        turns += 1
    return turns


def test_a_loop_sees_what_another_thread_writes():
    """The element is read again in each turn: the host writes while the kernel waits."""
    qp.init(arch=qp.cpu)
    flag = np.zeros(1, np.float32)
    wait(flag, 0)
    setter = threading.Timer(0.2, flag.fill, [1.0])
    setter.start()
    before = time.perf_counter()
    turns = wait(flag, 2**40)
    assert turns < 2**40
    assert 0.1 < time.perf_counter() - before < 60
    setter.join()


def test_a_read_only_array_may_be_read_so():
    x = np.arange(4)
    x.flags.writeable = False
    y = np.zeros(4, int)
    copied(x, y)
    assert y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("call", ["qp.volatile_load()", "qp.volatile_load(x[0], x[1])", "qp.volatile_load(y=x[0])"])
def test_volatile_load_takes_one_element(call, load):
    module = load(f"@qp.kernel\ndef k(x: qp.types.ndarray()):\n    x[0] = {call}\n")
    with pytest.raises(qp.KernelTypeError, match=r"volatile_load takes one argument"):
        module.k(np.zeros(3))


# ------------------------------------------------------------------------- the clock


@qp.kernel
def timed(x: A(qp.f64, 1), ticks: A(qp.i64, 1), n: qp.i32):
    for i in x:
        start = qp.clock_counter()
        total = x[i]
        for _ in range(n):
            total = qp.sin(total) + 1.0
        x[i] = total
        ticks[i] = qp.clock_counter() - start


def test_the_clock_counts_while_a_loop_runs(arch):
    few, many = (np.zeros(64, np.int64) for _ in range(2))
    for ticks, n in ((few, 10), (many, 10_000)):
        timed(np.ones(64), ticks, n)
    assert few.min() >= 0
    assert np.median(many) > 20 * np.median(few)


@qp.kernel
def around(x: A(qp.f64, 1)) -> qp.i64:
    start = qp.clock_counter()
    for i in x:
        x[i] = qp.sin(x[i])
    return qp.clock_counter() - start


def test_the_clock_at_the_top_level_is_read_between_tasks(arch):
    assert around(np.ones(1000)) > 0


def test_ticks_become_seconds():
    qp.init(arch=qp.cpu)
    looks = []
    for _ in range(2):
        looks.append((now(), time.perf_counter()))
        time.sleep(0.05)
    (first, start), (last, end) = looks
    assert (last - first) / qp.clock_freq_hz() == pytest.approx(end - start, rel=0.2)
    assert qp.clock_freq_hz() == qp.clock_freq_hz() > 1e6


@qp.kernel
def now() -> qp.i64:
    return qp.clock_counter()


def test_the_interpreter_counts_nanoseconds():
    qp.init(arch=qp.python)
    try:
        assert qp.clock_freq_hz() == 1e9
        before = time.perf_counter_ns()
        assert before <= now() <= time.perf_counter_ns()
    finally:
        qp.init(arch=qp.cpu)


def test_the_clock_has_no_value_outside_of_kernels():
    with pytest.raises(qp.QuadpyError, match="clock_counter"):
        qp.clock_counter()


# ------------------------------------------------------------------------- addresses


@qp.kernel
def addresses(x: A(ndim=2), out: A(qp.u64, 2)):
    for i, j in x:
        out[i, j] = qp.get_addr(x, [i, j])


@pytest.mark.parametrize("arch", [qp.cpu, qp.python])
def test_addresses_are_those_of_numpy(arch):
    qp.init(arch=arch)
    try:
        whole = np.zeros((6, 10), np.float32)
        for x in (whole, whole[::2, 1:9:3], whole.T):
            out = np.zeros(x.shape, np.uint64)
            addresses(x, out)
            assert out.tolist() == [
                [x[i : i + 1, j : j + 1].ctypes.data for j in range(x.shape[1])] for i in range(x.shape[0])
            ]
    finally:
        qp.init(arch=qp.cpu)


def test_addresses_in_blocks_by_field_and_node(arch):
    """A field in blocks of two by two: its elements lie in the order of the blocks."""
    a, found = qp.field(qp.i32), qp.field(qp.i32, (2, 4))
    qp.root.dense(qp.ij, (1, 2)).dense(qp.ij, 2).place(a)

    @qp.kernel
    def fill():
        for i, j in a:
            first = qp.get_addr(a.snode, [0, 0])
            a[i, j] = qp.i32(qp.get_addr(a, (i, j)) - first) // 4
            found[i, j] = qp.i32(qp.get_addr(a.snode, qp.Vector([i, j])) - first) // 4

    fill()
    assert a.to_numpy().tolist() == found.to_numpy().tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize(("call", "message"), [
    ("qp.get_addr(x, [0])", "1 index for an array of 2 dimensions"),
    ("qp.get_addr(1, [0])", "get_addr takes an array, a field or the node of a field, not "),
    ("qp.get_addr(x, [0, 0.5])", "an index must be an integer"),
])  # fmt: skip
def test_what_has_no_address(call, message, load):
    module = load(f"@qp.kernel\ndef k(x: qp.types.ndarray(ndim=2)) -> qp.u64:\n    return {call}\n")
    with pytest.raises(qp.KernelTypeError, match=re.escape(message)):
        module.k(np.zeros((2, 2)))


# ------------------------------------------------------------------------- every target


@qp.kernel
def all_of_them(x: A(qp.f32, 1), n: A(qp.u8, 1), out: A(qp.i64, 1)):
    for i in x:
        start = qp.clock_counter()
        while qp.volatile_load(x[0]) < 1.0:
            pass
        out[i] = qp.clock_counter() - start + qp.i64(qp.get_addr(x, i)) + qp.volatile_load(n[i])


@pytest.mark.parametrize(("target", "clock"), [
    ("cpu", "readcyclecounter"), ("gfx942", "readsteadycounter"), ("gfx1100", "readsteadycounter"),
    ("gfx1201", "readsteadycounter"), ("sm_90", "readcyclecounter"),
])  # fmt: skip
def test_every_target_has_them(target, clock):
    text = lower(trace_for(all_of_them, {}, parse_target(target)).kernel, parse_target(target))
    assert text.count(f"@llvm.{clock}()") == 3  # with its declaration
    volatile = " volatile" * target.startswith("sm_")
    assert f"load atomic{volatile} i32" in text
    assert f"load atomic{volatile} i8" in text
    assert "ptrtoint" in text
    assert all_of_them.compile(target).image
