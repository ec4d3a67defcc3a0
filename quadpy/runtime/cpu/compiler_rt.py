"""Functions that LLVM's x86-64 code calls and that a C library may lack.

Half and bfloat16 conversions and 128-bit division, correctly rounded in every rounding mode of the thread.  Names and
calling convention are those of LLVM's compiler-rt: a half or bfloat travels in an SSE register.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from quadpy.core.light import dataclass
from quadpy.runtime.cpu.orc import LLVM_LOCK, LoadedObject, assemble, link


@dataclass(frozen=True, slots=True)
class _Format:
    """A binary floating-point format: LLVM's type, its width, its stored mantissa bits."""

    type: str
    bits: int
    mantissa: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.mantissa - 2)) - 1

    @property
    def infinity(self) -> int:
        """The bits of +inf: the exponent field, all ones."""
        return (2 * self.bias + 1) << self.mantissa


_HALF: Final = _Format("half", 16, 10)
_BFLOAT: Final = _Format("bfloat", 16, 7)
_FLOAT: Final = _Format("float", 32, 23)
_DOUBLE: Final = _Format("double", 64, 52)


def _truncation(name: str, src: _Format, dst: _Format) -> str:
    """``dst name(src)``, to nearest, ties to even; NaNs become quiet and keep their first payload bits.

    Integer arithmetic only.  Below ``dst``'s smallest normal number the significand is shifted down to where subnormals
    have their last bit; above it the bits of ``src``, minus the difference of the biases, are a ``dst`` with too long a
    mantissa.  Rounding carries into the exponent by itself, up to infinity.
    """
    i, m, width = f"i{src.bits}", src.mantissa, src.bits
    shift, quiet = m - dst.mantissa, 1 << (dst.mantissa - 1)
    return f"""
define {dst.type} @{name}({src.type} %x) nounwind {{
  %bits = bitcast {src.type} %x to {i}
  %abs = and {i} %bits, {(1 << (width - 1)) - 1}
  %exponent = lshr {i} %abs, {m}
  %fraction = and {i} %abs, {(1 << m) - 1}
  %normal = icmp ne {i} %exponent, 0
  %hidden = select i1 %normal, {i} {1 << m}, {i} 0
  %significand = or {i} %fraction, %hidden
  %e.least = icmp eq {i} %exponent, 0
  %e = select i1 %e.least, {i} 1, {i} %exponent

  %below = sub {i} {src.bias - dst.bias + 1 + shift}, %e
  %small = icmp slt {i} %e, {src.bias - dst.bias + 1}
  %far = icmp ugt {i} %below, {width - 1}
  %near = select i1 %far, {i} {width - 1}, {i} %below
  %by = select i1 %small, {i} %near, {i} {shift}

  %rebased = sub {i} %abs, {(src.bias - dst.bias) << m}
  %value = select i1 %small, {i} %significand, {i} %rebased
  %kept = lshr {i} %value, %by
  %mask.hi = shl {i} -1, %by
  %mask = xor {i} %mask.hi, -1
  %lost = and {i} %value, %mask
  %by.less = sub {i} %by, 1
  %tie = shl {i} 1, %by.less
  %odd = and {i} %kept, 1
  %pressed = add {i} %lost, %odd
  %up = icmp ugt {i} %pressed, %tie
  %one = zext i1 %up to {i}
  %rounded = add {i} %kept, %one
  %over = icmp ugt {i} %rounded, {dst.infinity}
  %number = select i1 %over, {i} {dst.infinity}, {i} %rounded

  %payload = lshr {i} %fraction, {shift}
  %nan = or {i} %payload, {dst.infinity | quiet}
  %is.nan = icmp ugt {i} %abs, {src.infinity}
  %magnitude = select i1 %is.nan, {i} %nan, {i} %number
  %top = lshr {i} %bits, {width - 16}
  %sign = and {i} %top, {1 << 15}
  %all = or {i} %magnitude, %sign
  %result = trunc {i} %all to i16
  %out = bitcast i16 %result to {dst.type}
  ret {dst.type} %out
}}
"""


def _half_to_float() -> str:
    """Exact: a subnormal half is an integer times 2**-24, and conversion and product lose nothing."""
    return """
define float @__extendhfsf2(half %x) nounwind {
  %bits = bitcast half %x to i16
  %wide = zext i16 %bits to i32
  %abs = and i32 %wide, 32767
  %moved = shl i32 %abs, 13
  %rebased = add i32 %moved, 939524096
  %special = icmp uge i32 %abs, 31744
  %raised = add i32 %moved, 1879048192
  %normal = select i1 %special, i32 %raised, i32 %rebased
  %integer = sitofp i32 %abs to float
  %scaled = fmul float %integer, 0x3E70000000000000
  %subnormal = bitcast float %scaled to i32
  %small = icmp ult i32 %abs, 1024
  %magnitude = select i1 %small, i32 %subnormal, i32 %normal
  %signalling = icmp ugt i32 %abs, 31744
  %quiet = select i1 %signalling, i32 4194304, i32 0
  %number = or i32 %magnitude, %quiet
  %top = and i32 %wide, 32768
  %sign = shl i32 %top, 16
  %all = or i32 %number, %sign
  %out = bitcast i32 %all to float
  ret float %out
}
"""


def _division(name: str, op: str) -> str:
    """128-bit division: LLVM calls a function for i128, and expands wider types inline."""
    extend = "zext" if op[0] == "u" else "sext"
    return f"""
define i128 @{name}(i128 %a, i128 %b) nounwind {{
  %a.wide = {extend} i128 %a to i129
  %b.wide = {extend} i128 %b to i129
  %q = {op} i129 %a.wide, %b.wide
  %out = trunc i129 %q to i128
  ret i128 %out
}}
"""


def _texts() -> Iterator[tuple[str, str]]:
    for src, src_name in ((_FLOAT, "sf"), (_DOUBLE, "df")):
        for dst, dst_name in ((_HALF, "hf"), (_BFLOAT, "bf")):
            name = f"__trunc{src_name}{dst_name}2"
            yield name, _truncation(name, src, dst)
    yield "__extendhfsf2", _half_to_float()
    for name, op in (("__udivti3", "udiv"), ("__umodti3", "urem"), ("__divti3", "sdiv"), ("__modti3", "srem")):
        yield name, _division(name, op)


_IR: Final = dict(_texts())

HELPERS: Final = frozenset(_IR)
"""The names that ``helper_address`` knows."""


def helper_ir(name: str) -> str:
    """The module of helper ``name``, without layout and triple."""
    return _IR[name]


@functools.cache
def _loaded(name: str) -> LoadedObject:
    return link(assemble(helper_ir(name)), {})


def helper_address(name: str) -> int:
    """The address of helper ``name``; it is compiled at first use (2 ms, division 6 ms) and stays mapped."""
    with LLVM_LOCK:
        return _loaded(name).address(name)
