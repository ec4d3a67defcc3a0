"""A name of the module that a kernel also assigns: until then it means the module's, as in Taichi."""
# ruff: noqa: F821, F823, RET504 - names that Python would refuse to read are what is tested

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti

F = ti.field(ti.f32, shape=4)
G = ti.field(ti.f32, shape=4)
scale = 10


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request):
    ti.init(
        **{"compiled": {"arch": ti.cpu}, "checked": {"arch": ti.cpu, "debug": True}, "python": {"arch": qp.python}}[
            request.param
        ]
    )
    F.from_numpy(np.array([0, 1, 2, 3], np.float32))


def test_in_a_parallel_loop():
    @ti.kernel
    def kernel():
        for I in ti.grouped(F):
            F = ti.min(1.0, F[I])
            F += 1
            G[I] = 2 * F
        for i in F:
            F[i] = scale

    kernel()
    assert G.to_numpy().tolist() == [2, 4, 4, 4]
    assert F.to_numpy().tolist() == [10] * 4


def test_in_loops_branches_and_functions():
    @ti.func
    def outer(i):
        if i > 1:
            F = 7.0
            G[i] += F
        F = F[i]
        return F

    @ti.kernel
    def kernel():
        for i in range(4):
            G[i] = 0
            for k in range(2):
                F = F[i] + k
                G[i] += F
            if i == 3:
                scale = 100
                G[i] += scale
            G[i] += scale
            while G[i] < 12:
                F = F[i]
                G[i] += 1 + F
            G[i] += 1000 * outer(i)

    kernel()
    assert G.to_numpy().tolist() == [12, 1013, 2000 + 5 + 10 + 7, 3000 + 7 + 110 + 7]


def test_in_a_class_with_an_array():
    @ti.data_oriented
    class Solver:
        @ti.kernel
        def step(self, x: ti.types.ndarray()) -> ti.f32:
            total = 0.0
            for i in range(4):
                scale = scale * x[i]
                ti.atomic_add(total, scale)
            return total

    assert Solver().step(np.array([1, 2, 3, 4], np.float32)) == 100


def test_what_has_no_value_anywhere_is_an_error():
    @ti.kernel
    def kernel():
        for i in range(4):
            H = H + i
            G[i] = H

    with pytest.raises(qp.KernelNameError, match="'H' is not defined here"):
        kernel()


def test_quadpy_follows_python():
    @qp.kernel
    def kernel():
        for i in range(4):
            scale = scale + i
            G[i] = scale

    with pytest.raises(qp.KernelNameError, match="'scale' is not defined here"):
        kernel()
