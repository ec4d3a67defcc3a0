"""Loops of one thread: range in every form, while, break and continue, nested."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.kernel
def visit_inside(a: qp.i32, b: qp.i32, c: qp.i32, out: A(qp.i32, 1), count: A(qp.i32, 1)):
    for _ in range(1):
        n = 0
        for i in range(a, b, c):
            out[n] = i
            n += 1
        count[0] = n


@pytest.mark.parametrize(
    ("a", "b", "c"), [(0, 5, 1), (5, 0, -2), (0, 10, 3), (4, 4, 1), (7, 2, 1), (2**31 - 5, 2**31 - 1, 2), (3, -3, -1)]
)
def test_range(a, b, c):
    out, count = np.zeros(20, np.int32), np.zeros(1, np.int32)
    visit_inside(a, b, c, out, count)
    assert out[: count[0]].tolist() == list(range(a, b, c))


@qp.kernel
def search(x: A(qp.i32, 2), found: A(qp.i32, 1)):
    for i in range(x.shape[0]):
        found[i] = -1
        for j in range(x.shape[1]):
            if x[i, j] < 0:
                continue
            if x[i, j] == 7:
                found[i] = j
                break
            x[i, j] += 100


def test_break_and_continue():
    x = np.array([[1, -1, 7, 2], [7, 0, 0, 0], [-1, -2, -3, -4], [1, 2, 3, 4]], np.int32)
    found = np.zeros(4, np.int32)
    search(x, found)
    assert found.tolist() == [2, 0, -1, -1]
    assert x.tolist() == [[101, -1, 7, 2], [7, 0, 0, 0], [-1, -2, -3, -4], [101, 102, 103, 104]]


@qp.kernel
def collatz(n: A(qp.i64, 1), steps: A(qp.i32, 1)):
    for i in n:
        x = n[i]
        while x != 1:
            if x % 2 == 0:
                x //= 2
            else:
                x = 3 * x + 1
            steps[i] += 1


def test_while():
    def length(x):
        return 0 if x == 1 else 1 + length(x // 2 if x % 2 == 0 else 3 * x + 1)

    n, steps = np.arange(1, 200, dtype=np.int64), np.zeros(199, np.int32)
    collatz(n, steps)
    assert steps.tolist() == [length(int(x)) for x in n]


@qp.kernel
def nested(out: A(qp.i32, 1)):
    for k in out:
        total = 0
        i = 0
        while True:
            i += 1
            if i > k:
                break
            for j in range(10):
                if j == i:
                    continue
                if j > 2 * i:
                    break
                total += i * 10 + j
            else_ = total % 3
            if else_ == 0:
                continue
            total += 1
        out[k] = total


def test_nested_loops_leave_the_right_one():
    def python(k):
        total = 0
        for i in range(1, k + 1):
            for j in range(10):
                if j == i:
                    continue
                if j > 2 * i:
                    break
                total += i * 10 + j
            if total % 3:
                total += 1
        return total

    out = np.zeros(12, np.int32)
    nested(out)
    assert out.tolist() == [python(k) for k in range(12)]


@qp.kernel
def condition_reads_memory(x: A(qp.i32, 1)):
    for _ in range(1):
        i = 0
        while x[i] < 10 and i < x.shape[0] - 1:
            x[i] += 1
            if x[i] == 10:
                i += 1


def test_the_condition_of_while_is_evaluated_each_time():
    x = np.array([3, 12, 5], np.int32)
    condition_reads_memory(x)
    assert x.tolist() == [10, 12, 5]


@qp.kernel
def inner_ndrange(x: A(qp.i32, 2), total: A(qp.i32, 1)):
    for k in total:
        for i, j in qp.ndrange(x.shape[0], (1, x.shape[1])):
            if (i + j) % 2 == k % 2:
                continue
            total[k] += x[i, j]
        for index in qp.grouped(x):
            total[k] += x[index] * 1000
        for i, j in x:
            total[k] -= x[i, j]


def test_inner_loops_over_ndrange_grouped_and_arrays():
    x, total = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros(4, np.int32)
    inner_ndrange(x, total)
    i, j = np.indices(x.shape)
    for k in range(4):
        assert total[k] == x[(j > 0) & ((i + j) % 2 != k % 2)].sum() + 999 * x.sum()


@qp.kernel
def bounds_are_fixed_at_the_start(out: A(qp.i32, 1)):
    for _ in range(1):
        n, turns = 3, 0
        for i in range(n):
            n += 10
            turns += i + 1
        out[0] = turns
        out[1] = n


def test_bounds_are_evaluated_once():
    out = np.zeros(2, np.int32)
    bounds_are_fixed_at_the_start(out)
    assert out.tolist() == [6, 33]


@qp.kernel
def function_scope(out: A(qp.i32, 1)):
    for k in out:
        late = -1
        for j in range(3):
            if j == 1:
                late = k * 10
            if j == 2:
                late += 1
        out[k] = late


def test_a_variable_lives_in_its_function():
    out = np.zeros(5, np.int32)
    function_scope(out)
    assert out.tolist() == [10 * k + 1 for k in range(5)]


@qp.kernel
def reassigned_index(out: A(qp.i32, 1)):
    for _ in range(1):
        for i in range(4):
            at = i
            i += 10
            out[at] = i


def test_assigning_the_index_does_not_change_the_loop():
    out = np.zeros(4, np.int32)
    reassigned_index(out)
    assert out.tolist() == [10, 11, 12, 13]


@qp.kernel
def the_same_name_again(y: A(qp.i32, 1)):
    for _ in range(1):
        for i in range(3):
            i += 1
            y[0] += i
        for i in range(3):
            y[1] += i
        for _ in range(2):
            for _ in range(5):
                y[2] += 1


def test_loops_may_use_one_name_after_each_other():
    y = np.zeros(3, np.int32)
    the_same_name_again(y)
    assert y.tolist() == [6, 3, 10]


@qp.func
def position(x, wanted):
    found = -1
    for i, j, k in qp.ndrange(x.shape[0], (1, 4), 2):
        if x[i, j, k] == wanted:
            found = 100 * i + 10 * j + k
            break
    return found


@qp.kernel
def searches(x: A(qp.i32, 3), out: A(qp.i32, 2)):
    for n in range(out.shape[0]):
        out[n, 0] = position(x, n)
        count = 0
        for I in qp.grouped(qp.ndrange(3, 3)):
            if I[0] == 1:
                continue
            for _ in range(5):
                break  # of this loop alone
            for a, _b in qp.ndrange(2, 2):
                if a == 1:
                    break
                count += 1
            if I[0] * 3 + I[1] >= n:
                break
        out[n, 1] = count


@qp.kernel
def in_order(out: A(qp.i32, 1)):
    qp.loop_config(serialize=True)
    for i, j in qp.ndrange(4, 4):
        if i * j == 2:
            break
        out[0] += 1


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}], ids=["plain", "debug", "python"])
def test_break_leaves_a_loop_over_several_indices(options, init):
    init(**options)
    x = np.arange(3 * 5 * 2, dtype=np.int32).reshape(3, 5, 2)
    out = np.zeros((40, 2), np.int32)
    searches(x, out)
    inside = {int(x[i, j, k]): 100 * i + 10 * j + k for i in range(3) for j in range(1, 4) for k in range(2)}
    assert out[:, 0].tolist() == [inside.get(n, -1) for n in range(40)]
    turns = [0, 1, 2, 6, 7, 8]  # row 1 is skipped
    counts = [next((k for k, turn in enumerate(turns, 1) if turn >= n), len(turns)) for n in range(40)]
    assert out[:, 1].tolist() == [2 * count for count in counts]
    total = np.zeros(1, np.int32)
    in_order(total)
    assert total[0] == 4 + 2


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_break_of_several_indices_on_gpus(target):
    assert searches.compile(target).image
