"""``obj[i, j] += x`` where ``obj`` is a Python object with a function for what kernels add."""

from __future__ import annotations

import pytest

import quadpy as qp
from quadpy.errors import KernelSyntaxError


@qp.data_oriented
class Collector:
    def __init__(self, n):
        self.total, self.calls = qp.field(qp.i32, n), qp.field(qp.i32, ())
        self.inner = None

    @qp.func
    def __quadpy_add__(self, i, x):
        self.total[i] += x
        self.calls[None] += 1


@qp.kernel
def collect(c: qp.template(), n: qp.i32):
    for i in range(n):
        c[i % 3] += i
        c[0] -= 1


def test_what_is_added_goes_to_the_function():
    collector = Collector(3)
    collect(collector, 10)
    assert collector.total.to_numpy().tolist() == [0 + 3 + 6 + 9 - 10, 1 + 4 + 7, 2 + 5 + 8]
    assert collector.calls[None] == 20


def test_members_and_module_variables_collect_too():
    outer = Collector(1)
    outer.inner = Collector(1)

    @qp.kernel
    def both():
        for i in range(4):
            outer.inner[0] += i
            outer[0] += 1

    both()
    assert outer.inner.total[0] == 6
    assert outer.total[0] == 4


def test_vectors_and_arrays_of_the_same_spelling_are_as_before():
    @qp.kernel
    def local() -> qp.i32:
        c = qp.Vector([1, 2])
        c[1] += 5
        return c[0] + c[1]

    assert local() == 8


def test_other_operators_are_refused():
    @qp.kernel
    def scale(c: qp.template()):
        c[0] *= 2

    with pytest.raises(KernelSyntaxError, match=r"a Collector only takes \+= and -="):
        scale(Collector(1))
