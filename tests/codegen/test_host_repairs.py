"""Optimised modules whose code LLVM would get wrong, or slow, on x86 with AVX-512."""

from __future__ import annotations

import pytest

from quadpy.codegen.host import BASELINES, HOST_TRIPLE, compile_host, compile_host_asm, host_header

HERE = [name for name in BASELINES if name.startswith("x86") == HOST_TRIPLE.startswith("x86_64")]
BITS = {
    "extended": "%z = zext i1 %c to i16",
    "inverted": "%n = xor i1 %c, true\n  %z = zext i1 %n to i16",
    "cut off": "%w = zext i1 %c to i32\n  %z = trunc i32 %w to i16",
    "one bit": "%s = sext i1 %c to i16\n  %z = and i16 %s, 1",
    "frozen": "%w = zext i1 %c to i16\n  %z = freeze i16 %w",
}


@pytest.mark.parametrize("cpu", HERE)
@pytest.mark.parametrize("bits", BITS.values(), ids=BITS)
@pytest.mark.parametrize(
    "comparison", ["fcmp une double %x, 0.0", "fcmp olt float %y, 1.0", "fcmp oeq half %h, 0xH0001"]
)
def test_the_bits_of_a_half_may_be_a_comparison(comparison, bits, cpu):
    """In this process: LLVM ends it where it cannot select an instruction."""
    text = f"""
define half @f(double %x, float %y, half %h) {{
  %c = {comparison}
  {bits}
  %b = bitcast i16 %z to half
  ret half %b
}}
"""
    assert compile_host(host_header() + text, cpu)
    assert compile_host(host_header() + text, cpu, opt=0)


@pytest.mark.skipif(not HOST_TRIPLE.startswith("x86_64"), reason="for x86")
@pytest.mark.parametrize(("t", "name"), [("float", "f32"), ("double", "f64"), ("<4 x float>", "v4f32")])
@pytest.mark.parametrize("flags", ["", "nsz "])
@pytest.mark.parametrize("extreme", ["minimumnum", "maximumnum"])
def test_extremes_compare_without_general_registers(t, name, flags, extreme):
    """A number went through general registers to the mask registers to be ordered by its sign."""
    text = f"""
declare {t} @llvm.{extreme}.{name}({t}, {t})

define {t} @f({t} %x, {t} %y) {{
  %z = call {flags}{t} @llvm.{extreme}.{name}({t} %x, {t} %y)
  ret {t} %z
}}
"""
    assembly = compile_host_asm(host_header() + text, "x86-64-v4")
    body = assembly[assembly.index("f:") : assembly.index("retq")]
    assert "vmin" in body or "vmax" in body
    assert not {"kmovd", "kmovq", "vmovd", "vmovq", "vpmovd2m"} & set(body.split())
