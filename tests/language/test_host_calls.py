"""Builtins and library functions that are called outside kernels."""

import math
import warnings

import numpy as np
import pytest

import quadpy as qp


@pytest.fixture(autouse=True)
def defaults(init):
    """On the CPU, and as before after each test."""
    init(arch=qp.cpu)


@qp.kernel
def in_kernel(x: float, y: float, n: int) -> (float, float, float, float, float, int):
    return qp.sqrt(x), qp.sin(x), qp.atan2(y, x), qp.exp(n), qp.floor(x), qp.max(n, 2)


@pytest.mark.parametrize("default_fp", [qp.f32, qp.f64])
def test_the_host_gets_the_bits_of_a_kernel(default_fp):
    qp.init(arch=qp.cpu, default_fp=default_fp)
    x, y, n = 1.7, 0.3, 3
    host = qp.sqrt(x), qp.sin(x), qp.atan2(y, x), qp.exp(n), qp.floor(x), qp.max(n, 2)
    assert host == in_kernel(x, y, n)
    assert [type(value) for value in host] == [float] * 5 + [int]


def test_numpy_numbers_and_vectors_keep_their_type():
    assert qp.sqrt(np.float64(2)) == math.sqrt(2)
    assert qp.sqrt(2.0) == float(np.sqrt(np.float32(2)))
    v = qp.sqrt(qp.Vector([1.0, 4.0], qp.f64))
    assert v.to_list() == [1.0, 2.0]
    assert v.dtype == qp.f64
    assert qp.max(qp.Vector([1, 5]), 3).to_list() == [3, 5]
    assert qp.min(qp.Vector([4, 2, 8])) == 2


def test_types_are_arguments_too():
    assert qp.cast(3.7, int) == 3
    assert qp.floor(2.5, qp.i64) == 2
    assert qp.bit_cast(1.0, qp.i32) == 0x3F800000


def test_library_functions_run_on_the_host():
    a = qp.Matrix([[3.0, 1.0], [0.0, 2.0]])
    u, sigma, v = qp.svd(a)
    np.testing.assert_allclose((u @ sigma @ v.transpose()).to_numpy(), a.to_numpy(), atol=1e-6)
    assert qp.math.clamp(5.0, 0.0, 1.0) == 1.0
    assert qp.math.mix(qp.Vector([0.0, 2.0]), qp.Vector([2.0, 4.0]), 0.5).to_list() == [1.0, 3.0]


def test_random_numbers_come_from_the_seed():
    qp.init(arch=qp.cpu, random_seed=3)
    first = [qp.random() for _ in range(4)]
    qp.init(arch=qp.cpu, random_seed=3)
    assert [qp.random() for _ in range(4)] == first
    assert len(set(first)) == 4
    assert all(0 <= x < 1 for x in first)


def test_loops_over_ndrange_and_static_values_run_in_python():
    assert list(qp.ndrange(2, (1, 3))) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert qp.static(3) == 3
    assert qp.static(1, "a") == (1, "a")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (qp.sqrt, "sqrt takes 1 argument, not 0"),
        (lambda: qp.sqrt("x"), "a number is needed here, not str"),
        (lambda: qp.sqrt(object()), "sqrt takes numbers and vectors, not object"),
        (lambda: qp.sqrt(np.ones(3)), "sqrt takes numbers and vectors, not a ndarray"),
        (lambda: qp.sqrt(x=2.0), "sqrt takes its arguments by position"),
        (lambda: qp.min(*range(9)), "min takes up to 8 arguments, not 9"),
        (lambda: qp.max(2**40, 1), "max: a: 1099511627776 does not fit i32"),
        (lambda: qp.svd(qp.Matrix([[1.0, 2.0]])), "svd takes a matrix of 2 x 2 or 3 x 3"),
    ],
)
def test_what_a_call_outside_kernels_refuses(call, message):
    with pytest.raises(qp.ArgumentError, match=message):
        call()


Body = qp.types.struct(pos=qp.types.vector(2, qp.f32), mass=qp.f32)


@qp.func
def area(v, least=0.5):
    if v.x < least:
        return least
    return v.x * v.y


@qp.func
def heavier(body, by):
    body.mass += by
    return body


@qp.func
def raised(x: qp.template(), i: int, by):
    x[i] += by
    return x[i], i


@qp.kernel
def areas(x: float, y: float) -> float:
    return area(qp.math.vec2(x, y))


@pytest.mark.parametrize("on", [qp.cpu, qp.python])
class TestFunctions:
    def test_a_function_gives_what_it_gives_in_a_kernel(self, init, on):
        init(arch=on)
        assert area(qp.Vector([1.1, 0.3])) == areas(1.1, 0.3) != 1.1 * 0.3  # in f32
        assert area(qp.Vector([0.25, 1.0])) == 0.5
        assert area(least=2, v=qp.Vector([1.0, 1.0])) == 2.0

    def test_structs_fields_and_tuples(self, init, on):
        init(arch=on)
        given = Body(pos=[1.0, 2.0], mass=0.5)
        made = heavier(given, 1)
        assert (made.mass, made.pos.to_list(), given.mass) == (1.5, [1.0, 2.0], 0.5)
        heights = qp.field(qp.f32, shape=4)
        heights.fill(1.0)
        assert raised(heights, 2, 0.5) == (1.5, 2)
        assert heights.to_numpy().tolist() == [1.0, 1.0, 1.5, 1.0]

    def test_what_it_does_not_take(self, init, on):
        init(arch=on)
        with pytest.raises(qp.ArgumentError, match="too many positional arguments"):
            area(1, 2, 3)
        with pytest.raises(qp.ArgumentError, match="takes no arrays"):
            area(np.ones(3, np.float32))
        with pytest.raises(qp.KernelTypeError, match="has no attribute 'x'") as error:
            area(1.0)
        assert error.value.span.line == area.source.span.line + 2


@pytest.mark.parametrize("on", [qp.cpu, qp.python])
def test_the_loops_of_a_function_run_in_order(on):
    """As in an iteration of a parallel loop: they are not parallel loops, in which this would be a race."""

    @qp.func
    def continued_fraction(x, n):
        value = x
        for k in range(n):
            value = k + 1.0 / (value + 1.0)
        return value

    qp.init(arch=on)
    expected = np.float32(0.5)
    for k in range(5000):
        expected = np.float32(k) + np.float32(1) / (expected + np.float32(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", qp.RaceWarning)
        assert continued_fraction(0.5, 5000) == expected


@qp.func
def sum_of_first(v, n):
    total = 0.0
    for k in range(n):
        total += v[k]
    return total


@pytest.mark.parametrize("on", [qp.cpu, qp.python])
def test_a_failed_check_names_the_function_that_was_called(on):
    qp.init(arch=on, debug=True)
    with pytest.raises(qp.KernelIndexError, match="index 3 of axis 0") as caught:
        sum_of_first(qp.Vector([1.0, 2.0, 3.0]), 4)
    assert (caught.value.kernel, caught.value.iteration) == ("sum_of_first", {"k": 3})


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("abs", lambda: qp.abs(-(2**31))),
        ("cast", lambda: qp.cast(3e9, qp.i32)),
        ("pow", lambda: qp.pow(3, 40)),
        ("dot", lambda: qp.math.dot(qp.Vector([2**30, 1]), qp.Vector([2, 1]))),
    ],
)
def test_a_failed_check_of_a_builtin_names_it(init, name, call):
    init(debug=True)
    with pytest.raises(qp.KernelOverflowError) as caught:
        call()
    assert caught.value.kernel == name
    assert caught.value.hint == "a wider type holds more"
    assert "qp.algorithms" not in str(caught.value)
