"""Compiling for the host, and the helpers that a plain x86-64 needs, against numpy and Python's integers.

Unless a test says otherwise, code is for ``x86-64`` without features: conversions are calls, as on the oldest CPU.
"""

from __future__ import annotations

import ctypes
import functools
import random
import re

import numpy as np
import pytest

from quadpy.codegen.host import (
    BASELINES,
    compile_host,
    compile_host_asm,
    host_header,
    host_machine,
    host_spec_string,
    resolve_cpu,
)
from quadpy.errors import CodegenError, UnknownTargetError
from quadpy.runtime.cpu.compiler_rt import HELPERS
from quadpy.runtime.cpu.elf_symbols import read_symbols
from quadpy.runtime.cpu.loader import load_object

pytestmark = pytest.mark.skipif(not host_spec_string().count("x86_64"), reason="helpers of x86-64")

WIDTH = {"half": 2, "bfloat": 2, "float": 4, "double": 8}
BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


@functools.cache
def converter(op: str, src: str, dst: str, cpu: str = "x86-64"):
    """A function from an array of ``src``'s bits to an array of ``dst``'s, one conversion an element."""
    image = compile_host(
        host_header()
        + f"""
define void @convert(ptr %in, ptr %out, i64 %n) {{
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %from = getelementptr {src}, ptr %in, i64 %i
  %x = load {src}, ptr %from
  %y = {op} {src} %x to {dst}
  %to = getelementptr {dst}, ptr %out, i64 %i
  store {dst} %y, ptr %to
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %next, label %out.
out.:
  ret void
}}
""",
        cpu,
    )
    assert set(read_symbols(image).undefined) <= HELPERS
    code = load_object(image)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code.address("convert"))

    def convert(bits: np.ndarray) -> np.ndarray:
        assert bits.dtype == BITS[WIDTH[src]]
        result = np.empty(len(bits), BITS[WIDTH[dst]])
        call(bits.ctypes.data, result.ctypes.data, len(bits))
        return result

    convert.code = code  # type: ignore[attr-defined]
    return convert


def runs(cpu: str) -> bool:
    _, features = resolve_cpu()
    return cpu != "x86-64-v3" or all(f"+{need}" in features.split(",") for need in ("avx2", "f16c", "fma", "bmi2"))


def finite_values(dst: str) -> np.ndarray:
    """All finite numbers of a 16-bit format from 0 up, and the one that would follow: index = bits."""
    if dst == "half":
        values = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    else:
        values = (np.arange(0x7F80, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.append(values, 2 * values[-1] - values[-2])


def rounded(x: np.ndarray, dst: str) -> np.ndarray:
    """The bits of the nearest number of ``dst`` (of two, the even one), by comparing with all of them."""
    values = finite_values(dst)
    size = np.minimum(np.abs(x), values[-1])
    low = np.minimum(np.searchsorted(values, size, side="right") - 1, len(values) - 2)
    middle = (values[low] + values[low + 1]) / 2
    up = (size > middle) | ((size == middle) & (low % 2 == 1))
    return (low + up + (np.signbit(x).astype(np.int64) << 15)).astype(np.uint16)


def critical_points(src: str, dst: str) -> np.ndarray:
    """Each number of ``dst``, each middle of two, and their neighbours in ``src``; both signs."""
    values = finite_values(dst)
    exact = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    with np.errstate(over="ignore"):
        x = exact.astype(np.float32 if src == "float" else np.float64)
        around = np.concatenate([x, np.nextafter(x, x.dtype.type(0)), np.nextafter(x, x.dtype.type(np.inf))])
    return np.concatenate([around, -around])


@pytest.mark.parametrize("dst", ["half", "bfloat"])
@pytest.mark.parametrize("src", ["float", "double"])
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3", "native"])
def test_truncation_rounds_to_nearest_even(src: str, dst: str, cpu: str) -> None:
    """For ``native``, too: AVX-512's instruction would flush subnormal bfloats."""
    if not runs(cpu):
        pytest.skip(f"this CPU does not run code for {cpu}")
    x = critical_points(src, dst)
    assert (converter("fptrunc", src, dst, cpu)(x.view(BITS[WIDTH[src]])) == rounded(x.astype(np.float64), dst)).all()


@pytest.mark.parametrize("dst", ["half", "bfloat"])
@pytest.mark.parametrize("src", ["float", "double"])
def test_truncation_of_all_sorts_of_bits(src: str, dst: str) -> None:
    if src == "float":
        bits = np.arange(0, 1 << 32, 1021, dtype=np.uint64).astype(np.uint32)
        bits = bits[~np.isnan(bits.view(np.float32))]
        x = bits.view(np.float32).astype(np.float64)
    else:
        bits = np.random.default_rng(5).integers(0, 1 << 64, 1 << 21, dtype=np.uint64)
        near_one = (np.uint64(1023 - 140) << np.uint64(52)) + bits % np.uint64(280 << 52)
        bits = np.concatenate([bits, near_one])
        bits = bits[~np.isnan(bits.view(np.float64))]
        x = bits.view(np.float64)
    assert (converter("fptrunc", src, dst)(bits) == rounded(x, dst)).all()


@pytest.mark.parametrize(("dst", "infinity"), [("half", 0x7C00), ("bfloat", 0x7F80)])
@pytest.mark.parametrize("src", ["float", "double"])
def test_nans_stay_nans_with_their_sign(src: str, dst: str, infinity: int) -> None:
    kind = np.float32 if src == "float" else np.float64
    bits = BITS[WIDTH[src]]
    inf = int(np.array(np.inf, kind).view(bits))
    top = 1 << (8 * WIDTH[src] - 1)
    nans = np.array([inf + 1, inf + 12345, top - 1, top + inf + 1, top + top - 1], bits)
    result = converter("fptrunc", src, dst)(nans)
    quiet = (infinity >> 1 | infinity) & 0x7FFF
    assert ((result & quiet) == quiet).all()
    assert ((result >> 15) == (nans >= top)).all()


def test_every_half_becomes_its_float() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    result = converter("fpext", "half", "float")(halves)
    with np.errstate(invalid="ignore"):
        expected = halves.view(np.float16).astype(np.float32)
    number = ~np.isnan(expected)
    assert (result[number] == expected.view(np.uint32)[number]).all()
    assert np.isnan(result.view(np.float32)[~number]).all()


@pytest.mark.parametrize("dst", ["float", "double"])
def test_every_bfloat_becomes_its_value(dst: str) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    result = converter("fpext", "bfloat", dst)(bits).view(np.float32 if dst == "float" else np.float64)
    with np.errstate(invalid="ignore"):
        expected = (bits.astype(np.uint32) << 16).view(np.float32).astype(result.dtype)
    assert np.array_equal(result, expected, equal_nan=True)


@pytest.mark.parametrize("op", ["udiv", "urem", "sdiv", "srem"])
def test_128_bit_division(op: str) -> None:
    divide = load_object(
        compile_host(
            host_header()
            + f"""
define void @divide(ptr %a, ptr %b, ptr %out) {{
  %x = load i128, ptr %a
  %y = load i128, ptr %b
  %q = {op} i128 %x, %y
  store i128 %q, ptr %out
  ret void
}}
""",
            "x86-64",
        )
    )
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(divide.address("divide"))
    rng = random.Random(7)
    for _ in range(3000):
        a, b = (rng.getrandbits(rng.randint(1, 128)) for _ in range(2))
        if not b:
            continue
        out = _words(0)
        call(_words(a), _words(b), out)
        assert int.from_bytes(out, "little") == _divided(op, a, b) % (1 << 128), (a, b)


def _words(value: int) -> ctypes.Array[ctypes.c_uint64]:
    """16 bytes at an address that i128 may have."""
    block = (ctypes.c_uint64 * 4)()
    words = (ctypes.c_uint64 * 2).from_buffer(block, ctypes.addressof(block) % 16)
    words[:] = value & (1 << 64) - 1, value >> 64
    return words


def _divided(op: str, a: int, b: int) -> int:
    if op[0] == "s":
        a, b = (v - (1 << 128) if v >> 127 else v for v in (a, b))
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if op.endswith("div") else a - quotient * b


def test_the_header_gives_natural_alignments() -> None:
    asm = compile_host_asm(host_header() + "@x = global i64 1\n@y = global i128 1\n")
    assert re.search(r"p2align\s+3.*\nx:", asm)
    assert re.search(r"p2align\s+4.*\ny:", asm)


def test_a_plain_loop_is_vectorised_for_this_cpu() -> None:
    asm = compile_host_asm(
        host_header()
        + """
define void @scale(ptr noalias %x, ptr noalias %y, i64 %n) {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %w = fmul float %v, 3.0
  %to = getelementptr float, ptr %y, i64 %i
  store float %w, ptr %to
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %next, label %out
out:
  ret void
}
""",
        "x86-64-v3",
    )
    assert re.search(r"vmulps\s.*%ymm", asm)


@pytest.mark.parametrize("text", ["define i32 @f() {", "define i32 @f() {\n  ret i64 1\n}\n"])
def test_bad_ir_is_a_codegen_error(text: str) -> None:
    with pytest.raises(CodegenError, match="LLVM refused"):
        compile_host(host_header() + text)


@pytest.mark.parametrize("cpu", ["", "gfx942", "znver99", "x86-64-v9"])
def test_a_cpu_that_llvm_would_abort_on_is_refused(cpu: str) -> None:
    with pytest.raises(UnknownTargetError):
        compile_host("", cpu)


def test_every_baseline_of_this_host_compiles() -> None:
    names = [name for name in BASELINES if name.startswith("x86")]
    assert len({host_spec_string(name) for name in ["native", *names]}) == len(names) + 1
    for name in names:
        assert compile_host(host_header() + "define void @f() {\n  ret void\n}\n", name)[:4] == b"\x7fELF"


def test_the_hosts_own_name_is_native() -> None:
    host, features = resolve_cpu()
    assert resolve_cpu(host) == (host, features)
    assert host_machine(host, features) is host_machine(host, features)
