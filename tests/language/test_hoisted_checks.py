"""Checks that are decided before a loop: which failure is found, and what is written until then, is what it was."""

from __future__ import annotations

import random

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.pipeline import TARGET_PASSES
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.pipeline import run_passes
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel(debug=True)
def upwards(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(a, b):
            y[j] = x[j] & 7


@qp.kernel(debug=True)
def by_threes(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(a, b, 3):
            y[j] = x[j] & 7


@qp.kernel(debug=True)
def downwards(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(b, a, -1):
            y[j] = x[j] & 7


@qp.kernel(debug=True)
def neighbours(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(1, b):
            y[j] = x[j - 1] & y[j]


@qp.kernel(debug=True)
def fixed_element(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(a, b):
            y[j] = x[k] & j


@qp.kernel(debug=True)
def moving_element(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        at = k
        for j in range(a, b):
            y[j] = x[at] & j
            at = (at * 5 + 3) % 16


@qp.kernel(debug=True)
def in_a_branch(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(a, b):
            if j > k:
                y[j] = x[j] & 3


@qp.kernel(debug=True)
def left_early(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(a, b):
            if j == k:
                break
            y[j] = x[j] & 3


@qp.kernel(debug=True)
def long_counter(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for j in range(qp.i64(a), qp.i64(b)):
            y[j] = x[j] & 7


@qp.kernel(debug=True)
def two_loops(x: I32, y: I32, a: qp.i32, b: qp.i32, k: qp.i32):
    for _ in range(1):
        for i in range(2):
            y[i] = x[k] & 1
            for j in range(a, b):
                y[j] = x[j] & y[i]


PLAIN = {
    "upwards": lambda x, y, a, b, k: [y.put(j, x.get(j) & 7) for j in range(a, b)],
    "by_threes": lambda x, y, a, b, k: [y.put(j, x.get(j) & 7) for j in range(a, b, 3)],
    "downwards": lambda x, y, a, b, k: [y.put(j, x.get(j) & 7) for j in range(b, a, -1)],
    "neighbours": lambda x, y, a, b, k: [y.put(j, x.get(j - 1) & y.get(j)) for j in range(1, b)],
    "fixed_element": lambda x, y, a, b, k: [y.put(j, x.get(k) & j) for j in range(a, b)],
    "in_a_branch": lambda x, y, a, b, k: [y.put(j, x.get(j) & 3) for j in range(a, b) if j > k],
    "left_early": lambda x, y, a, b, k: [
        y.put(j, x.get(j) & 3) for j in range(a, k if a <= k < b else b)
    ],
    "long_counter": lambda x, y, a, b, k: [y.put(j, x.get(j) & 7) for j in range(a, b)],
}  # fmt: skip


def moved(x, y, a, b, k):
    at = k
    for j in range(a, b):
        y.put(j, x.get(at) & j)
        at = (at * 5 + 3) % 16


def nested(x, y, a, b, k):
    for i in range(2):
        y.put(i, x.get(k) & 1)
        for j in range(a, b):
            y.put(j, x.get(j) & y.get(i))


PLAIN |= {"moving_element": moved, "two_loops": nested}


class OutOfRange(Exception):
    """The index and the extent."""


class Checked:
    """An array of Python's, every access of which is checked."""

    def __init__(self, values):
        self.values = list(values)

    def get(self, i):
        if not 0 <= i < len(self.values):
            raise OutOfRange(i, len(self.values))
        return self.values[i]

    def put(self, i, value):
        self.get(i)
        self.values[i] = value


def cases(name):
    rng = random.Random(name)
    for _ in range(60):
        n, m = rng.choice([0, 1, 5, 16]), rng.choice([0, 1, 5, 16])
        a = rng.choice([0, 0, 0, 1, 2, -1, -(2**31)])
        b = rng.choice([n, m, min(n, m), n + 1, m - 1, a, a - 1, 3])
        b = max(b, -(2**31))
        if a == -(2**31) and b > a:
            a = -2
        yield n, m, a, b, rng.choice([0, 0, 1, 3, n - 1, n, -1])


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_failures_and_results_are_those_of_python(name):
    kernel, outcomes = globals()[name], set()
    for n, m, a, b, k in cases(name):
        x, y = np.arange(n, dtype=np.int32) * 5, np.full(m, 9, np.int32)
        plain_x, plain_y = Checked(x.tolist()), Checked(y.tolist())
        wrong = found = None
        try:
            PLAIN[name](plain_x, plain_y, a, b, k)
        except OutOfRange as error:
            wrong = error.args
        try:
            kernel(x, y, a, b, k)
            qp.sync()
        except qp.BoundsError as fault:
            found = fault.values
        assert found == wrong, (n, m, a, b, k)
        assert y.tolist() == plain_y.values, (n, m, a, b, k)
        outcomes.add(wrong is None)
    assert outcomes == {True, False}, "some fail, and some do not"


def loops(kernel, family, target):
    """Whether each sequential loop has checks, in the order of the code."""
    made = run_passes(TARGET_PASSES[family], trace_for(kernel, {}, parse_target(target)).kernel)
    found = [node for task in made.tasks for node in walk(task) if isinstance(node, ir.For)]
    return [any(isinstance(node, ir.Fault) for node in walk(loop)) for loop in found]


@pytest.mark.parametrize(("family", "target"), [("cpu", "cpu"), ("amdgpu", "gfx942"), ("nvptx", "sm_90")])
@pytest.mark.parametrize("name", ["upwards", "by_threes", "neighbours", "fixed_element", "in_a_branch", "left_early"])
def test_a_loop_has_a_version_without_checks(name, family, target):
    assert loops(globals()[name], family, target) == [False, True]


@pytest.mark.parametrize("name", ["downwards", "moving_element", "long_counter"])
def test_other_loops_are_written_once(name):
    assert loops(globals()[name], "nvptx", "sm_90") == [True]


@qp.kernel(debug=True)
def parallel(x: I32, y: I32):
    for i in x:
        y[i] = x[i]


@pytest.mark.parametrize(("n", "m"), [(0, 0), (100, 100), (100, 99), (1, 0), (99, 100)])
def test_parallel_loops_find_what_is_out_of_range(n, m):
    x, y = np.arange(n, dtype=np.int32), np.zeros(m, np.int32)
    found = None
    try:
        parallel(x, y)
        qp.sync()
    except qp.BoundsError as fault:
        found = fault.values
    assert found == (None if n <= m else (n - 1, m))
    if found is None:
        assert (y[:n] == x).all()


def test_a_parallel_loop_on_the_cpu_chooses_in_each_iteration():
    made = run_passes(TARGET_PASSES["cpu"], trace_for(parallel, {}, parse_target("cpu")).kernel)
    (choice,) = made.tasks[0].body.stmts
    assert isinstance(choice, ir.If)
    versions = (choice.then, choice.orelse)
    assert [any(isinstance(node, ir.Fault) for node in walk(block)) for block in versions] == [False, True]
