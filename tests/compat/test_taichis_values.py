"""Results that Taichi 1.7.4 gives and quadpy refuses: casts of literals, and classes of values."""

import pytest

import quadpy as qp
import quadpy.compat.taichi as ti

somewhere = ti.Vector([1.0, 2.0])


@pytest.fixture(params=["compiled", "python"], autouse=True)
def mode(request):
    ti.init(arch=qp.python if request.param == "python" else ti.cpu)


def test_casts_of_literals_wrap():
    @ti.kernel
    def k() -> (ti.u8, ti.u32, ti.i8, ti.u8):
        return ti.cast(300, ti.u8), ti.cast(-1, ti.u32), ti.cast(200, ti.i8), ti.cast(3.7, ti.u8)

    assert k() == (44, 2**32 - 1, -56, 3)


def test_literals_beyond_the_default_type_and_calls_of_types_stay_errors():
    @ti.kernel
    def wide() -> ti.u8:
        return ti.cast(5_000_000_000, ti.u8)

    @ti.kernel
    def called() -> ti.i32:
        return ti.u8(300)

    @qp.kernel
    def own() -> qp.i32:
        return qp.cast(300, qp.u8)

    for k in (wide, called, own):
        with pytest.raises(qp.KernelValueError, match="does not fit"):
            k()


def test_values_of_the_run_time_have_no_class():
    @ti.func
    def is_matrix(v):
        r = 0
        if ti.static(isinstance(v, ti.Matrix)):
            r = 1
        return r

    @ti.kernel
    def k(x: ti.f32) -> ti.i32:
        m = ti.Matrix([[x, 2.0], [3.0, 4.0]])
        return is_matrix(m) + is_matrix(x) * 10 + is_matrix(ti.Vector([x, x])) * 100 + is_matrix(somewhere) * 1000

    assert k(1.0) == 0
