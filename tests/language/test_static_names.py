"""Names of compile-time values: what ``static`` gave, a name keeps, and passes on."""

import numpy as np
import pytest

import quadpy as qp

out = qp.field(qp.i32, 4)
ON, OFF = True, False


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


@qp.func
def write_if(i, value, field: qp.template(), cond: qp.template()):
    if qp.static(cond):
        field[i] = value
    return value


@qp.func
def passed_on(i, value, field: qp.template(), cond: qp.Template):
    write_if(i, value, field, not cond)


@qp.real_func
def real(i: qp.i32, cond: qp.template()) -> qp.i32:
    if qp.static(cond):
        i += 100
    return i


def test_a_static_value_stays_static_in_template_parameters():
    @qp.kernel
    def kernel(x: qp.types.ndarray(qp.i32, 1)):
        for i in range(4):
            back = qp.static(OFF)
            write_if(i, 7, x, not back)
            write_if(i, 9, x, back)
            passed_on(i, 11, out, cond=back)
            passed_on(i, 13, out, back == ON)
            passed_on(i, 15, out, qp.static(ON))

    x = np.zeros(4, np.int32)
    kernel(x)
    assert x.tolist() == [7] * 4
    assert out.to_numpy().tolist() == [13] * 4


def test_at_the_top_level_in_branches_and_in_loops():
    @qp.kernel
    def kernel():
        first, second = qp.static(2, 3)
        for i in out:
            out[i] = 0
            if i > 1:
                K = qp.static(first * 2)
                for k in qp.static(range(K)):
                    out[i] += k
            else:
                K = qp.static(second)
                for k in qp.static(range(K)):
                    out[i] += k
            for _ in range(2):
                for k in qp.static(range(2)):
                    K = qp.static(k + 1)
                    v = qp.Vector([qp.static(K) for _ in range(K)])
                    out[i] += v.sum()

    kernel()
    assert out.to_numpy().tolist() == [13, 13, 16, 16]


def test_in_a_graph_and_in_real_functions():
    @qp.kernel(graph=True)
    def kernel(rounds: qp.types.ndarray(qp.i32, 0)):
        while qp.graph.do_while(rounds):
            on = qp.static(ON)
            for i in out:
                out[i] = real(i, on) + real(i, not on)
            rounds[None] -= 1

    kernel(np.array(2, np.int32))
    assert out.to_numpy().tolist() == [100, 102, 104, 106]


class Solver:
    def __init__(self, flag):
        self.flag = flag

    @qp.func
    def write(self, i, on: qp.template()):
        write_if(i, 5, out, on)

    @qp.kernel
    def step(self):
        for i in out:
            flag = qp.static(self.flag)
            self.write(i, flag)


def test_in_classes():
    out.fill(0)
    solver = qp.data_oriented(Solver)(False)
    solver.step()
    assert out[1] == 0
    solver.flag = True
    solver.step()
    assert out[1] == 5


def test_a_literal_keeps_its_value():
    @qp.kernel
    def kernel() -> (qp.f64, qp.f32):
        tenth = qp.static(0.1)
        return qp.f64(tenth), tenth

    assert kernel()[0] == 0.1


def test_a_name_that_is_assigned_otherwise_too_is_a_variable():
    @qp.func
    def count(x):
        x = qp.static(3)
        x += 1
        return x

    @qp.kernel
    def kernel(n: qp.i32) -> qp.i32:
        total = qp.static(2)
        m = qp.static(1)
        qp.atomic_add(m, 5)
        for k in range(n):
            total += k
        if n > 3:
            total = qp.static(100)
        return total + m + count(n)

    assert kernel(3) == 2 + 3 + 6 + 4
    assert kernel(4) == 100 + 6 + 4


def test_a_name_of_a_branch_ends_with_it():
    @qp.kernel
    def kernel(n: qp.i32) -> qp.i32:
        k = qp.static(1)
        if n > 3:
            m = qp.static(2)
            k = m
        return m + k

    with pytest.raises(qp.KernelNameError, match="'m' is not defined here"):
        kernel(3)
