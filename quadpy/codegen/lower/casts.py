"""Conversions between machine numbers.

16-bit floats are storage: they are computed in f32 and rounded after each operation, the same on every target.
A bf16 travels as its bits, since LLVM's own conversion flushes subnormals where the CPU has an instruction for it.
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.text import FunctionText, constant, llvm_type
from quadpy.codegen.targets.rules import Saturation
from quadpy.core.dtypes import Scalar, bf16, f16, f32, f64, u1

_NONE: Final = Saturation()


def compute_type(t: Scalar) -> Scalar:
    """The type in which arithmetic on ``t`` is done."""
    return f32 if t in (f16, bf16) else t


def widen(out: FunctionText, x: str, t: Scalar) -> str:
    """``x`` in ``compute_type(t)``; exact."""
    if t == f16:
        return out.op(f"fpext half {x} to float")
    if t == bf16:
        high = out.op(f"shl i32 {out.op(f'zext i16 {x} to i32')}, 16")
        return out.op(f"bitcast i32 {high} to float")
    return x


def narrow(out: FunctionText, x: str, t: Scalar) -> str:
    """The ``compute_type(t)`` value ``x`` rounded to ``t``, ties to even."""
    if t == f16:
        return out.op(f"fptrunc float {x} to half")
    if t == bf16:
        return _bfloat(out, x)
    return x


def cast(out: FunctionText, x: str, src: Scalar, dst: Scalar, saturating: Saturation = _NONE) -> str:
    """The value ``x`` of type ``src`` as a ``dst``.

    Float to integer truncates and saturates, NaN gives 0; integer to integer keeps the low bits; to ``u1`` asks
    "not zero".  Conversion to a float rounds once.  ``saturating`` says which of the target's instructions truncate
    and saturate so.
    """
    if src == dst:
        return x
    if dst == u1:
        return _nonzero(out, x, src)
    if src.is_float:
        return _from_float(out, x, src, dst, saturating)
    if dst.is_float:
        return _from_integer(out, x, src, dst)
    return resize(out, x, src, dst.bits)


def resize(out: FunctionText, x: str, src: Scalar, bits: int) -> str:
    """The integer ``x`` of type ``src`` in ``bits`` bits: extended (by its sign if ``src`` is signed), or truncated."""
    if src.bits == bits:
        return x
    op = "trunc" if bits < src.bits else "sext" if src.kind == "int" else "zext"
    return out.op(f"{op} i{src.bits} {x} to i{bits}")


def bitcast(out: FunctionText, x: str, src: Scalar, dst: Scalar) -> str:
    """The bits of ``x`` as a ``dst``."""
    a, b = llvm_type(src), llvm_type(dst)
    return x if a == b else out.op(f"bitcast {a} {x} to {b}")


def to_bits(out: FunctionText, x: str, t: Scalar) -> str:
    """The bits of ``x`` as an integer."""
    ty = llvm_type(t)
    return x if ty == f"i{t.bits}" else out.op(f"bitcast {ty} {x} to i{t.bits}")


def from_bits(out: FunctionText, x: str, t: Scalar) -> str:
    """The ``t`` whose bits are the integer ``x``."""
    ty = llvm_type(t)
    return x if ty == f"i{t.bits}" else out.op(f"bitcast i{t.bits} {x} to {ty}")


def _nonzero(out: FunctionText, x: str, src: Scalar) -> str:
    if src.is_float:
        wide = compute_type(src)
        return out.op(f"fcmp une {llvm_type(wide)} {widen(out, x, src)}, 0.0")
    return out.op(f"icmp ne {llvm_type(src)} {x}, 0")


def _from_integer(out: FunctionText, x: str, src: Scalar, dst: Scalar) -> str:
    """f32 holds all 16-bit integers and all integers that f16 holds; bf16 has the range of f32, and goes through f64.

    LLVM 22 simplifies ``fpext (sitofp x to half)`` to a conversion to float where ``x`` has few significant bits, though
    ``x`` may be too large for a half.  The minimum with the largest number changes nothing, and hides from LLVM that a
    half comes from an integer.  (``llvm.canonicalize`` would too, but LLVM aborts on it for vectors of two floats on x86.)
    """
    via = f64 if dst == bf16 and src.bits > 16 else compute_type(dst)
    if via == f64 and dst == bf16 and src.bits == 64:
        x = _to_53_bits(out, x, src)
    ty = llvm_type(via)
    number = out.op(f"{'sitofp' if src.kind == 'int' else 'uitofp'} {llvm_type(src)} {x} to {ty}")
    if out.module.has_halves and src.bits > 16:
        most = constant(float.fromhex("0x1.fffffep127" if via == f32 else "0x1.fffffffffffffp1023"), via)
        number = out.intrinsic(f"llvm.minnum.f{via.bits}", ty, (ty, number), (ty, most))
    return number if via == dst else _from_float(out, number, via, dst)


def _to_53_bits(out: FunctionText, x: str, src: Scalar) -> str:
    """An i64 or u64 that f64 can hold: ``x``, or a large ``x`` rounded to odd at bit 11."""
    cut = out.op(f"icmp ne i64 {out.op(f'and i64 {x}, {(1 << 11) - 1}')}, 0")
    kept = out.op(f"and i64 {x}, {-1 << 11}")
    sticky = out.op(f"zext i1 {cut} to i64")
    odd = out.op(f"or i64 {kept}, {out.op(f'shl i64 {sticky}, 11')}")
    limit = 1 << 53
    distance = out.op(f"add i64 {x}, {limit}") if src.kind == "int" else x
    exact = out.op(f"icmp ult i64 {distance}, {2 * limit if src.kind == 'int' else limit}")
    return out.op(f"select i1 {exact}, i64 {x}, i64 {odd}")


def _from_float(out: FunctionText, x: str, src: Scalar, dst: Scalar, saturating: Saturation = _NONE) -> str:
    x, src = widen(out, x, src), compute_type(src)
    have = llvm_type(src)
    if not dst.is_float and (src.bits, max(dst.bits, 32)) in saturating.widths:
        return _saturated(out, x, src, dst, saturating.register)
    if not dst.is_float and saturating.clamps:
        return _clamped(out, x, src, dst)
    if not dst.is_float:
        name = "fptosi" if dst.kind == "int" else "fptoui"
        return out.intrinsic(f"llvm.{name}.sat.i{dst.bits}.f{src.bits}", f"i{dst.bits}", (have, x))
    if dst == f64:
        return out.op(f"fpext float {x} to double") if src == f32 else x
    if src == f64:
        x = out.op(f"fptrunc double {x} to float") if dst == f32 else _round_to_odd(out, x)
    elif dst == f16 and saturating.register:
        # On AMD, LLVM rounds a product to f16 by a fused x*y + 0, which makes a product of -0 a 0.
        x = _fenced(out, x, src, saturating.register)
    return narrow(out, x, dst)


def _fenced(out: FunctionText, x: str, src: Scalar, register: str) -> str:
    """``x`` after a fence that costs nothing: LLVM no longer knows where the value comes from.

    On AMD, LLVM cannot select its own fence for values that all threads share, and ends the process; there an empty
    assembly statement is the fence.
    """
    ty = llvm_type(src)
    if register:
        return out.op(f'call {ty} asm "", "={register},0"({ty} {x})')
    return out.intrinsic(f"llvm.arithmetic.fence.f{src.bits}", ty, (ty, x))


def _saturated(out: FunctionText, x: str, src: Scalar, dst: Scalar, register: str) -> str:
    """The target's own conversion; for a saturating one LLVM 22 would write six instructions.

    LLVM's plain conversion is undefined where the hardware's saturates: the fence keeps LLVM from folding constants,
    ``freeze`` from exploiting the undefined result.
    """
    ty, wide, sign = llvm_type(src), f"i{max(dst.bits, 32)}", "s" if dst.kind == "int" else "u"
    hidden = _fenced(out, x, src, register)
    whole = out.op(f"freeze {wide} {out.op(f'fpto{sign}i {ty} {hidden} to {wide}')}")
    if dst.bits >= 32:
        return whole
    whole = out.intrinsic(f"llvm.{sign}min.{wide}", wide, (wide, whole), (wide, str(dst.max_int)))
    if sign == "s":
        whole = out.intrinsic(f"llvm.smax.{wide}", wide, (wide, whole), (wide, str(dst.min_int)))
    return out.op(f"trunc {wide} {whole} to i{dst.bits}")


def _clamped(out: FunctionText, x: str, src: Scalar, dst: Scalar) -> str:
    """Clamps by comparisons: LLVM 22 splits vectors of its saturating conversion, with branches for each number.

    The clamped number is in range; if the largest integer is not a float, it replaces numbers that are too large.
    """
    ty, to, sign = llvm_type(src), llvm_type(dst), "s" if dst.kind == "int" else "u"
    digits = {32: 24, 64: 53}[src.bits]
    exact = dst.max_int.bit_length() <= digits
    most = dst.max_int if exact else dst.max_int + 1 - (1 << (dst.max_int.bit_length() - digits))
    inside = x
    for ordering, bound in (("ogt", dst.min_int), ("olt", most)):
        limit = constant(bound, src)
        holds = out.op(f"fcmp {ordering} {ty} {inside}, {limit}")
        inside = out.op(f"select i1 {holds}, {ty} {inside}, {ty} {limit}")
    whole = out.op(f"fpto{sign}i {ty} {inside} to {to}")
    if not exact:
        beyond = out.op(f"fcmp oge {ty} {x}, {constant(dst.max_int + 1, src)}")
        whole = out.op(f"select i1 {beyond}, {to} {dst.max_int}, {to} {whole}")
    if dst.min_int == 0:
        return whole  # a NaN has become 0 already
    number = out.op(f"fcmp ord {ty} {x}, {constant(0, src)}")
    return out.op(f"select i1 {number}, {to} {whole}, {to} 0")


def _round_to_odd(out: FunctionText, x: str) -> str:
    """A double as an f32 whose last bit is set where it is inexact: rounding the result again equals rounding once."""
    single = out.op(f"fptrunc double {x} to float")
    back = out.op(f"fpext float {single} to double")
    inexact = out.op(f"fcmp one double {back}, {x}")
    bits = out.op(f"bitcast float {single} to i32")
    even = out.op(f"icmp eq i32 {out.op(f'and i32 {bits}, 1')}, 0")
    size, back_size = (out.intrinsic("llvm.fabs.f64", "double", ("double", v)) for v in (x, back))
    below = out.op(f"fcmp olt double {back_size}, {size}")
    step = out.op(f"select i1 {below}, i32 1, i32 -1")
    odd = out.op(f"add i32 {bits}, {step}")
    fix = out.op(f"and i1 {inexact}, {even}")
    return out.op(f"bitcast i32 {out.op(f'select i1 {fix}, i32 {odd}, i32 {bits}')} to float")


def _bfloat(out: FunctionText, x: str) -> str:
    """Adds half a unit of the last kept bit, less one where that bit is even; a NaN stays a NaN."""
    bits = out.op(f"bitcast float {x} to i32")
    last = out.op(f"and i32 {out.op(f'lshr i32 {bits}, 16')}, 1")
    rounded = out.op(f"add i32 {out.op(f'add i32 {bits}, 32767')}, {last}")
    nan = out.op(f"fcmp uno float {x}, {x}")
    high = out.op(f"lshr i32 {out.op(f'select i1 {nan}, i32 2143289344, i32 {rounded}')}, 16")
    return out.op(f"trunc i32 {high} to i16")
