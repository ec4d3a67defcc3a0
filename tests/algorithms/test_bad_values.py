"""Values that algorithms do not take: which are refused before anything runs, and what the message says."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

al = qp.algorithms


@pytest.mark.parametrize("name", ["sort", "argsort", "sort_pairs"])
@pytest.mark.parametrize("offsets", [[0, 200, 50], [1, 8], [0, 7], [0, 5, 3, 8], [-1, 8]])
def test_segments_that_are_none_are_refused(name, offsets):
    x = np.arange(8, dtype=np.float32)
    arguments = (x, x) if name == "sort_pairs" else (x,)
    with pytest.raises(qp.ArgumentError, match=f"{name}: segments takes integers that do not decrease, from 0 to .* 8"):
        getattr(al, name)(*arguments, segments=np.array(offsets, np.int32))


def test_segments_may_be_empty():
    x = np.array([3, 1, 2], np.int32)
    assert al.sort(x, segments=np.array([0, 0, 3, 3], np.int64)).to_numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("edges", [[3.0, 1.0, 2.0], [0.0, np.nan, 1.0]])
def test_edges_that_decrease_are_refused(edges):
    with pytest.raises(qp.ArgumentError, match="histogram: bins takes edges that do not decrease, not"):
        al.histogram(np.zeros(4, np.float32), np.array(edges))


def test_values_on_the_cpu_are_checked_in_ndarrays_too(arch, place):
    if arch != "cpu":
        pytest.skip("the values of an array on a GPU are not read")
    with pytest.raises(qp.ArgumentError, match="segments"):
        al.sort(place(np.arange(8)), segments=place(np.array([0, 9])))


@pytest.mark.parametrize("function", [len, print, "sort", al.reduce.__call__])
def test_scratch_sizes_are_of_algorithms(function):
    with pytest.raises(qp.ArgumentError, match=r"scratch_size takes a function of qp\.algorithms, not"):
        al.scratch_size(function, [1])


def test_overflow_under_debug_is_told_without_a_line_of_quadpys(arch):
    qp.init(arch=arch, cpu_max_num_threads=2, debug=True)
    try:
        with pytest.raises(qp.KernelFault) as caught:
            al.reduce(np.full(3, 2**30, np.int32), dtype=qp.i8).to_numpy()
    finally:
        qp.init(arch=arch, cpu_max_num_threads=2)
    assert str(caught.value).splitlines()[0] == "1073741824 does not fit i8"
    assert "dtype=" in caught.value.hint
    assert "of qp.algorithms" in str(caught.value)
    assert "/quadpy/" not in str(caught.value)


@qp.func
def twice_and(a, b):
    return a + b


def test_the_line_of_a_users_function_is_told(arch):
    qp.init(arch=arch, cpu_max_num_threads=2, debug=True)
    try:
        with pytest.raises(OverflowError) as caught:
            al.reduce(np.full(3, 2**30, np.int32), twice_and, identity=0, dtype=qp.i32).to_numpy()
    finally:
        qp.init(arch=arch, cpu_max_num_threads=2)
    assert "return a + b" in str(caught.value)
    assert caught.value.span.file == __file__


@qp.func
def of_three(a, b, c):
    return a + b + c


@pytest.mark.parametrize("name", ["reduce", "inclusive_scan", "exclusive_scan"])
def test_operators_of_other_than_two_numbers_are_refused(name):
    with pytest.raises(
        qp.ArgumentError, match=rf"{name}: an operator takes two numbers, and of_three takes \(a, b, c\)"
    ) as caught:
        getattr(al, name)(np.ones(4, np.float32), of_three, identity=0.0)
    assert "test_bad_values.py" in str(caught.value)  # the line of the function
    assert "two parameters" in caught.value.hint


def test_what_is_no_array_has_one_message():
    with pytest.raises(qp.ArgumentError, match="flags: Func is not an array") as caught:
        al.select(np.ones(4, np.float32), of_three)
    assert caught.value.__cause__ is None
