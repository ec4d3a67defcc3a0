"""Hints about fields and their components, as Taichi's programs give them: they have no effect."""

import pytest

import quadpy as qp
import quadpy.compat.taichi as ti


def test_hints_about_components_of_a_field():
    ti.init(arch=ti.cpu)
    v, m = ti.Vector.field(2, ti.f32, shape=4), ti.field(ti.f32, shape=4)

    @ti.kernel
    def k(x: ti.f32):
        for d in ti.static(range(2)):
            ti.block_local(v.get_scalar_field(d))
        ti.cache_read_only(m, v.get_scalar_field(0))
        for i in m:
            m[i] += x
            v[i] += m[i]

    k(2.0)
    assert m.to_numpy().tolist() == [2] * 4
    assert v.to_numpy().tolist() == [[2, 2]] * 4


def test_hints_about_components_of_a_number_are_errors():
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32):
        ti.block_local(x.get_scalar_field(0))

    with pytest.raises(qp.KernelTypeError, match="a hint takes arrays and fields"):
        k(2.0)
