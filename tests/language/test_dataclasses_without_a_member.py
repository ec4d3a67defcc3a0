"""Dataclass arguments whose members were never set."""

import dataclasses

import numpy as np
import pytest

import quadpy as qp


@dataclasses.dataclass
class Late:
    n: int
    x: qp.types.ndarray(qp.i32, 1) = dataclasses.field(init=False)


@dataclasses.dataclass
class Outer:
    inner: Late


@pytest.mark.parametrize("before", [False, True])
def test_a_member_that_was_never_set_is_named(before):
    @qp.kernel
    def add(d: Outer):
        for i in d.inner.x:
            d.inner.x[i] += d.inner.n

    if before:
        late = Late(1)
        late.x = np.zeros(3, np.int32)
        add(Outer(late))
        assert late.x.tolist() == [1, 1, 1]
    with pytest.raises(qp.ArgumentError, match=r"d\.inner\.x is missing: the Late has no attribute 'x'"):
        add(Outer(Late(1)))


def test_a_member_that_the_kernel_does_not_use_may_be_missing():
    @qp.kernel
    def number(d: Late) -> qp.i32:
        return d.n

    assert number(Late(7)) == 7
