"""While loops that count are range loops on GPUs; here the CPU's code is made in the same way, too."""

from __future__ import annotations

import random

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.pipeline import TARGET_PASSES
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.passes.count_whiles import count_whiles
from quadpy.ir.pipeline import Pass
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
MASK = (1 << 32) - 1


@pytest.fixture
def counted(arch, monkeypatch):
    """The CPU's code with the pass of the GPUs."""
    row = Pass("count_whiles", count_whiles, "as on a GPU")
    monkeypatch.setitem(TARGET_PASSES, "cpu", (row, *TARGET_PASSES["cpu"]))
    qp.init(arch=arch, offline_cache=False)
    yield
    monkeypatch.undo()
    qp.init(arch=arch)


def walk_of(t: qp.Scalar, step: int):
    """A kernel that visits x in a while loop whose counter is a ``t``."""

    @qp.kernel
    def visit(first: I32, stop: I32, x: I32, y: I32):
        for i in y:
            found = 0
            k, end = t(first[i]), t(stop[i])
            while k < end:
                found = found * 31 + x[qp.i32(k) & 63]
                k += t(step)
            y[i] = found

    return visit


def turns(t, first, stop, step):
    """The values of the counter; None where the loop does not end."""
    seen, k = [], first
    while k < stop:
        if len(seen) > 1000:
            return None
        seen.append(k)
        k = int(np.asarray(k + step).astype(f"{'u' if t.kind == 'uint' else ''}int{t.bits}"))
    return seen


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("t", [qp.i8, qp.u8, qp.i16, qp.i32, qp.u32, qp.i64], ids=repr)
def test_each_turn_sees_the_counter_that_python_has(t):
    rng, least, most = random.Random(t.bits), max(t.min_int, -(1 << 31)), min(t.max_int, (1 << 31) - 1)
    x = np.arange(64, dtype=np.int32) * 7 - 3
    for step in (1, 3, 10, 100, 127):
        near = [rng.choice([least, most, 0]) + rng.randint(-300, 300) for _ in range(400)]
        ends = [min(max(n, least), most) for n in near]
        cases = [(a, b, got) for a, b in zip(ends[::2], ends[1::2], strict=True) if (got := turns(t, a, b, step))]
        assert cases
        y = np.zeros(len(cases), np.int32)
        first, stop = (np.array([case[n] for case in cases], np.int32) for n in (0, 1))
        walk_of(t, step)(first, stop, x, y)
        for found, (_, _, visited) in zip(y, cases, strict=True):
            expected = 0
            for k in visited:
                expected = expected * 31 + int(x[k & 63]) & MASK
            assert int(found) & MASK == expected


@qp.kernel
def shared_histogram(n: qp.i32, x: I32, counts: I32):
    qp.loop_config(block_dim=64)
    for t in range(256):
        bins = qp.simt.block.SharedArray((64,), qp.i32)
        bins[t % 64] = 0
        qp.simt.block.sync()
        k = t
        while k < n:
            qp.atomic_add(bins[x[k] & 63], 1)
            k += 256
        qp.simt.block.sync()
        qp.atomic_add(counts[t % 64], bins[t % 64])


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 2048, 5003])
def test_a_histogram_with_a_while_loop(n):
    x = np.random.default_rng(n).integers(0, 64, 5003).astype(np.int32)
    counts = np.zeros(64, np.int32)
    shared_histogram(n, x, counts)
    assert (counts == np.bincount(x[:n], minlength=64)).all()


@qp.kernel
def read_after(x: I32, y: I32, n: qp.i32):
    for i in y:
        k = i
        while k < n:
            y[i] += x[k]
            k += 2
        y[i] += k


@qp.kernel
def read_by_the_next_turn(x: I32, y: I32, n: qp.i32):
    for i in y:
        k, s = i, 0
        for _ in range(2):
            while k < n:
                s += x[k]
                k += 2
        y[i] = s


@qp.kernel
def moving_end(x: I32, y: I32, n: qp.i32):
    for i in y:
        k, s, end = i, 0, n
        while k < end:
            s += x[k]
            end -= 1
            k += 2
        y[i] = s


@qp.kernel
def changed_within(x: I32, y: I32, n: qp.i32):
    for i in y:
        k, s = i, 0
        while k < n:
            k += 1
            s += x[k - 1]
            k += 1
        y[i] = s


@qp.kernel
def left_early(x: I32, y: I32, n: qp.i32):
    for i in y:
        k, s = i, 0
        while k < n:
            if x[k] < 0:
                break
            s += x[k]
            k += 2
        y[i] = s


UNCOUNTED = [read_after, read_by_the_next_turn, moving_end, changed_within, left_early]


@pytest.mark.parametrize("kernel", UNCOUNTED, ids=lambda kernel: kernel.__name__)
def test_other_loops_stay(kernel):
    traced = trace_for(kernel, {}, parse_target("sm_90")).kernel
    assert count_whiles(traced) == traced


@pytest.mark.usefixtures("counted")
def test_other_loops_have_the_results_of_python():
    x = np.arange(16, dtype=np.int32)
    expected = {
        read_after: [sum(range(i, 16, 2)) + 16 + i % 2 for i in range(4)],
        read_by_the_next_turn: [sum(range(i, 16, 2)) for i in range(4)],
        moving_end: [sum(k for n, k in enumerate(range(i, 16, 2)) if k < 16 - n) for i in range(4)],
        changed_within: [sum(range(i, 16, 2)) for i in range(4)],
        left_early: [sum(range(i, 16, 2)) for i in range(4)],
    }
    for kernel, values in expected.items():
        y = np.zeros(4, np.int32)
        kernel(x, y, 16)
        assert y.tolist() == values, kernel.__name__


def test_the_loads_of_eight_turns_are_under_way_together():
    kernel = trace_for(shared_histogram, {}, parse_target("gfx942")).kernel
    loops = [node for node in walk(count_whiles(kernel)) if isinstance(node, ir.For)]
    assert [type(stmt) for stmt in loops[0].body.stmts][-2:] == [ir.Load, ir.Atomic]
    asm = shared_histogram.compile("sm_90").image.decode()
    assert asm.count("ld.global") >= 8
