"""What LLVM writes for NVIDIA's compiler, changed where ptxas misreads it."""

from __future__ import annotations

import re

import pytest

import quadpy as qp
from quadpy.codegen.ptx_repairs import repaired
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

FLOATS = {qp.f64: (qp.u64, [qp.u32, qp.u16, qp.u8]), qp.f32: (qp.u32, [qp.u16, qp.u8]), qp.f16: (qp.u16, [qp.u8])}
PAIRS = [(t, bits, narrow) for t, (bits, narrows) in FLOATS.items() for narrow in narrows]


@pytest.mark.parametrize(("t", "bits", "narrow"), PAIRS, ids=lambda t: t.name)
def test_no_store_of_low_bits_names_a_register_of_a_float(t, bits, narrow):
    @qp.kernel
    def low(x: qp.types.ndarray(), y: qp.types.ndarray()):
        for i in x:
            y[i] = qp.bit_cast(x[i] + x[i], bits)

    given = {"x": qp.types.ndarray(dtype=t, ndim=1), "y": qp.types.ndarray(dtype=narrow, ndim=1)}
    ptx = compile_with_asm(low, parse_target("sm_90"), given).image.decode()
    floats = set(re.findall(r"add\S*\.f\d\d\S* +\t(%\w+),", ptx))
    stored = set(re.findall(rf"st\S*\.b{narrow.bits} \t\[[^\]]*\], (%\w+);", ptx))
    assert floats
    assert stored
    assert not floats & stored
    assert set(re.findall(r"mov\.b\d\d \t%low0, (%\w+);", ptx)) <= floats


def test_registers_of_a_store_of_several_values_are_moved_one_by_one():
    ptx = "\tadd.rn.f32 \t%r1, %r2, %r3;\n\tst.global.v4.b8 \t[%rd1], {%r1, %rs4, %r1, %r9};\n"
    assert repaired(ptx).splitlines()[1:] == [
        "\t{",
        "\t.reg .b32 %low0;",
        "\tmov.b32 \t%low0, %r1;",
        "\tst.global.v4.b8 \t[%rd1], {%low0, %rs4, %low0, %r9};",
        "\t}",
    ]


@pytest.mark.parametrize(
    "ptx",
    [
        "\tadd.rn.f32 \t%r1, %r2, %r3;\n\tst.global.b32 \t[%rd1], %r1;\n",  # all of it
        "\tadd.s32 \t%r1, %r2, %r3;\n\tst.global.b8 \t[%rd1], %r1;\n",  # of an integer
        "\tadd.rn.f32 \t%r11, %r2, %r3;\n\tst.global.b8 \t[%rd1], %r1;\n",  # another register
    ],
)
def test_other_stores_stay(ptx):
    assert repaired(ptx) == ptx


@pytest.mark.parametrize("t", [qp.f16, qp.bf16], ids=repr)
def test_a_choice_of_two_constants_is_not_converted(t):
    """ptxas 13.0 would take the first conversion for the second."""

    @qp.kernel
    def twice(x: qp.types.ndarray(dtype=t, ndim=1)):
        for i in x:
            v = x[i]
            for _ in range(2):
                v = t(qp.select(qp.u1(v), qp.f64(0.0), qp.f64(-0.5)))
            x[i] = v

    ptx = twice.compile("sm_90").image.decode()
    chosen = set(re.findall(r"selp\.f64 \t(%rd\d+),", ptx))
    assert chosen
    assert not chosen & set(re.findall(r"cvt\.rn\.f32\.f64 \t%r\d+, (%rd\d+);", ptx))
    assert "selp.f32 \t" in ptx


def test_what_is_written_twice_stays_converted():
    setp = "\tsetp.ne.s32 \t%p2, %r1, %r2;\n"
    once = setp + "\tselp.f64 \t%rd4, 0d4000000000000000, 0dFFF0000000000000, %p2;\n\tcvt.rn.f32.f64 \t%r7, %rd4;\n"
    assert repaired(once).endswith("\tselp.f32 \t%r7, 0f40000000, 0fFF800000, %p2;\n")
    for again in ("\tmov.b64 \t%rd4, %rd5;\n", "\tsetp.eq.s32 \t%p2, %r1, %r2;\n"):
        assert repaired(once + again) == once + again
    large = once.replace("4000000000000000", "7FEFFFFFFFFFFFFF")
    assert "0f7F800000" in repaired(large)
