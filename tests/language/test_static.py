"""What is done at compile time: unrolled loops, decided branches, comprehensions."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray
OFFSETS = ((-1, 0), (1, 0), (0, -1), (0, 1))
WEIGHTS = [0.25, 0.5, 0.25]


@qp.kernel
def stencil(x: A(qp.i32, 2), y: A(qp.i32, 2)):
    for i, j in qp.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        total = 0
        for offset in qp.static(OFFSETS):
            total += x[i + offset[0], j + offset[1]]
        for a, b in qp.static(OFFSETS):
            total += 100 * x[i + a, j + b]
        y[i, j] = total


def test_a_loop_over_a_python_tuple():
    x, y = np.random.default_rng(0).integers(0, 9, (6, 7)).astype(np.int32), np.zeros((6, 7), np.int32)
    stencil(x, y)
    want = 101 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    np.testing.assert_array_equal(y[1:-1, 1:-1], want)


@qp.kernel
def unrolled(out: A(qp.i32, 1)):
    for _ in range(1):
        n = 0
        for i in qp.static(range(10)):
            if qp.static(i % 2 == 1):
                continue
            if qp.static(i > 6):
                break
            out[n] = i
            n += 1
        for i, j in qp.static(qp.ndrange(2, (3, 5))):
            out[n] = i * 10 + j
            n += 1
        for k, w in qp.static(enumerate(WEIGHTS)):
            out[n] = k + qp.i32(4 * w)
            n += 1
        for a, b in qp.static(zip((1, 2), (30, 40), strict=False)):
            out[n] = a + b
            n += 1


def test_unrolled_loops_with_break_and_continue():
    out = np.zeros(13, np.int32)
    unrolled(out)
    assert out.tolist() == [0, 2, 4, 6, 3, 4, 13, 14, 1, 3, 3, 31, 42]


@qp.kernel
def runtime_loop_in_unrolled(out: A(qp.i32, 1)):
    for k in out:
        for i in qp.static(range(3)):
            for j in range(10):
                if j == k:
                    break
                if j % 2:
                    continue
                out[k] += i + 1


def test_a_run_time_loop_inside_an_unrolled_one():
    out = np.zeros(6, np.int32)
    runtime_loop_in_unrolled(out)
    assert out.tolist() == [6 * ((k + 1) // 2) for k in range(6)]


@qp.kernel
def decided(x: A(), flag: qp.template()) -> qp.i32:
    result = 0
    if qp.static(flag):
        result = x.undefined_when_compiled
    elif x.ndim == 2:
        result = 2
    else:
        result = x[0]
    return result


def test_a_branch_that_is_not_taken_is_not_compiled():
    assert decided(np.zeros((2, 2)), flag=False) == 2
    assert decided(np.array([41], np.int32), flag=False) == 41


@qp.kernel
def comprehensions(out: A(qp.i32, 1)):
    for k in out:
        v = qp.Vector([i * k for i in range(4)])
        m = qp.Matrix([[i * 2 + j + k for j in range(2)] for i in range(2)])
        odd = [i for i in range(6) if i % 2]
        out[k] = v.sum() + m.trace() * 1000 + len(odd) * 100000 + odd[2] * 1000000


def test_comprehensions():
    out = np.zeros(4, np.int32)
    comprehensions(out)
    assert out.tolist() == [6 * k + (3 + 2 * k) * 1000 + 5300000 for k in range(4)]


@qp.kernel
def static_assert(n: qp.template()) -> int:
    qp.static_assert(n % 2 == 0, f"n is even, not {n}")
    return n // 2


def test_static_assert_that_holds():
    assert static_assert(8) == 4


@qp.kernel
def printed(x: qp.f32) -> qp.f32:
    qp.static_print("compiling", x, 3)
    return x


def test_static_print(capsys):
    assert printed(1.5) == 1.5
    assert capsys.readouterr().out == "compiling f32 3\n"
    assert printed(2.5) == 2.5
    assert not capsys.readouterr().out


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}])
def test_recursion_that_ends_while_compiling(init, options):
    init(**options)

    @qp.func
    def down(n: qp.template()) -> qp.i32:
        total = 0
        if qp.static(n > 0):
            total = n + down(n - 1)
        return total

    @qp.func
    def early(n: qp.template(), x):
        if qp.static(n == 0):
            return x
        if x > 100:
            return early(n - 1, x) + 1
        return early(n - 1, x) + 2

    @qp.real_func
    def real(n: qp.template(), x: qp.i32) -> qp.i32:
        found = x
        if qp.static(n > 0):
            found = real(n - 1, x) + 1
        return found

    @qp.func
    def tree(depth: qp.template(), x: qp.template()):
        """Two calls of itself, which change what the caller passes."""
        if qp.static(depth == 0):
            x += 1
        else:
            tree(depth - 1, x)
            tree(depth - 1, x)

    @qp.kernel
    def run(a: qp.i32) -> (qp.i32, qp.i32, qp.i32, qp.i32):
        leaves = 0
        tree(3, leaves)
        return down(10), early(4, a), real(5, a), leaves

    assert run(200) == (55, 204, 205, 8)
    assert run(5) == (55, 13, 10, 8)


@qp.data_oriented
class Recursive:
    @qp.func
    def down(self, n: qp.template()) -> qp.i32:
        total = 0
        if qp.static(n > 0):
            total = n + self.down(n - 1)
        return total

    @qp.kernel
    def run(self, n: qp.template()) -> qp.i32:
        return self.down(n)


def test_recursion_is_limited():
    found = Recursive()
    assert found.run(31) == 31 * 16
    with pytest.raises(qp.KernelSyntaxError, match="down calls itself more than 32 times") as caught:
        found.run(1000)
    assert "self.down(n - 1)" in str(caught.value)


def test_deep_recursion_at_compile_time_compiles_in_linear_time(load):
    """Loops in branches in loops: a pass that looked at each of them twice would look 4 million times at the innermost."""
    module = load("""
        @qp.func
        def deepest(x, n: qp.template()):
            found = 0
            for j in range(2):
                if x[j] > n:
                    found += 1
                if qp.static(n > 0):
                    if x[j] > 1:
                        found += deepest(x, n - 1)
            return found

        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
            for i in range(1):
                x[2] = deepest(x, 22)
    """)
    x = np.array([9, 1, 0], np.int32)
    module.k(x)
    assert x[2] == sum(n < 9 for n in range(23)) + 1
