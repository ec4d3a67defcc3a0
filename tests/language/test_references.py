"""Template parameters that a function assigns: places of the caller, passed by reference."""

import textwrap

import numpy as np
import pytest

import quadpy as qp

Ints = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.func
def add_to(a: qp.template(), n: int):
    a += n


@qp.func
def twice_add_to(a: qp.template(), n: int):
    add_to(a, n)
    add_to(a, n)


@qp.func
def swap(a: qp.template(), b: qp.template()):
    a, b = b, a


@qp.func
def halve_until(a: qp.template(), limit: int) -> int:
    steps = 0
    while True:
        if a < limit:
            return steps
        a //= 2
        steps += 1
    return steps


def test_a_local_variable_is_changed():
    @qp.kernel
    def k(x: int) -> (int, int, int):
        a = x
        add_to(a, 3)
        before = a
        twice_add_to(a, 10)
        steps = halve_until(a, 4)
        return before, a, steps

    assert k(4) == (7, 3, 3)


def test_keywords_and_two_references():
    @qp.kernel
    def k(x: int) -> (int, int):
        a, b = x, 1
        swap(b=b, a=a)
        return a, b

    assert k(7) == (1, 7)


def test_an_operand_that_was_read_before_the_call_keeps_its_value():
    @qp.func
    def bump(a: qp.template()) -> int:
        a += 1
        return a

    @qp.kernel
    def k(x: int) -> int:
        a = x
        return a * 100 + bump(a) * 10 + a

    assert k(1) == 122


def test_vectors_components_and_rows():
    @qp.func
    def shift(v: qp.template()):
        v.x += 1.0
        v[1] = v[0] * 2.0

    @qp.kernel
    def k() -> (qp.math.vec2, float, qp.types.matrix(2, 2, qp.f32)):
        v = qp.Vector([1.0, 0.0])
        shift(v)
        w = qp.Vector([0.0, 5.0])
        add_to(w[1], 2)
        add_to(w.x, 1)
        m = qp.Matrix([[0.0, 0.0], [1.0, 1.0]])
        shift(m[1])
        return v, w[1] * 10.0 + w[0], m

    v, w, m = k()
    assert v.to_list() == [2.0, 4.0]
    assert w == 71.0
    assert m.to_list() == [[0.0, 0.0], [2.0, 4.0]]


def test_elements_of_arrays_are_changed_atomically():
    @qp.kernel
    def k(total: Ints, n: int):
        for _ in range(n):
            add_to(total[0], 1)

    total = np.zeros(1, np.int32)
    k(total, 1000)
    assert total[0] == 1000


def test_elements_that_are_vectors():
    field = qp.Vector.field(2, qp.f32, shape=3)

    @qp.func
    def move(p: qp.template(), by: float):
        p += qp.Vector([by, 2.0 * by])
        p.x = p.x * 10.0

    @qp.kernel
    def k():
        for i in field:
            move(field[i], float(i))

    k()
    assert field.to_numpy().tolist() == [[0.0, 0.0], [10.0, 2.0], [20.0, 4.0]]


def test_a_shared_variable_of_a_parallel_loop():
    @qp.kernel
    def k(n: int) -> int:
        total = 0
        for i in range(n):
            add_to(total, i)
        return total

    assert k(100) == 4950


def test_methods_take_references_too():
    @qp.data_oriented
    class Counter:
        step = 5

        @qp.func
        def bump(self, a: qp.template()):
            a += self.step

        @qp.kernel
        def run(self, x: int) -> int:
            a = x
            self.bump(a)
            return a

    assert Counter().run(1) == 6


def test_a_literal_is_a_local_value_of_the_function():
    @qp.func
    def count_down(n: qp.template()) -> int:
        steps = 0
        while n > 0:
            n -= 2
            steps += 1
        return steps

    @qp.kernel
    def k() -> int:
        return count_down(5)

    assert k() == 3


@pytest.mark.parametrize(
    "body", ["for i in qp.static(range(3)):\n    add_to(i, 5)", "add_to(n, 5)", "add_to(a=n, n=5)"]
)
def test_a_number_of_compile_time_is_no_place(load, body):
    module = load(f"""
@qp.func
def add_to(a: qp.template(), n: int):
    a += n

@qp.kernel
def k(n: qp.template()):
{textwrap.indent(body, "    ")}
""")
    with pytest.raises(
        qp.KernelTypeError, match="is known at compile time and cannot be changed by a function"
    ) as caught:
        module.k(3)
    assert "assign it to a variable" in caught.value.hint
    assert caught.value.span is not None


def test_an_expression_is_no_place():
    @qp.kernel
    def k(x: int) -> int:
        a = x
        add_to(a + 1, 2)
        return a

    with pytest.raises(qp.KernelTypeError, match="add_to changes its template parameter 'a', which is not a reference"):
        k(1)


def test_a_component_chosen_at_run_time_is_refused():
    @qp.kernel
    def k(i: int) -> float:
        v = qp.Vector([1.0, 2.0])
        add_to(v[i], 2)
        return v[0]

    with pytest.raises(qp.KernelTypeError, match="a component chosen at run time cannot be passed by reference"):
        k(1)


def test_a_parameter_with_a_type_is_a_copy():
    @qp.func
    def change(a: int) -> int:
        a += 1
        return a

    @qp.kernel
    def k(x: int) -> int:
        a = x
        return change(a) * 10 + a

    assert k(1) == 21


def test_real_functions_and_recursion():
    @qp.real_func
    def square(x: float) -> float:
        return x * x

    @qp.real_func
    def endless(x: float) -> float:
        return endless(x)

    @qp.kernel
    def k(x: float) -> float:
        return square(x) + 1.0

    @qp.kernel
    def bad(x: float) -> float:
        return endless(x)

    assert k(3.0) == 10.0
    with pytest.raises(qp.KernelSyntaxError, match="endless calls itself"):
        bad(1.0)


def test_pyfuncs_run_on_both_sides():
    @qp.pyfunc
    def half_sine(x: float) -> float:
        return qp.sin(x) * 0.5

    @qp.kernel
    def k(x: float) -> float:
        return half_sine(x)

    assert k(1.0) == pytest.approx(half_sine(1.0))
    with pytest.raises(qp.KernelSourceError, match="is not a Python function"):
        qp.pyfunc(3)
