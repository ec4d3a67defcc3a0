"""``and`` and ``or`` of numbers: one of the operands, as in Taichi and in Python; in quadpy, whether they hold."""

import pytest

import quadpy as qp
import quadpy.compat.taichi as ti


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request):
    ti.init(arch=qp.python if request.param == "python" else ti.cpu, debug=request.param == "checked")


@pytest.mark.parametrize("a", [0, 5])
@pytest.mark.parametrize("b", [0, 3])
def test_they_give_an_operand(a, b):
    @ti.kernel
    def k(a: int, b: int, c: float) -> (int, int, float, int, int):
        both = a > 2 and b > 2
        return a and b, a or b, a or c, a and b and 7, both

    assert k(a, b, 1.5) == (a and b, a or b, a or 1.5, a and b and 7, a > 2 and b > 2)


def test_the_right_operand_is_evaluated_only_if_needed():
    calls = ti.field(ti.i32, ())

    @ti.func
    def counted(x):
        calls[None] += 1
        return x

    @ti.kernel
    def k(a: int) -> int:
        s = 0
        if a and counted(2):
            s += 1
        if a or counted(0):
            s += 10
        return s + 100 * (counted(a) or 4)

    assert (k(0), calls[None]) == (400, 2)
    assert (k(1), calls[None]) == (111, 4)


def test_in_quadpy_they_are_conditions():
    @qp.kernel
    def k(a: int, b: int) -> (int, int):
        return a and b, a or b

    assert k(5, 3) == (1, 1)


@pytest.mark.parametrize("a", [0, 5])
@pytest.mark.parametrize("b", [0, 3])
@pytest.mark.parametrize("c", [0, 2])
def test_operands_inside_others(a, b, c):
    @ti.func
    def some(x):
        return x and (x - 3 or 4)

    @ti.kernel
    def k(a: int, b: int, c: int) -> (int, int, int, int, int):
        return a and (b and c), a or (b and c), (a or b) and (some(c) or a), a and (b + (b or c)), some(a) and some(b)

    def known(x):
        return x and (x - 3 or 4)

    expected = (
        a and (b and c),
        a or (b and c),
        (a or b) and (known(c) or a),
        a and (b + (b or c)),
        known(a) and known(b),
    )
    assert k(a, b, c) == expected
