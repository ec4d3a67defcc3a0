"""Atomics: every operation, the value it returns, vectors, and what many iterations make of one place."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
N = 20_000


@qp.kernel
def every_integer_operation(x: A(), old: A()):
    for _ in range(1):
        old[0] = qp.atomic_add(x[0], 5)
        old[1] = qp.atomic_sub(x[1], 5)
        old[2] = qp.atomic_mul(x[2], 5)
        old[3] = qp.atomic_min(x[3], 5)
        old[4] = qp.atomic_max(x[4], 5)
        old[5] = qp.atomic_and(x[5], 5)
        old[6] = qp.atomic_or(x[6], 5)
        old[7] = qp.atomic_xor(x[7], 5)
        old[8] = qp.atomic_exchange(x[8], 5)
        old[9] = qp.atomic_cas(x[9], 6, 5)
        old[10] = qp.atomic_cas(x[10], 7, 5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers(dtype):
    x, old = np.full(11, 6, dtype), np.zeros(11, dtype)
    every_integer_operation(x, old)
    assert old.tolist() == [6] * 11
    assert x.tolist() == [11, 1, 30, 5, 6, 4, 7, 3, 5, 5, 6]


@qp.kernel
def every_float_operation(x: A(), old: A()):
    for _ in range(1):
        old[0] = qp.atomic_add(x[0], 0.5)
        old[1] = qp.atomic_sub(x[1], 0.5)
        old[2] = qp.atomic_mul(x[2], 0.5)
        old[3] = qp.atomic_min(x[3], 0.5)
        old[4] = qp.atomic_max(x[4], 0.5)
        old[5] = qp.atomic_exchange(x[5], 0.5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats(dtype):
    x, old = np.full(6, 2, dtype), np.zeros(6, dtype)
    every_float_operation(x, old)
    assert old.tolist() == [2] * 6
    assert x.tolist() == [2.5, 1.5, 1.0, 0.5, 2.0, 0.5]


@qp.kernel
def every_operation_on_truth_values(x: A(qp.u1, 2), y: A(qp.u1, 1), old: A(qp.u1, 2)):
    for i in y:
        old[0, i] = qp.atomic_add(x[0, i], y[i])
        old[1, i] = qp.atomic_sub(x[1, i], y[i])
        old[2, i] = qp.atomic_mul(x[2, i], y[i])
        old[3, i] = qp.atomic_min(x[3, i], y[i])
        old[4, i] = qp.atomic_max(x[4, i], y[i])
        x[5, i] += y[i]
        x[6, i] -= y[i]
        x[7, i] *= y[i]


def test_truth_values_give_what_plain_assignments_give():
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    x, old = np.tile(a.astype(bool), (8, 1)), np.zeros((5, 4), bool)
    every_operation_on_truth_values(x, b.astype(bool), old)
    expected = [a + b, a - b, a * b, np.minimum(a, b), np.maximum(a, b), a + b, a - b, a * b]
    assert x.tolist() == [(row != 0).tolist() for row in expected]
    assert (old == a.astype(bool)).all()


@qp.kernel
def votes(x: A(qp.u1, 1), found: A(qp.u1, 1)) -> qp.u1:
    every = True
    for i in x:
        found[0] += x[i]
        every *= x[i]
    return every


@pytest.mark.parametrize("ones", [0, 1, 256, N])
def test_truth_values_accumulate(ones):
    x, found = np.arange(N) < ones, np.zeros(1, bool)
    assert votes(x, found) == (ones == N)
    assert found[0] == (ones > 0)


@qp.kernel
def shared_flags(x: A(qp.u1, 1)):
    qp.loop_config(block_dim=64)
    for i in x:
        flag = qp.simt.block.SharedArray(1, qp.u1)
        flag[0] = False
        qp.simt.block.sync()
        flag[0] += i == 70
        qp.simt.block.sync()
        x[i] = flag[0]


def test_truth_values_in_shared_memory():
    x = np.zeros(128, bool)
    shared_flags(x)
    assert x.tolist() == [False] * 64 + [True] * 64


@qp.kernel
def tickets(counter: A(qp.i32, 1), taken: A(qp.i32, 1)):
    for i in taken:
        taken[i] = qp.atomic_add(counter[0], 1)


def test_each_iteration_draws_a_ticket_of_its_own():
    counter, taken = np.zeros(1, np.int32), np.zeros(N, np.int32)
    tickets(counter, taken)
    assert counter[0] == N
    np.testing.assert_array_equal(np.sort(taken), np.arange(N))


@qp.kernel
def histogram(x: A(qp.i32, 1), bins: A(qp.i32, 1)):
    for i in x:
        bins[x[i]] += 1


def test_histogram():
    x = np.random.default_rng(0).integers(0, 37, N).astype(np.int32)
    bins = np.zeros(37, np.int32)
    histogram(x, bins)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=37))


@qp.kernel
def accumulate(x: A(qp.i64, 1), y: A(qp.i64, 1)):
    for i in x:
        y[0] += x[i]
        y[1] -= x[i]
        y[2] |= x[i]
        y[3] &= x[i]
        y[4] ^= x[i]
        qp.atomic_min(y[5], x[i])
        qp.atomic_max(y[6], x[i])


@pytest.mark.parametrize("n", [0, 1, 5, N])
def test_accumulation_into_single_elements(n):
    x = np.random.default_rng(n).integers(-(2**40), 2**40, n)
    y = np.array([10, 20, 1, -1, 7, 0, 0])
    start = y.copy()
    accumulate(x, y)
    functions = [np.add, np.subtract, np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.minimum, np.maximum]
    for k, f in enumerate(functions):
        want = start[k] - x.sum() if f is np.subtract else f.reduce(np.append(start[k], x))
        assert y[k] == want, f


@qp.kernel
def sum_floats(x: A(), total: A()):
    for i in x:
        total[0] += x[i]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sum_does_not_depend_on_the_number_of_threads(dtype, init):
    x = np.random.default_rng(3).random(300_001).astype(dtype)
    sums = []
    for threads in (1, 2, 3):
        init(cpu_max_num_threads=threads)
        total = np.zeros(1, dtype)
        sum_floats(x, total)
        sums.append(total[0])
    assert sums[0] == sums[1] == sums[2]
    np.testing.assert_allclose(sums[0], x.astype(np.float64).sum(), rtol=1e-5 if dtype is np.float32 else 1e-13)


@qp.kernel
def sum_and_most(x: A(), s: A()):
    for i in x:
        s[0] += x[i]
        qp.atomic_max(s[1], x[i])


@qp.kernel
def sum_beside_what_is_read(x: A(), s: A()):
    for i in x:
        s[0] += x[i] * (s[1] + 1.0)


@qp.kernel
def sum_at_the_end(x: A(), s: A()):
    last = s.shape[0] - 1
    for i in x:
        s[last] += x[i]
        qp.atomic_min(s[s.shape[0] - 2], x[i])


@qp.kernel
def sum_of_vectors(x: A(), s: A(dtype=qp.types.vector(2, qp.f32), ndim=1)):
    for i in x:
        s[0].x += x[i]
        qp.atomic_max(s[i % 2].y, x[i])


SUMS = {sum_and_most: (2,), sum_beside_what_is_read: (2,), sum_at_the_end: (2,), sum_of_vectors: (2, 2)}


@pytest.mark.parametrize("kernel", SUMS, ids=lambda k: k.__name__)
def test_a_sum_keeps_its_bits_beside_other_elements_of_its_array(kernel, init):
    """That another element of the array is used otherwise leaves the sum a reduction, of a fixed shape."""
    x = np.random.default_rng(3).random(300_001).astype(np.float32)
    alone = np.zeros(1, np.float32)
    sum_floats(x, alone)
    for threads in (1, 2, 3, 3):
        init(cpu_max_num_threads=threads)
        s = np.zeros(SUMS[kernel], np.float32)
        kernel(x, s)
        assert alone[0] in s


@qp.kernel
def maybe_the_same(s: A(qp.f32, 1), k: qp.i32, seen: A(qp.f32, 1)):
    for i in seen:
        s[0] += 1.0
        s[k + 1] += 2.0
        seen[i] = s[k]


def test_an_iteration_sees_what_it_added_where_two_indices_may_be_one():
    s, seen = np.zeros(3, np.float32), np.zeros(1, np.float32)
    maybe_the_same(s, 0, seen)
    assert (s.tolist(), seen.tolist()) == ([1, 2, 0], [1])
    maybe_the_same(s, 1, seen)
    assert (s.tolist(), seen.tolist()) == ([2, 2, 2], [2])
    maybe_the_same(s, -1, seen[:0])
    assert s.tolist() == [2, 2, 2]


@qp.kernel
def guarded(x: A(qp.i32, 1), total: A(qp.i32, 1), k: qp.i32):
    for i in x:
        if x[i] > 100:
            total[k] += 1


def test_a_place_that_no_iteration_touches_is_not_touched():
    memory = np.full(8, 7, np.int32)
    guarded(np.zeros(N, np.int32), memory[:2], 4)
    assert memory.tolist() == [7] * 8
    read_only = np.zeros(1, np.int32)
    guarded(np.zeros(N, np.int32), read_only, 2**30)
    assert read_only[0] == 0


@qp.kernel
def vectors(x: A(qp.types.vector(2, qp.i32), 1), old: A(qp.i32, 1)):
    for i in range(100):
        x[0] += qp.Vector([1, i])
        qp.atomic_max(x[1], qp.Vector([i, -i]))
        x[2].y -= 1
    for _ in range(1):
        v = qp.atomic_add(x[3], [5, 6])
        old[0], old[1] = v


def test_vectors_go_component_by_component():
    x, old = np.zeros((4, 2), np.int32), np.zeros(2, np.int32)
    x[3] = 1, 2
    vectors(x, old)
    assert x.tolist() == [[100, 4950], [99, 0], [0, -100], [6, 8]]
    assert old.tolist() == [1, 2]


cells = qp.Vector.field(2, qp.f64, shape=3, layout=qp.Layout.SOA)


@qp.kernel
def scatter(n: qp.i32):
    for i in range(n):
        cells[i % 3] += qp.Vector([1.0, 0.5])


def test_fields():
    cells.fill(0)
    scatter(3000)
    np.testing.assert_array_equal(cells.to_numpy(), [[1000, 500]] * 3)


@qp.kernel
def other_operators(x: A(qp.f32, 1)):
    for i in x:
        x[i] /= 2
        x[i] **= 2
        x[i] //= 1
        x[i] %= 5


def test_augmented_assignments_without_an_atomic_are_plain():
    x = np.arange(10, dtype=np.float32)
    want = ((x / 2) ** 2) // 1 % 5
    other_operators(x)
    np.testing.assert_array_equal(x, want)


@qp.kernel
def local(y: A(qp.i32, 1)):
    for i in y:
        total = 0
        for j in range(i):
            total += j
        total <<= 1
        y[i] = total


def test_local_variables_are_plain():
    y = np.zeros(20, np.int32)
    local(y)
    np.testing.assert_array_equal(y, [i * (i - 1) for i in range(20)])


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("index", ["i", "i * 1", "(i + n) % n", "local"])
def test_compare_and_swap_compares_the_bits_of_floats(load, t, index):
    """-0.0 is not 0.0, and a NaN is itself, whether the operation is one of memory or a plain one."""
    swap = "z = x[i]\n        old = qp.atomic_cas(z, e[i], 1.0)\n        x[i] = z\n        y[i] = old"
    module = load(f"""
A = qp.types.ndarray(qp.{t}, 1)

@qp.kernel
def swap(x: A, y: A, e: A):
    n = x.shape[0]
    for i in x:
        {swap if index == "local" else f"y[i] = qp.atomic_cas(x[{index}], e[i], 1.0)"}
""")
    dtype = np.dtype(t.replace("f", "float"))
    x = np.array([-0.0, 0.0, np.nan, 2.0, np.inf], dtype)
    y = np.zeros_like(x)
    module.swap(x, y, np.array([0.0, 0.0, np.nan, 2.0, 3.0], dtype))
    assert [str(v) for v in x] == ["-0.0", "1.0", "1.0", "1.0", "inf"]
    assert [str(v) for v in y] == ["-0.0", "0.0", "nan", "2.0", "inf"]
