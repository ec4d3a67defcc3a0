"""``range`` with floats, which it cuts, as in Taichi; quadpy's own kernels refuse them."""

import pytest

import quadpy as qp
import quadpy.compat.quadrants as qd
import quadpy.compat.taichi as ti

R = ti.field(ti.i32, shape=16)


@pytest.fixture(params=["compiled", "checked", "python"])
def mode(request):
    chosen = {"compiled": {"arch": ti.cpu}, "checked": {"arch": ti.cpu, "debug": True}, "python": {"arch": qp.python}}
    ti.init(**chosen[request.param])
    R.fill(0)


def fill(n: ti.f32):
    for i in range(n / 2):
        R[i] += 1
    for _ in range(1):
        for i in range(ti.floor(n), n * 1.5 + 0.9):
            R[i] += 2
        for i in range(13.9, 9.5, -2.0):
            R[i] += 4


@pytest.mark.parametrize("kernel", [ti.kernel, qd.kernel])
def test_floats_are_cut(kernel, mode):
    kernel(fill)(7.0)
    want = [0] * 16
    for start, stop, step, value in ((0, 3, 1, 1), (7, 11, 1, 2), (13, 9, -2, 4)):
        for i in range(start, stop, step):
            want[i] += value
    assert R.to_numpy().tolist() == want


def test_in_a_function(mode):
    @ti.func
    def count(n):
        found = 0
        for _ in range(n * 0.5):
            found += 1
        return found

    @ti.kernel
    def run() -> ti.i32:
        return count(9)

    assert run() == 4


def test_quadpys_own_kernels_refuse_them():
    qp.init(arch=qp.cpu)
    with pytest.raises(qp.KernelTypeError, match="the bounds of a loop must be integers"):
        qp.kernel(fill)(7.0)
