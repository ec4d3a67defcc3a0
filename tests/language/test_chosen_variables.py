"""Vectors and matrices of a thread that run-time numbers index: stacks, counters and tables, of all sizes.

The oracle is Python; ``arch=qp.python`` and ``debug=True`` must agree with it.
"""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.jit.offline import compile_with_asm, trace_for

SIZES = (2, 4, 5, 8, 9, 16, 17, 64, 256)
WAYS = ({}, {"debug": True}, {"arch": qp.python}, {"fast_math": True})
INTS = qp.types.ndarray(qp.i32, 1)
FLOATS = qp.types.ndarray(qp.f64, 1)
ways = pytest.mark.parametrize("options", WAYS, ids=["plain", "debug", "python", "fast_math"])


def filled(count, seed=0, low=0, high=100):
    return np.random.default_rng(seed).integers(low, high, count).astype(np.int32)


def traversal(size):
    """A kernel that walks a tree with a stack of ``size``, and what it computes."""

    @qp.kernel
    def walk_tree(y: INTS):
        for i in y:
            stack = qp.Vector([0] * size)
            top, total, turns = 1, 0, 0
            while top > 0 and turns < 100:
                turns += 1
                top -= 1
                node = stack[top]
                total += node
                if node < 40 and top + 2 <= size:
                    stack[top] = node * 2 + 1 + (i & 1)
                    stack[top + 1] = node + 3
                    top += 2
            y[i] = total

    def expected(i):
        stack, total, turns = [0], 0, 0
        while stack and turns < 100:
            turns += 1
            node = stack.pop()
            total += node
            if node < 40 and len(stack) + 2 <= size:
                stack += [node * 2 + 1 + (i & 1), node + 3]
        return total

    return walk_tree, expected


@ways
@pytest.mark.parametrize("size", SIZES)
def test_stacks_of_tree_traversals(size, options, init):
    init(**options)
    kernel, expected = traversal(size)
    y = np.zeros(9, np.int32)
    kernel(y)
    assert y.tolist() == [expected(i) for i in range(9)]


@pytest.mark.parametrize("size", [5, 64, 256])
def test_large_ones_are_arrays_in_memory_and_code_does_not_grow_with_them(size):
    kernel, _ = traversal(size)
    made = trace_for(kernel, {}).kernel
    assert sum(isinstance(n, ir.AssignOne) for n in walk(made)) == 2
    assert sum(isinstance(n, ir.Pick) for n in walk(made)) == 1
    assert not any(isinstance(n, ir.Select) and isinstance(n.then, ir.VarRead) for n in walk(made) if size > 5)


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize("size", [8, 16, 64])
def test_every_target_has_code_for_them(target, size):
    kernel, _ = traversal(size)
    lines = compile_with_asm(kernel, parse_target(target), {}).asm.count("\n")
    assert lines < 300


@ways
@pytest.mark.parametrize("size", SIZES)
def test_numbers_out_of_range_read_0_and_change_nothing(size, options, init):
    if options.get("debug") or options.get("arch") == qp.python:
        pytest.skip("these refuse them: see the next test")
    init(**options)

    @qp.kernel
    def around(at: INTS, y: INTS, z: INTS):
        for i in y:
            v = qp.Vector([j + 1 for j in qp.static(range(size))])
            y[i] = v[at[i]]
            v[at[i]] = -7
            total = 0
            for j in qp.static(range(size)):
                total = total * 3 + v[j]
            z[i] = total + v[at[i]] * 5

    at = np.r_[np.arange(-size - 3, size + 3), [2**31 - 1, -(2**31)]].astype(np.int32)
    y, z = np.zeros((2, len(at)), np.int32)
    around(at, y, z)
    for k, got, folded in zip(at.tolist(), y, z, strict=True):
        v = np.arange(1, size + 1, dtype=np.int32)
        inside = -size <= k < size
        assert got == (v[k] if inside else 0)
        if inside:
            v[k] = -7
        total = np.int32(0)
        with np.errstate(over="ignore"):
            for each in v:
                total = np.int32(total * np.int32(3)) + each
            total += np.int32((-7 if inside else 0) * 5)
        assert folded == total


@pytest.mark.parametrize("size", [3, 9, 64])
@pytest.mark.parametrize("writes", [False, True])
def test_debug_refuses_numbers_out_of_range(size, writes, init):
    init(debug=True)

    @qp.kernel
    def outside(k: qp.i32, y: INTS):
        for i in y:
            v = qp.Vector([i] * size)
            if qp.static(writes):
                v[k] = 1
            else:
                y[i] = v[k]

    y = np.zeros(3, np.int32)
    outside(size - 1, y)
    with pytest.raises(qp.BoundsError, match=f"{size}"):
        _run(outside, size, y)


def _run(kernel, *args):
    kernel(*args)
    qp.sync()


@ways
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 3), (2, 8), (9, 5), (1, 17)])
def test_elements_rows_and_columns_of_matrices(rows, columns, options, init):
    init(default_fp=qp.f64, **options)

    @qp.kernel
    def mixed(at: INTS, y: FLOATS):
        for i in at:
            m = qp.Matrix([[r * 10.0 + c for c in range(columns)] for r in range(rows)])
            r, c = at[i] % rows, at[i] % columns
            m[r, c] += 0.5
            m[r] = m[(r + 1) % rows] * 2.0
            m[:, c] = m[:, (c + 1) % columns] - 1.0
            m[r] += 3.0
            m[r, c] *= 2.0
            row, column = m[r], m[:, c]
            total = m[r, c]
            for k in range(columns):
                total = total * 0.75 + row[k]
            for k in range(rows):
                total = total * 0.75 + column[k]
            for j, k in qp.static(qp.ndrange(rows, columns)):
                total = total * 0.5 + m[j, k]
            y[i] = total

    at = filled(40)
    y = np.zeros(40)
    mixed(at, y)
    for k, got in zip(at, y, strict=True):
        m = np.arange(rows)[:, None] * 10.0 + np.arange(columns)
        r, c = k % rows, k % columns
        m[r, c] += 0.5
        m[r] = m[(r + 1) % rows] * 2.0
        m[:, c] = m[:, (c + 1) % columns] - 1.0
        m[r] += 3.0
        m[r, c] *= 2.0
        total = m[r, c]
        for each in (*m[r], *m[:, c]):
            total = total * 0.75 + each
        for each in m.flat:
            total = total * 0.5 + each
        assert got == pytest.approx(total, rel=0 if not options.get("fast_math") else 1e-12)


@qp.func
def pushed(stack: qp.template(), top: qp.template(), value):
    stack[top] = value
    top += 1


@qp.func
def of_copy(v, k):
    v[k] += 100
    return v[k]


@qp.real_func
def of_real(v: qp.types.vector(20, qp.i32), k: qp.i32) -> qp.i32:
    total = 0
    for j in range(20):
        total += v[(j + k) % 20] * j
    v[k] = total
    return v[k] - v[(k + 1) % 20]


@ways
def test_functions_get_copies_or_references(options, init):
    init(**options)

    @qp.kernel
    def calls(at: INTS, y: INTS, z: INTS):
        for i in at:
            v = qp.Vector([0] * 20)
            top = 0
            for j in range(20):
                pushed(v, top, at[i] + j)
            w = v
            y[i] = of_copy(v, at[i] % 20) + of_real(v, at[i] % 20)
            w[at[i] % 20] = -1
            total = 0
            for j in range(20):
                total = (total * 3 + (v[j] - w[j])) % 10007
            z[i] = total

    at = filled(30)
    y, z = np.zeros((2, 30), np.int32)
    calls(at, y, z)
    for k, got, other in zip(at.tolist(), y, z, strict=True):
        v = [k + j for j in range(20)]
        at_k = k % 20
        dot = sum(v[(j + at_k) % 20] * j for j in range(20))
        following = v[(at_k + 1) % 20]
        assert got == v[at_k] + 100 + dot - following
        assert other == (v[at_k] + 1) * 3 ** (19 - at_k) % 10007


State = qp.types.struct(top=qp.i32, stack=qp.types.vector(12, qp.i32), m=qp.types.matrix(3, 3, qp.f64))


@ways
def test_members_of_structs(options, init):
    init(default_fp=qp.f64, **options)

    @qp.kernel
    def members(at: INTS, y: FLOATS):
        for i in at:
            s = State(top=0, stack=0, m=1.0)
            for j in range(at[i] % 12):
                s.stack[s.top] = j * at[i]
                s.m[j % 3, at[i] % 3] += s.stack[s.top // 2]
                s.top += 1
            old = s
            s.stack[s.top - 1] += 1
            total = 0.0
            for j in range(12):
                total = total * 0.5 + s.stack[j] - old.stack[j] * 0.25
            for j in range(9):
                total += s.m[j // 3, j % 3] * j
            y[i] = total

    at = filled(25)
    y = np.zeros(25)
    members(at, y)
    for k, got in zip(at.tolist(), y, strict=True):
        stack, m, top = [0] * 12, np.ones((3, 3)), 0
        for j in range(k % 12):
            stack[top] = j * k
            m[j % 3, k % 3] += stack[top // 2]
            top += 1
        old = stack[:]
        stack[top - 1] += 1
        total = 0.0
        for j in range(12):
            total = total * 0.5 + stack[j] - old[j] * 0.25
        for j in range(9):
            total += m.flat[j] * j
        assert got == pytest.approx(total, rel=1e-15)


@ways
@pytest.mark.parametrize("size", [5, 16, 40])
def test_values_that_do_not_change(size, options, init):
    """Parameters, loaded values, constants and indices, picked in a loop, in a branch, and before the parallel loop."""
    init(**options)

    @qp.kernel
    def values(n: qp.i32, at: INTS, y: INTS):
        weights = qp.Vector([j * 3 + n for j in range(size)])
        fixed = qp.Vector([j * j for j in range(size)])
        for i in at:
            w = qp.Vector([at[(i + j) % at.shape[0]] + i if qp.static(j % 3) else i for j in qp.static(range(size))])
            total = weights[i % size] + fixed[at[i] % size]
            for k in range(n):
                inner = qp.Vector([k + j for j in qp.static(range(size))])
                total = total * 3 + w[k % size] + weights[(k + i) % size] - fixed[k % size] + inner[i % size]
                if k % 2:
                    total += (w + fixed)[total % size]
            y[i] = total

    at = filled(21)
    y = np.zeros(21, np.int32)
    values(7, at, y)
    weights, fixed = np.arange(size) * 3 + 7, np.arange(size) ** 2
    for i in range(21):
        w = np.array([at[(i + j) % 21] + i if j % 3 else i for j in range(size)])
        total = weights[i % size] + fixed[at[i] % size]
        for k in range(7):
            total = total * 3 + w[k % size] + weights[(k + i) % size] - fixed[k % size] + k + i % size
            total = np.int64(total).astype(np.int32).astype(np.int64)
            if k % 2:
                total += (w + fixed)[total % size]
        assert y[i] == np.int64(total).astype(np.int32)


@pytest.mark.parametrize("kind", [qp.u1, qp.i8, qp.u16, qp.i64, qp.u64, qp.f16, qp.bf16, qp.f32, qp.f64], ids=str)
@pytest.mark.parametrize("index", [qp.i8, qp.u8, qp.i32, qp.u32, qp.i64, qp.u64], ids=str)
def test_types_of_components_and_of_numbers(kind, index):
    @qp.kernel
    def typed(at: INTS, y: FLOATS):
        for i in at:
            v = qp.types.vector(20, kind)(0)
            v[index(at[i])] = qp.cast(1, kind)
            v[index((at[i] + 7) % 20)] += qp.cast(1, kind)
            total = 0.0
            for j in range(20):
                total = total * 2.0 + qp.cast(v[index(j)], qp.f64)
            y[i] = total

    y = np.zeros(20)
    typed(np.arange(20, dtype=np.int32), y)
    assert y.tolist() == [2.0 ** (19 - k) + 2.0 ** (19 - (k + 7) % 20) for k in range(20)]


@ways
def test_variables_that_live_across_barriers(options, init):
    init(**options)

    @qp.kernel
    def blocks(at: INTS, y: INTS):
        qp.loop_config(block_dim=64)
        for i in at:
            lane = i % 64
            near = qp.simt.block.SharedArray((64,), qp.i32)
            v = qp.Vector([0] * 24)
            w = qp.Vector([i + j for j in qp.static(range(24))])
            for k in range(3):
                near[lane] = at[i] + k
                qp.simt.block.sync()
                v[(at[i] + k) % 24] += near[63 - lane] + w[(k + lane) % 24]
                qp.simt.block.sync()
            total = 0
            for j in range(24):
                total = (total * 3 + v[j]) % 10007
            y[i] = total

    at = filled(128)
    y = np.zeros(128, np.int32)
    blocks(at, y)
    for i in range(128):
        v = np.zeros(24, np.int32)
        for k in range(3):
            v[(at[i] + k) % 24] += at[i - i % 64 + 63 - i % 64] + k + i + (k + i % 64) % 24
        total = 0
        for each in v.tolist():
            total = (total * 3 + each) % 10007
        assert y[i] == total


@ways
def test_variables_outside_of_parallel_loops(options, init):
    init(**options)

    @qp.kernel
    def around(n: qp.i32, y: INTS) -> qp.i32:
        v = qp.Vector([0] * 20)
        k = 0
        while k < n:
            v[k * 7 % 20] += k
            k += 1
        for i in y:
            y[i] = v[i % 20]
        v[n % 20] = y[3]
        return v[n % 20] + v[(n + 1) % 20]

    y = np.zeros(50, np.int32)
    found = around(33, y)
    v = np.zeros(20, np.int32)
    for k in range(33):
        v[k * 7 % 20] += k
    assert y.tolist() == [v[i % 20] for i in range(50)]
    assert found == v[3] + v[14]


@ways
def test_atomic_operations_on_components(options, init):
    init(**options)

    @qp.kernel
    def counts(at: INTS, y: INTS):
        for i in at:
            v = qp.Vector([0] * 10)
            last = 0
            for k in range(12):
                last = qp.atomic_add(v[(at[i] + k * k) % 10], k)
            best = 0
            for j in range(10):
                best = qp.max(best, v[j])
            y[i] = best * 1000 + last

    at = filled(30)
    y = np.zeros(30, np.int32)
    counts(at, y)
    for a, got in zip(at.tolist(), y, strict=True):
        v, last = [0] * 10, 0
        for k in range(12):
            last = v[(a + k * k) % 10]
            v[(a + k * k) % 10] += k
        assert got == max(v) * 1000 + last


def test_reductions_and_graphs():
    @qp.kernel
    def summed(at: INTS, y: INTS) -> qp.i32:
        total = 0
        for i in at:
            v = qp.Vector([0] * 20)
            for k in range(5):
                v[(at[i] * k) % 20] += k
            total += v[at[i] % 20]
            y[i] = v[at[i] % 20]
        return total

    at = filled(3000)
    y = np.zeros(3000, np.int32)
    expected = []
    for a in at.tolist():
        v = [0] * 20
        for k in range(5):
            v[a * k % 20] += k
        expected.append(v[a % 20])
    assert summed(at, y) == sum(expected)
    assert y.tolist() == expected

    @qp.kernel
    def kept(at: INTS, y: INTS):
        for i in at:
            v = qp.Vector([0] * 20)
            v[at[i] % 20] = i
            y[i] = v[(at[i] + i) % 20] + v[at[i] % 20]

    given, out = qp.ndarray(qp.i32, 3000), qp.ndarray(qp.i32, 3000)
    given.from_numpy(at)
    with qp.graph.capture() as graph:
        kept(given, out)
    with graph.instantiate() as run:
        run.launch()
    qp.sync()
    assert out.to_numpy().tolist() == [i + (i if i % 20 == 0 else 0) for i in range(3000)]


def test_iterations_do_not_race_for_them(init):
    init(debug=True)
    kernel, expected = traversal(30)
    y = np.zeros(500, np.int32)
    kernel(y)
    assert y[:4].tolist() == [expected(i) for i in range(4)]


@qp.kernel
def medians(u: qp.types.ndarray(qp.f32, 2), v: qp.types.ndarray(qp.f32, 2)):
    for i, j in qp.ndrange((1, 31), (1, 31)):
        w = qp.Vector([0.0] * 9)
        for k in range(9):
            w[k] = u[i + k // 3 - 1, j + k % 3 - 1]
        for _ in range(9):
            for b in range(8):
                if w[b] > w[b + 1]:
                    t = w[b]
                    w[b] = w[b + 1]
                    w[b + 1] = t
        v[i, j] = w[4]


@ways
@pytest.mark.parametrize("distributed", [False, True])
def test_medians_of_neighbours(distributed, options, init):
    if distributed and "arch" in options:
        pytest.skip("Python runs no kernels over ranks")
    init(**options)
    make = qp.dist.Grid((32, 32)).ndarray if distributed else lambda t: qp.ndarray(t, (32, 32))
    u, v = make(qp.f32), make(qp.f32)
    given = np.random.default_rng(0).random((32, 32), dtype=np.float32)
    u.from_numpy(given)
    with qp.hazards.check():
        medians(u, v)
        qp.sync()
    near = np.lib.stride_tricks.sliding_window_view(given, (3, 3))
    assert (v.to_numpy()[1:-1, 1:-1] == np.median(near, axis=(2, 3))).all()
