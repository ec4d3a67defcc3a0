"""An iteration's own element is in a variable while an inner loop updates it: same bits, fewer accesses."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

F32 = qp.types.ndarray(qp.f32, 1)
PLANE = qp.types.ndarray(qp.f32, 2)
VECTORS = qp.types.ndarray(qp.types.vector(2, qp.f32), 1)


@qp.kernel
def summed(x: F32, y: F32):
    for i in y:
        for j in range(x.shape[0]):
            if j % 3 != i % 3:
                y[i] += x[j]


@qp.kernel
def scanned(x: PLANE, y: F32):
    """A loop that ends early, in a loop; a factor besides a sum."""
    for i in range(y.shape[0]):
        for j in range(x.shape[0]):
            k = 0
            while k < x.shape[1]:
                if x[j, k] < 0:
                    break
                k += 1
                if x[j, k - 1] > 1:
                    continue
                y[i] = y[i] * 0.5 + x[j, k - 1]
            y[i] -= 1


@qp.kernel
def turned(x: VECTORS, y: VECTORS):
    """Components that depend on each other."""
    for i in y:
        for j in range(x.shape[0]):
            y[i].x += x[j].x * y[i].y
            y[i].y = y[i].x - x[j].y


def test_sums_in_the_order_of_the_loop(arch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=100).astype(np.float32), rng.normal(size=37).astype(np.float32)
    expected = y.copy()
    for i in range(37):
        for j in range(100):
            if j % 3 != i % 3:
                expected[i] += x[j]
    summed(x, y)
    assert y.tobytes() == expected.tobytes()


def test_loops_that_end_early(arch):
    x = np.random.default_rng(1).uniform(-0.1, 1.2, (20, 15)).astype(np.float32)
    y = np.arange(9, dtype=np.float32)
    expected = y.copy()
    for i in range(9):
        for j in range(20):
            for value in x[j]:
                if value < 0:
                    break
                if value <= 1:
                    expected[i] = expected[i] * np.float32(0.5) + value
            expected[i] -= np.float32(1)
    scanned(x, y)
    assert y.tobytes() == expected.tobytes()


def test_components(arch):
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=(n, 2)).astype(np.float32) for n in (30, 8))
    expected = y.copy()
    for i in range(8):
        for j in range(30):
            expected[i, 0] += x[j, 0] * expected[i, 1]
            expected[i, 1] = expected[i, 0] - x[j, 1]
    turned(x, y)
    assert y.tobytes() == expected.tobytes()


def test_arrays_that_are_the_same(arch):
    """The promise that arrays are distinct does not hold: what is stored is read back."""
    x = np.ones(1, np.float32)
    y = x

    @qp.kernel
    def double(x: F32, y: F32):
        for i in y:
            for _ in range(4):
                y[i] += x[0]

    double(x, y)
    assert x[0] == 16


def test_elements_that_a_branch_guards_are_not_touched(arch):
    """Reading or writing them would be out of bounds."""

    @qp.kernel
    def guarded(x: F32, y: F32, n: qp.i32):
        for i in range(n):
            for j in range(x.shape[0]):
                if i < y.shape[0]:
                    y[i] += x[j]

    memory = np.full(1000, 7, np.float32)
    guarded(np.ones(5, np.float32), memory[:3], 1000)
    assert memory.tolist() == [12, 12, 12] + [7] * 997


def test_returns_out_of_a_loop(arch):
    @qp.func
    def first_negative(x: qp.template(), y: qp.template(), i):
        for j in range(x.shape[0]):
            y[i] += x[j]
            if x[j] < 0:
                return j
        return -1

    @qp.kernel
    def search(x: F32, y: F32, found: qp.types.ndarray(qp.i32, 1)):
        for i in y:
            found[i] = first_negative(x, y, i)

    x, y, found = np.array([1, 2, -4, 8], np.float32), np.zeros(3, np.float32), np.zeros(3, np.int32)
    search(x, y, found)
    assert y.tolist() == [-1] * 3
    assert found.tolist() == [2] * 3


def test_iterations_that_share_elements_update_them_atomically(arch):
    @qp.kernel
    def both(y: F32):
        for i in y:
            for j in range(y.shape[0]):
                y[i] += 1.0
                y[j] += 1.0

    y = np.zeros(64, np.float32)
    both(y)
    assert y.tolist() == [128] * 64


INSIDE = {
    "own": ("for i in y:", "y[i] += x[j]", False),
    "range of the extent": ("for i in range(y.shape[0]):", "y[i] += x[j]", False),
    "from 1 on": ("for i in range(1, y.shape[0]):", "y[i] += x[j]", False),
    "another's extent": ("for i in range(x.shape[0]):", "y[i] += x[j]", True),
    "perhaps negative": ("for i in range(-1, y.shape[0]):", "y[i] += x[j]", True),
    "shifted": ("for i in range(y.shape[0] - 1):", "y[i + 1] += x[j]", True),
    "only written": ("for i in y:", "y[i] = x[j]", True),
}


@pytest.mark.parametrize("case", INSIDE)
def test_where_the_loop_accesses_memory(case, load):
    head, update, accesses = INSIDE[case]
    kernel = load(f"""
    F32 = qp.types.ndarray(qp.f32, 1)

    @qp.kernel
    def k(x: F32, y: F32):
        {head}
            for j in range(x.shape[0]):
                {update}
    """).k
    inside = [
        node
        for loop in walk(trace_for(kernel, {}).kernel)
        if isinstance(loop, ir.For)
        for node in walk(loop)
        if isinstance(node, (ir.Store, ir.Atomic))
    ]
    assert bool(inside) == accesses
