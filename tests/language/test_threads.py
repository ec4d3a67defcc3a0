"""Kernels called from several threads at once."""

from __future__ import annotations

import ast
import itertools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import quadpy as qp
from quadpy.lang.parsing import parse

A = qp.types.ndarray
N = 30_000
CALLS = 3 if "ROCJITSU_RUNTIME_DIR" in os.environ else 30  # an emulator is slow at it


@qp.kernel
def work(x: A(ndim=1), k: qp.template()) -> qp.f64:
    total = qp.f64(0)
    for i in x:
        x[i] = x[i] * 2 + k
    for i in x:
        total += x[i]
    return total


def expected(dtype, k):
    return float((np.arange(N).astype(dtype) % 100 * 2 + k).astype(np.float64).sum())


def call(dtype, k):
    x = np.arange(N).astype(dtype) % 100
    return work(x.astype(dtype), k)


def test_first_calls_from_many_threads():
    start = threading.Barrier(8)

    def first(n):
        start.wait()
        return [call(dtype, n % 3) for dtype in (np.float32, np.int32, np.float64)]

    with ThreadPoolExecutor(8) as pool:
        for n, results in enumerate(pool.map(first, range(8))):
            assert results == [expected(dtype, n % 3) for dtype in (np.float32, np.int32, np.float64)]


def test_many_calls_from_many_threads():
    def many(n):
        return {call(np.float64, n % 2) for _ in range(CALLS)}

    with ThreadPoolExecutor(6) as pool:
        for n, results in enumerate(pool.map(many, range(6))):
            assert results == {expected(np.float64, n % 2)}


@qp.kernel
def broken(x: A(qp.f32, 1)):
    for i in x:
        x[i] = nothing_of_that_name  # noqa: F821  (that is the error)


def test_an_error_reaches_every_thread():
    def fails(_):
        try:
            broken(np.zeros(4, np.float32))
        except qp.KernelNameError as error:
            return error.span.line

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(fails, range(8))) == {broken.source.span.line + 3}


@qp.kernel
def draw(counter: A(qp.i64, 1), tickets: A(qp.i64, 1)):
    for i in tickets:
        tickets[i] = qp.atomic_add(counter[0], 1)


def test_threads_share_an_array_through_atomics():
    counter = qp.ndarray(qp.i64, shape=1)  # not NumPy's, of which each launch on a GPU has a copy
    drawn = [np.zeros(5000, np.int64) for _ in range(20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda tickets: draw(counter, tickets), drawn))
    np.testing.assert_array_equal(np.sort(np.concatenate(drawn)), np.arange(100_000))


class Node:
    """Part of a cycle, whose finalizer lets another thread run."""

    def __del__(self):
        for _ in range(50):
            pass


def test_threads_parse_at_once():
    text = Path(ast.__file__).read_text()[:6000].rsplit("\n\n", 1)[0]
    interval, failed = sys.getswitchinterval(), []

    def parsing():
        for _ in range(40):
            nodes = [Node() for _ in range(50)]
            for node, other in itertools.pairwise(nodes):
                node.next, other.last = other, node
            del nodes, node, other
            try:
                parse(text)
            except SystemError as error:
                failed.append(error)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=parsing) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed


def test_a_text_is_parsed_again_if_the_programs_threads_were_in_between(monkeypatch):
    parsed = ast.parse
    refusals = iter([SystemError, SystemError])

    def refusing(text):
        if error := next(refusals, None):
            raise error("AST constructor recursion depth mismatch")
        return parsed(text)

    monkeypatch.setattr(ast, "parse", refusing)
    assert isinstance(parse("a = 1").body[0], ast.Assign)
