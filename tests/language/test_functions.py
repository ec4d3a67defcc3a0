"""``@qp.func``: arguments, and functions as values.  What they return: ``test_returns``."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

A = qp.types.ndarray


@qp.func
def weigh(x, y, *, scale=2, offset=0.5):
    return scale * x + y + offset


@qp.kernel
def calls(y: A(qp.f32, 1)):
    y[0] = weigh(1.0, 2.0)
    y[1] = weigh(1.0, 2.0, scale=3)
    y[2] = weigh(y=1.0, x=2.0, offset=0.0)
    y[3] = weigh(*qp.static((4.0, 5.0)))


def test_defaults_and_keywords():
    y = np.zeros(4, np.float32)
    calls(y)
    assert y.tolist() == [4.5, 5.5, 5.0, 13.5]


@qp.func
def changes_its_parameter(x, v):
    x += 1
    v.x = 100.0
    v *= 2.0
    return x + v.x


@qp.kernel
def by_value(y: A(qp.f32, 1)):
    x = 5.0
    v = qp.Vector([1.0, 2.0])
    y[0] = changes_its_parameter(x, v)
    y[1], y[2], y[3] = x, v.x, v.y


def test_arguments_are_passed_by_value():
    y = np.zeros(4, np.float32)
    by_value(y)
    assert y.tolist() == [206, 5, 1, 2]


@qp.func
def square(x):
    return x * x


@qp.func
def twice(f, x):
    return f(f(x))


@qp.func
def cube(x):
    return x * square(x)


@qp.kernel
def apply(f: qp.template(), x: qp.f64) -> qp.f64:
    return f(x) + twice(f, x)


@pytest.mark.parametrize(("f", "want"), [(square, 9.0 + 81.0), (cube, 27.0 + 19683.0)])
def test_functions_as_arguments(f, want):
    assert apply(f, 3.0) == want


TABLE = {"square": square, "cube": cube}
CHAIN = [square, cube]


@qp.kernel
def from_containers(x: qp.f64) -> qp.f64:
    y = TABLE["square"](x)
    for f in qp.static(CHAIN):
        y = f(y)
    return y


def test_functions_in_containers():
    assert from_containers(2.0) == (4.0**2) ** 3


@qp.func
def generic(x):
    return x + x


@qp.kernel
def every_type(a: qp.i8, b: qp.f64, y: A(qp.f64, 1)):
    y[0] = generic(a)
    y[1] = generic(b)
    y[2] = generic(qp.Vector([a, a])).y
    y[3] = generic((1, 2))[3]


def test_functions_are_generic():
    y = np.zeros(4)
    every_type(100, 0.1, y)
    assert y.tolist() == [-56, 0.2, -56, 2]


@qp.func
def typed(x: qp.i32, y: float) -> qp.f64:
    return x + y


@qp.kernel
def annotated(y: A(qp.f64, 1)):
    y[0] = typed(2.75, 1)


def test_annotations_cast():
    y = np.zeros(1)
    annotated(y)
    assert y[0] == 3.0


@qp.func
def fill_all(x, value):
    for i in x:
        x[i] = value


@qp.kernel
def loops_in_functions(x: A(qp.i32, 1), y: A(qp.i32, 1)):
    fill_all(x, 3)
    fill_all(y, x[0])
    for i in range(1):
        fill_all(x, i + 8)


def test_a_function_with_a_top_level_loop():
    x, y = np.zeros(2000, np.int32), np.zeros(2000, np.int32)
    loops_in_functions(x, y)
    assert (x == 8).all()
    assert (y == 3).all()


def make(power):
    @qp.func
    def raised(x):
        return x**power

    @qp.kernel
    def kernel(x: qp.f64) -> qp.f64:
        return raised(x) + power

    return kernel


def test_functions_and_kernels_made_in_functions():
    square_plus, cube_plus = make(2), make(3)
    assert [square_plus(3.0), cube_plus(3.0), square_plus(2.0)] == [11.0, 30.0, 6.0]


vec2 = qp.types.vector(2, qp.f64)


@qp.func
def takes_pairs(v: vec2, pair: (qp.f32, qp.i32)):
    return v * 0.1, pair[0] / pair[1]


@qp.kernel
def calls_annotated(y: A(qp.f64, 1)):
    v, q = takes_pairs([1, 3], (1.0, qp.i64(4)))
    y[0], y[1], y[2] = v.x, v.y, q


def test_vector_types_and_tuples_as_annotations_cast():
    y = np.zeros(3)
    calls_annotated(y)
    assert y.tolist() == [0.1, 3 * 0.1, 0.25]


@pytest.mark.parametrize("given", ["qp.Vector([1.0, 2.0, 3.0])", "1.0", "qp.Matrix([[1.0, 2.0]])", "'a'"])
def test_an_argument_of_another_shape_is_an_error(load, given):
    kernel = load(f"""
    @qp.func
    def f(v: qp.types.vector(2, qp.f32)):
        return v[0]

    @qp.kernel
    def kernel(y: qp.types.ndarray(qp.f32, 1)):
        y[0] = f({given})
    """).kernel
    with pytest.raises(qp.KernelTypeError, match="f: v is f32x2, not") as caught:
        kernel(np.zeros(1, np.float32))
    assert f"f({given})" in str(caught.value)


CHANGES = {
    "a = a + 1.0": ("p", 7.0),
    "a += 1.0": ("p", 7.0),
    "a, b = b, a": ("p", 5.0),
    "qp.atomic_add(a, 1.0)": ("p", 7.0),
    "a[0] = 1.0": ("v", 4.0),
    "a.x += 1.0": ("v", 7.0),
    "a.fill(1.0)": ("v", 4.0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", [True, False], ids=["place", "expression"])
def test_a_function_changes_a_variable_through_a_template_and_no_expression(load, change, place):
    """A Taichi program means a reference: a copy that is changed in silence would be a wrong result."""
    name, changed = CHANGES[change]
    argument = name if place else f"{name} + 1.0"
    kernel = load(f"""
    @qp.func
    def f(a: qp.template(), b):
        {change}

    @qp.kernel
    def kernel(y: qp.types.ndarray(qp.f32, 1)):
        for i in y:
            p, v = y[i], qp.Vector([y[i], 1.0])
            f({argument}, 2.0)
            y[i] = p + v.x
    """).kernel
    y = np.full(1, 3, np.float32)
    if place:
        kernel(y)
        assert y[0] == changed
        return
    with pytest.raises(qp.KernelTypeError, match="f changes its template parameter 'a'") as caught:
        kernel(y)
    assert "pass a variable" in caught.value.hint
    assert f"f({argument}, 2.0)" in str(caught.value)


@qp.func
def counts_down(n: qp.template(), x: qp.template()):
    n -= 1
    x[n] += 1.0


@qp.kernel
def through_templates(y: A(qp.f32, 1)):
    counts_down(3, y)
    counts_down(1, y)


def test_a_template_may_be_an_array_that_is_written_and_a_number_that_counts():
    y = np.zeros(3, np.float32)
    through_templates(y)
    assert y.tolist() == [1, 0, 1]
