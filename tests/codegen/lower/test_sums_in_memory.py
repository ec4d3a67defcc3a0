"""Sums of f32 by memory units that flush subnormal numbers: only where that changes no bit."""

from __future__ import annotations

import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

F32, F64, I32 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.f32, qp.f64, qp.i32))


@qp.kernel
def scatter(x: F32, v: F32, at: I32):
    for i in v:
        x[at[i]] += v[i]


@qp.kernel
def scatter_wide(x: F64, v: F64, at: I32):
    for i in v:
        x[at[i]] += v[i]


@qp.kernel
def own(x: F32, v: F32):
    for i in v:
        x[i] -= v[i]


@qp.kernel
def nothing(x: F32, at: I32):
    for i in at:
        qp.atomic_sub(x[at[i]], 0.0)


@qp.kernel
def one(x: F32, at: I32):
    for i in at:
        x[at[i]] += 1.0


@qp.kernel
def shared(x: F32):
    qp.loop_config(block_dim=64)
    for i in x:
        tile = qp.simt.block.SharedArray(64, qp.f32)
        tile[i % 64] = 0.0
        qp.simt.block.sync()
        tile[i * i % 64] += x[i]
        qp.simt.block.sync()
        x[i] = tile[i % 64]


NATIVE = {"sm_90": "atom.global.add.f32", "gfx90a": "global_atomic_add_f32", "gfx942": "global_atomic_add_f32",
          "gfx1100": "global_atomic_add_f32", "gfx1201": "global_atomic_add_f32"}  # fmt: skip
FLUSHES = {"sm_90", "gfx90a", "gfx1100"}


@pytest.fixture
def fast_math():
    qp.init(arch=qp.cpu, fast_math=True)
    yield
    qp.init(arch=qp.cpu)


def uses(kernel, target):
    """Whether the code has the native sum, and an exchange."""
    asm = compile_with_asm(kernel, parse_target(target), {}).asm
    return NATIVE[target] in asm, "cas" in asm or "cmpswap" in asm


@pytest.mark.parametrize("target", NATIVE)
def test_small_numbers_are_exchanged_where_the_hardware_flushes(target):
    assert uses(scatter, target) == (True, target in FLUSHES)


@pytest.mark.parametrize("target", NATIVE)
def test_fast_math_uses_the_hardware_alone(target, fast_math):
    assert uses(scatter, target) == (True, False)


@pytest.mark.parametrize("target", NATIVE)
def test_a_constant_decides_when_the_kernel_is_compiled(target):
    assert uses(one, target) == (True, False)
    assert uses(nothing, target) == (target not in FLUSHES, False)


@pytest.mark.parametrize("target", NATIVE)
def test_own_elements_are_plain(target):
    assert uses(own, target) == (False, False)


@pytest.mark.parametrize("target", ["sm_90", "gfx90a", "gfx942"])
def test_other_sums_are_native(target):
    """Of f64, and in shared memory."""
    assert uses(scatter_wide, target) == (False, False)
    assert uses(shared, target) == (False, False)
