"""``with qp.stream_parallel():``: sections of a kernel that run at once, and are joined before what follows."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.flow import Fork
from quadpy.jit.offline import trace_for

A = qp.types.ndarray


def flow(kernel):
    """The order of the kernel's tasks."""
    return trace_for(kernel, {}).kernel.flow


@qp.kernel
def fill_three(x: A(qp.i32, 1), y: A(qp.i32, 1), z: A(qp.i32, 1), total: A(qp.i64, 1)):
    with qp.stream_parallel():
        for i in x:
            x[i] = i
    with qp.stream_parallel():
        for i in y:
            y[i] = 2 * i
        for i in y:
            y[i] += 1
    with qp.stream_parallel():
        for i in z:
            z[i] = 3 * i
    for i in x:
        total[0] += x[i] + y[i] + z[i]


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_adjacent_blocks_are_one_fork_joined_before_what_follows(n):
    x, y, z, total = (np.zeros(n, np.int32) for _ in range(3)), None, None, np.zeros(1, np.int64)
    x, y, z = x
    fill_three(x, y, z, total)
    i = np.arange(n)
    np.testing.assert_array_equal(x, i)
    np.testing.assert_array_equal(y, 2 * i + 1)
    np.testing.assert_array_equal(z, 3 * i)
    assert total[0] == (6 * i + 1).sum()
    assert flow(fill_three) == (Fork(((0,), (1, 2), (3,))), 4)


@qp.kernel
def one_block(x: A(qp.i32, 1)):
    with qp.stream_parallel():
        for i in x:
            x[i] = 1
    for i in x:
        x[i] += 1


def test_a_block_alone_is_no_fork():
    x = np.zeros(10, np.int32)
    one_block(x)
    assert (x == 2).all()
    assert flow(one_block) == ()


@qp.kernel
def two_forks(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    with qp.stream_parallel():
        for i in x:
            x[i] = 1
    with qp.stream_parallel():
        for i in y:
            y[i] = 2
    x[0] = 10
    with qp.stream_parallel():
        for i in x:
            x[i] += 1
    with qp.stream_parallel():
        for i in y:
            y[i] += 1


def test_a_statement_between_blocks_joins_them():
    x, y = np.zeros(3, np.int32), np.zeros(3, np.int32)
    two_forks(x, y)
    assert x.tolist() == [11, 2, 2]
    assert y.tolist() == [3, 3, 3]
    assert flow(two_forks) == (Fork(((0,), (1,))), 2, Fork(((3,), (4,))))


@qp.kernel
def unrolled(x: A(qp.i32, 2), n: qp.template()):
    for k in qp.static(range(n)):
        with qp.stream_parallel():
            for i in range(x.shape[1]):
                x[k, i] = 10 * k + i


def test_blocks_of_an_unrolled_loop_are_one_fork():
    x = np.zeros((4, 3), np.int32)
    unrolled(x, 4)
    np.testing.assert_array_equal(x, 10 * np.arange(4)[:, None] + np.arange(3))
    assert trace_for(unrolled, {"n": 4}).kernel.flow == (Fork(((0,), (1,), (2,), (3,))),)


@qp.kernel
def decided(x: A(qp.i32, 1), y: A(qp.i32, 1), both: qp.template()):
    with qp.stream_parallel():
        for i in x:
            x[i] = 1
    if both:
        with qp.stream_parallel():
            for i in y:
                y[i] = 2


@pytest.mark.parametrize("both", [False, True])
def test_a_block_may_be_decided_at_compile_time(both):
    x, y = np.zeros(3, np.int32), np.zeros(3, np.int32)
    decided(x, y, both)
    assert (x.sum(), y.sum()) == (3, 6 * both)


@qp.kernel
def nearly_nothing(x: A(qp.i32, 1)):
    with qp.stream_parallel():
        pass
    with qp.stream_parallel():
        n = x.shape[0]  # noqa: F841
    with qp.stream_parallel():
        """Only this one does anything."""
        for i in x:
            x[i] = i


def test_blocks_that_do_nothing_are_no_branches():
    x = np.zeros(3, np.int32)
    nearly_nothing(x)
    assert x.tolist() == [0, 1, 2]
    assert flow(nearly_nothing) == ()


@qp.func
def count_up(x, first):
    for i in x:
        x[i] = first + i


@qp.kernel
def in_functions(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    with qp.stream_parallel():
        count_up(x, 10)
    with qp.stream_parallel():
        count_up(y, 20)


def test_a_block_may_call_functions_with_loops():
    x, y = np.zeros(3, np.int32), np.zeros(3, np.int32)
    in_functions(x, y)
    assert (x.tolist(), y.tolist()) == ([10, 11, 12], [20, 21, 22])
    assert flow(in_functions) == (Fork(((0,), (1,))),)


# ------------------------------------------------------------------ variables


@qp.kernel
def with_variables(x: A(qp.f64, 1), y: A(qp.f64, 1), a: qp.f64) -> (qp.f64, qp.f64):
    scale = a * 2
    with qp.stream_parallel():
        low = x[0] + scale
        for i in x:
            x[i] = low + i
    with qp.stream_parallel():
        high = y[0] - scale
        for i in y:
            y[i] = high * i
    return low, high


def test_what_one_block_binds_is_known_after_the_join():
    x, y = np.full(5, 1.0), np.full(5, 2.0)
    assert with_variables(x, y, 3.0) == (7.0, -4.0)
    np.testing.assert_array_equal(x, 7.0 + np.arange(5))
    np.testing.assert_array_equal(y, -4.0 * np.arange(5))


@qp.kernel
def same_name(x: A(qp.i32, 1), y: A(qp.i32, 1), n: qp.i32):
    with qp.stream_parallel():
        t = n + 1
        if x[0] > 100:
            t = 0
        for i in x:
            x[i] = t
    with qp.stream_parallel():
        t = n * 2.5
        for i in y:
            y[i] = qp.i32(t * 2)


def test_a_name_of_two_blocks_is_two_variables():
    x, y = np.zeros(5, np.int32), np.zeros(5, np.int32)
    same_name(x, y, 3)
    assert set(x) == {4}
    assert set(y) == {15}


@qp.kernel
def sums(x: A(qp.i64, 1), y: A(qp.i64, 1)) -> (qp.i64, qp.i64):
    a = qp.i64(0)
    b = qp.i64(0)
    with qp.stream_parallel():
        for i in x:
            a += x[i]
        a = a * 2
    with qp.stream_parallel():
        for i in y:
            b += y[i]
    return a, b


def test_each_block_may_change_variables_of_its_own():
    x, y = np.arange(5000), np.arange(3000)
    assert sums(x, y) == (2 * x.sum(), y.sum())


@qp.kernel
def both_add(total: A(qp.i32, 1), x: A(qp.i32, 1)):
    with qp.stream_parallel():
        for i in x:
            qp.atomic_add(total[0], 1)
            x[i] += 1
    with qp.stream_parallel():
        for _ in x:
            qp.atomic_add(total[0], 2)
            qp.atomic_add(total[1], 3)


def test_atomics_of_two_blocks_on_one_element_all_count():
    total, x = np.zeros(2, np.int32), np.zeros(1000, np.int32)
    both_add(total, x)
    assert total.tolist() == [3000, 3000]
    assert (x == 1).all()


def test_they_stay_atomic_where_another_block_could_see_a_merge():
    merges = [each for task in trace_for(both_add, {}).kernel.tasks for each in task.reductions]
    assert [each.in_launch for each in merges] == [False, False, False]


@qp.kernel
def own_elements(total: A(qp.i32, 1), x: A(qp.i32, 1)):
    with qp.stream_parallel():
        for i in x:
            total[0] += x[i]
    with qp.stream_parallel():
        for i in x:
            total[1] += 2 * x[i]


def test_sums_into_elements_of_their_own_stay_reductions():
    total, x = np.zeros(2, np.int32), np.arange(100, dtype=np.int32)
    own_elements(total, x)
    assert total.tolist() == [4950, 9900]
    assert all(task.reductions for task in trace_for(own_elements, {}).kernel.tasks)


@qp.kernel
def draws(x: A(qp.f64, 1), y: A(qp.f64, 1), z: A(qp.f64, 1)):
    with qp.stream_parallel():
        x[0] = qp.random(qp.f64)
        for i in range(1, x.shape[0]):
            x[i] = qp.random(qp.f64)
    with qp.stream_parallel():
        y[0] = qp.random(qp.f64)
        for i in range(1, y.shape[0]):
            y[i] = qp.random(qp.f64)
    z[0] = qp.random(qp.f64)
    for i in range(1, z.shape[0]):
        z[i] = qp.random(qp.f64)


def test_blocks_draw_numbers_of_their_own():
    x, y, z = np.zeros(50), np.zeros(50), np.zeros(50)
    draws(x, y, z)
    assert len({*x, *y, *z}) == 150


# --------------------------------------------------------------------- errors

HEAD = "@qp.kernel\ndef bad(x: qp.types.ndarray(qp.i32, 1), y: qp.types.ndarray(qp.i32, 1), n: qp.i32):\n"
BLOCK = "    with qp.stream_parallel():\n        for i in x:\n            x[i] = 1\n"
BAD = {
    "inside a loop": ("for k in range(3):\n    with qp.stream_parallel():\n        x[k] = 1", "top level", 2),
    "in a branch": ("if n > 1:\n    with qp.stream_parallel():\n        x[0] = 1", "top level", 2),
    "in a while": ("while n > 1:\n    with qp.stream_parallel():\n        x[0] = 1", "top level", 2),
    "nested": ("with qp.stream_parallel():\n    with qp.stream_parallel():\n        x[0] = 1", "inside a section", 2),
    "as": ("with qp.stream_parallel() as s:\n    x[0] = 1", "no value to bind with as", 1),
    "two in one": ("with qp.stream_parallel(), qp.stream_parallel():\n    x[0] = 1", "must be the only item of its with statement", 1),
    "not called": ("with qp.stream_parallel:\n    x[0] = 1", "takes no arguments, and must be called", 1),
    "arguments": ("with qp.stream_parallel(2):\n    x[0] = 1", "takes no arguments, and must be called", 1),
    "return": ("with qp.stream_parallel():\n    x[0] = 1\n    return", "a section cannot return", 3),
    "a value": ("x[0] = qp.stream_parallel()", "has no value", 1),
    "a line of its own": ("qp.stream_parallel()", "has no value", 1),
    "another with": ("with open('f'):\n    x[0] = 1", "with is not part of the kernel language", 1),
    "graph": ("with qp.graph.parallel():\n    x[0] = 1", "needs a graph kernel", 1),
    "changed in both": (
        "t = 0\nwith qp.stream_parallel():\n    t = 1\nwith qp.stream_parallel():\n    t = 2\nx[0] = t", "'t' is shared", 5,
    ),
    "changed in one, read in another": (
        "t = 0\nwith qp.stream_parallel():\n    x[0] = t\nwith qp.stream_parallel():\n    t = 2\nx[0] = t", "'t' is shared", 5,
    ),
    "changed in a loop": (
        "t = 0\nwith qp.stream_parallel():\n    for i in x:\n        t += x[i]\nwith qp.stream_parallel():\n    y[0] = t",
        "'t' is shared", 6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_other_uses_are_errors_with_a_place(load, name):
    body, message, line = BAD[name]
    module = load(HEAD + "".join(f"    {text}\n" for text in body.splitlines()))
    with pytest.raises(qp.KernelSyntaxError, match=message) as caught:
        module.bad(np.zeros(3, np.int32), np.zeros(3, np.int32), 2)
    assert caught.value.span.line == line + 4
    assert caught.value.hint


def test_a_name_of_another_block_is_not_defined(load):
    body = "with qp.stream_parallel():\n    t = n + 1\n    x[0] = t\nwith qp.stream_parallel():\n    y[0] = t\n"
    module = load(HEAD + "".join(f"    {text}\n" for text in body.splitlines()))
    with pytest.raises(qp.KernelNameError, match=r"'t' belongs to a concurrent section \(line 5\)"):
        module.bad(np.zeros(3, np.int32), np.zeros(3, np.int32), 2)


def test_a_name_of_two_blocks_means_nothing_after_them(load):
    body = BLOCK.replace("for i in x:\n            x[i] = 1", "t = n * n\n        x[0] = t")
    module = load(HEAD + body + body.replace("x[0]", "y[0]") + "    x[1] = t\n")
    with pytest.raises(qp.KernelNameError, match="'t' is not defined here"):
        module.bad(np.zeros(3, np.int32), np.zeros(3, np.int32), 2)


def test_a_function_holds_no_block(load):
    module = load(
        "@qp.func\ndef f(x):\n    with qp.stream_parallel():\n        x[0] = 1\n"
        "@qp.kernel\ndef bad(x: qp.types.ndarray(qp.i32, 1)):\n    f(x)\n"
    )
    with pytest.raises(qp.KernelSyntaxError, match="top level of a kernel"):
        module.bad(np.zeros(3, np.int32))


def test_outside_of_kernels_it_says_so():
    with pytest.raises(qp.KernelSyntaxError, match="inside kernels only"):
        qp.stream_parallel()
