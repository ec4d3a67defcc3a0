"""Integers that become f16: LLVM must not lose the conversion, in which a large one becomes infinite."""

from __future__ import annotations

import re

import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

I32, I64, F32 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.i32, qp.i64, qp.f32))


@qp.kernel
def straight(x: I32, y: F32):
    for i in x:
        y[i] = qp.f32(qp.f16(x[i] << 24))


@qp.kernel
def unsigned_by_f32(x: I32, y: F32):
    for i in x:
        y[i] = qp.f32(qp.f16(qp.f32(qp.u32(x[i]) << 24)))


@qp.kernel
def wide_by_f64(x: I64, y: F32):
    for i in x:
        y[i] = qp.f32(qp.f16(qp.f64(x[i] << 40)))


CONVERSION = {"gfx942": "v_cvt_f16_f32", "gfx1100": "v_cvt_f16_f32", "sm_90": r"cvt\.rn\.f16\.f32"}


@pytest.mark.parametrize("target", CONVERSION)
@pytest.mark.parametrize("kernel", [straight, unsigned_by_f32, wide_by_f64], ids=lambda k: k.__name__)
def test_the_conversion_to_half_stays(kernel, target):
    asm = compile_with_asm(kernel, parse_target(target), {}).asm
    assert re.search(CONVERSION[target], asm)


@qp.kernel
def product(x: F32, y: F32, n: qp.f32, z: qp.types.ndarray(dtype=qp.f16, ndim=1)):
    for i in x:
        z[i] = x[i] * y[i]
        z[i + 1] = n * n


@pytest.mark.parametrize(
    "target", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1150", "gfx1201", "gfx1250"]
)
def test_products_are_not_fused_with_their_rounding_to_half(target):
    """LLVM would add 0, which loses the sign of a -0."""
    asm = compile_with_asm(product, parse_target(target), {}).asm
    assert "v_cvt_f16_f32" in asm
    assert not re.search("(fma|mad)_mix", asm)


@qp.kernel
def several_at_once(x: I32, y: qp.types.ndarray(dtype=qp.f16, ndim=1)):
    """LLVM makes vectors of two, four and eight of these."""
    for _ in range(1):
        for k in qp.static(range(14)):
            y[k] = qp.f16(x[k]) + qp.f16(1.0)


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100", "sm_90"])
def test_conversions_that_become_vectors(target):
    assert compile_with_asm(several_at_once, parse_target(target), {}).image
