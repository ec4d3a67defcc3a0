"""The hardware's approximations differ between targets; what the library makes of them does not.

Every seed that a target may give is tried for every significand, so this is a proof for f32.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm
from quadpy.mathlib.roots import refined_root

WORST = 2.0**-22.9
"""The relative error that NVIDIA documents for its approximate inverse square root; AMD's is an ulp, 2**-23."""
OFFSETS = qp.types.ndarray(dtype=qp.i32, ndim=1)
root = refined_root.f32


@qp.kernel
def wrong_roots(offsets: OFFSETS, tried: OFFSETS) -> qp.i32:
    """Of all significands in two binades, how many roots are wrong; ``tried`` counts the seeds for each offset."""
    wrong = 0
    for i in range(1 << 24):
        x = qp.bit_cast(qp.i32(0x3F800000) + i, qp.f32)
        exact = 1.0 / qp.sqrt(qp.f64(x))
        for k in range(offsets.shape[0]):
            seed = qp.bit_cast(qp.bit_cast(qp.f32(exact), qp.i32) + offsets[k], qp.f32)
            if abs(qp.f64(seed) - exact) <= WORST * exact:
                if i & 0xFFF == 0:
                    tried[k] += 1
                if root(x, seed) != qp.f32(exact):
                    wrong += 1
    return wrong


@pytest.fixture(scope="module", autouse=True)
def _cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def test_roots_are_correctly_rounded_whatever_the_seed():
    offsets = np.arange(-3, 4, dtype=np.int32)
    tried = np.zeros_like(offsets)
    assert wrong_roots(offsets, tried) == 0
    assert (tried[1:6] > 0).all()  # two units in the last place are within the bound where the root is near 1


def test_a_seed_out_of_bounds_would_be_noticed():
    """The trial can fail: of a seed that is 400,000 units off, a root is wrong."""
    x = np.full(1, 1.7, np.float32)
    far = np.float32(1 / np.sqrt(np.float64(x[0]))).view(np.int32) + np.int32(400_000)
    assert one_root(float(x[0]), float(far.view(np.float32))) != np.float32(1 / np.sqrt(np.float64(x[0])))


@qp.kernel
def one_root(x: qp.f32, seed: qp.f32) -> qp.f32:
    return root(x, seed)


def test_cpus_do_not_scale_subnormal_numbers_and_get_the_same_bits():
    """``scaled_root`` is what GPUs compute, by the library's own function."""
    for kind, word in ((np.float32, np.uint32), (np.float64, np.uint64)):
        rng = np.random.default_rng(1)
        fraction = np.finfo(kind).nmant
        bits = rng.integers(1, 1 << fraction, 20_000, dtype=word) >> rng.integers(0, fraction, 20_000).astype(word)
        given = np.r_[bits, np.arange(300, dtype=word), np.uint64((3 << fraction) - 1).astype(word)].view(kind)
        given = np.r_[given, -given[:40], [0.0, -0.0, np.inf, -np.inf, np.nan]].astype(kind)
        plain, scaled = given.copy(), given.copy()
        (roots_f32 if kind == np.float32 else roots_f64)(plain, scaled)
        same = plain.view(word) == scaled.view(word)
        assert (same | (np.isnan(plain) & np.isnan(scaled))).all()
        if kind == np.float32:
            with np.errstate(divide="ignore", invalid="ignore"):
                exact = (1.0 / np.sqrt(given.astype(np.float64))).astype(np.float32)
            assert ((plain == exact) | (np.isnan(plain) & np.isnan(exact))).all()
    code = compile_with_asm(inverse_roots, parse_target("cpu:x86-64-v3"), {}).asm
    assert "sqrtps" in code
    assert "cmpltps" not in code


@qp.kernel
def wrong_on_the_cpu(first: qp.u32, count: qp.i32, step: qp.u32) -> qp.i32:
    wrong = 0
    for k in range(count):
        x = qp.bit_cast(first + step * qp.u32(k), qp.f32)
        if qp.rsqrt(x) != qp.f32(1.0 / qp.sqrt(qp.f64(x))):
            wrong += 1
    return wrong


def test_roots_of_the_cpu_are_correctly_rounded():
    """From its own square root and quotient, in fewer steps: all significands of two binades, and some of all others."""
    assert wrong_on_the_cpu(0x3F800000, 1 << 24, 1) == 0
    assert wrong_on_the_cpu(1, 0x7F800000 // 509, 509) == 0
    code = compile_with_asm(inverse_roots, parse_target("cpu:x86-64-v3"), {}).asm
    fused, roots = (len(re.findall(rf"^\s+v{name}", code, re.MULTILINE)) for name in ("fn?m(?:add|sub)", "sqrt"))
    assert fused == 4 * roots > 0


@qp.func
def scaled_root(x, least, lift, back):
    tiny = x < least
    root = qp.rsqrt(qp.select(tiny, x * lift, x))
    return qp.select(tiny, root * back, root)


@qp.kernel
def roots_f32(plain: qp.types.ndarray(dtype=qp.f32, ndim=1), scaled: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in plain:
        plain[i] = qp.rsqrt(plain[i])
        scaled[i] = scaled_root(scaled[i], qp.f32(2.0**-126), qp.f32(2.0**24), qp.f32(2.0**12))


@qp.kernel
def roots_f64(plain: qp.types.ndarray(dtype=qp.f64, ndim=1), scaled: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in plain:
        plain[i] = qp.rsqrt(plain[i])
        scaled[i] = scaled_root(scaled[i], qp.f64(2.0**-1022), qp.f64(2.0**54), qp.f64(2.0**27))


@pytest.mark.parametrize(
    ("target", "instruction"), [("sm_90", "rsqrt.approx"), ("gfx942", "v_rsq_f32"), ("gfx1100", "v_rsq_f32")]
)
def test_seeds_are_instructions_of_gpus(target, instruction):
    assert instruction in compile_with_asm(inverse_roots, parse_target(target), {}).asm


@qp.kernel
def inverse_roots(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in x:
        x[i] = qp.rsqrt(x[i])
