"""What LLVM writes for NVIDIA's compiler, changed where ptxas misreads it."""

from __future__ import annotations

import re

import pytest

import quadpy as qp
from quadpy.codegen.ptx_repairs import repaired
from quadpy.jit.offline import compile_with_asm
from quadpy.target import parse_target

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
