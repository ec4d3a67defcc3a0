"""Operators on machine numbers, with the results that the language defines.

No operation here has an undefined result: selects, which vanish if an operand is a constant, avoid LLVM's poison
(shifts past the width, division by zero, the smallest integer by -1).
"""

from __future__ import annotations

from typing import Final

from quadpy.codegen.lower.casts import compute_type, narrow, widen
from quadpy.codegen.lower.text import FunctionText, constant, llvm_type
from quadpy.core.dtypes import Scalar
from quadpy.ir.nodes import BinOp, CmpOp, UnOp

_INTEGER: Final = {
    BinOp.ADD: "add", BinOp.SUB: "sub", BinOp.MUL: "mul", BinOp.AND: "and", BinOp.OR: "or", BinOp.XOR: "xor",
}  # fmt: skip
_FLOAT: Final = {BinOp.ADD: "fadd", BinOp.SUB: "fsub", BinOp.MUL: "fmul", BinOp.DIV: "fdiv"}
_FLOAT_EXTREME: Final = {BinOp.MIN: "minimumnum", BinOp.MAX: "maximumnum"}
_SHIFTS: Final = (BinOp.SHL, BinOp.SHR, BinOp.USHR)
_FLOAT_COMPARE: Final = {
    CmpOp.EQ: "oeq", CmpOp.NE: "une", CmpOp.LT: "olt", CmpOp.LE: "ole", CmpOp.GT: "ogt", CmpOp.GE: "oge",
}  # fmt: skip
_FLOAT_UNARY: Final = {
    UnOp.ABS: "fabs", UnOp.SQRT: "sqrt", UnOp.FLOOR: "floor", UnOp.CEIL: "ceil", UnOp.TRUNC: "trunc",
    UnOp.RINT: "rint",
}  # fmt: skip


def binary(out: FunctionText, op: BinOp, a: str, b: str, t: Scalar, flags: str = "") -> str:
    """``a op b``, all of type ``t``; ``flags`` are fast-math flags with a space before."""
    if t.is_float:
        wide = compute_type(t)
        result = _float_binary(out, op, widen(out, a, t), widen(out, b, t), wide, flags)
        return narrow(out, result, t)
    ty = llvm_type(t)
    if op in _INTEGER:
        return out.op(f"{_INTEGER[op]} {ty} {a}, {b}")
    if op in _SHIFTS:
        return _shift(out, op, a, b, t)
    if op in _FLOAT_EXTREME:
        name = f"llvm.{'s' if t.kind == 'int' else 'u'}{op.value}.{ty}"
        return out.intrinsic(name, ty, (ty, a), (ty, b))
    return _division(out, op, a, b, t)


def unary(out: FunctionText, op: UnOp, x: str, t: Scalar, flags: str = "") -> str:
    """``op x``, both of type ``t``."""
    if not t.is_float:
        return _integer_unary(out, op, x, t)
    wide = compute_type(t)
    ty, x = llvm_type(wide), widen(out, x, t)
    if op is UnOp.NEG:
        return narrow(out, out.op(f"fneg{flags} {ty} {x}"), t)
    return narrow(out, out.intrinsic(f"llvm.{_FLOAT_UNARY[op]}.f{wide.bits}", ty, (ty, x), flags=flags), t)


def compare(out: FunctionText, op: CmpOp, a: str, b: str, t: Scalar) -> str:
    """``a op b`` as a ``u1``, for operands of type ``t``."""
    if t.is_float:
        wide = llvm_type(compute_type(t))
        return out.op(f"fcmp {_FLOAT_COMPARE[op]} {wide} {widen(out, a, t)}, {widen(out, b, t)}")
    sign = "" if op in (CmpOp.EQ, CmpOp.NE) else "s" if t.kind == "int" else "u"
    return out.op(f"icmp {sign}{op.value} {llvm_type(t)} {a}, {b}")


def _float_binary(out: FunctionText, op: BinOp, a: str, b: str, t: Scalar, flags: str) -> str:
    ty, zero = llvm_type(t), constant(0.0, t)
    if op is BinOp.MUL and "nsz" in flags and zero in (a, b):
        return zero  # LLVM keeps the product, which may be NaN: rotations are full of such products
    if op in _FLOAT:
        return out.op(f"{_FLOAT[op]}{flags} {ty} {a}, {b}")
    return out.intrinsic(f"llvm.{_FLOAT_EXTREME[op]}.f{t.bits}", ty, (ty, a), (ty, b), flags=flags)


def _integer_unary(out: FunctionText, op: UnOp, x: str, t: Scalar) -> str:
    ty = llvm_type(t)
    match op:
        case UnOp.NEG:
            return out.op(f"sub {ty} 0, {x}")
        case UnOp.NOT:
            return out.op(f"xor {ty} {x}, {'true' if ty == 'i1' else '-1'}")
        case _:  # ABS, which wraps for the smallest integer; the verifier admits no other
            if t.kind == "uint":
                return x
            return out.intrinsic(f"llvm.abs.{ty}", ty, (ty, x), ("i1", "false"))


def _shift(out: FunctionText, op: BinOp, x: str, count: str, t: Scalar) -> str:
    """All bits are shifted out if the count, as an unsigned number, is at least the width."""
    ty, width = llvm_type(t), t.bits
    keeps_sign = op is BinOp.SHR and t.kind == "int"
    name = "shl" if op is BinOp.SHL else "ashr" if keeps_sign else "lshr"
    if not count.startswith("%"):
        if 0 <= int(count) < width:
            return out.op(f"{name} {ty} {x}, {count}")
        return out.op(f"ashr {ty} {x}, {width - 1}") if keeps_sign else "0"
    if keeps_sign:
        count = out.intrinsic(f"llvm.umin.{ty}", ty, (ty, count), (ty, str(width - 1)))
        return out.op(f"ashr {ty} {x}, {count}")
    inside = out.op(f"icmp ult {ty} {count}, {width}")
    if width == 64:  # LLVM 22 would merge the two into one PTX instruction, which reads only 32 bits of the count
        count = out.intrinsic("llvm.umin.i64", ty, (ty, count), (ty, "63"))
    shifted = out.op(f"{name} {ty} {x}, {count}")
    return out.op(f"select i1 {inside}, {ty} {shifted}, {ty} 0")


# ------------------------------------------------------------------ division


def _division(out: FunctionText, op: BinOp, a: str, b: str, t: Scalar) -> str:
    signed = t.kind == "int"
    wants_quotient = op in (BinOp.FLOORDIV, BinOp.RAWDIV)
    floors = signed and op in (BinOp.FLOORDIV, BinOp.MOD)
    if not b.startswith("%"):
        return _by_constant(out, a, int(b), t, wants_quotient, floors)
    ty = llvm_type(t)
    by_zero = out.op(f"icmp eq {ty} {b}, 0")
    unsafe = by_zero
    if signed:
        minus = out.op(f"icmp eq {ty} {b}, -1")
        least = out.op(f"icmp eq {ty} {a}, {t.min_int}")
        unsafe = out.op(f"or i1 {by_zero}, {out.op(f'and i1 {minus}, {least}')}")
    safe = out.op(f"select i1 {unsafe}, {ty} 1, {ty} {b}")
    result = _divide(out, a, safe, t, wants_quotient)
    if floors:
        result = _floored(out, result, a, safe, ty, wants_quotient)
    return out.op(f"select i1 {by_zero}, {ty} 0, {ty} {result}")


def _divide(out: FunctionText, a: str, b: str, t: Scalar, wants_quotient: bool) -> str:
    sign = "s" if t.kind == "int" else "u"
    return out.op(f"{sign}{'div' if wants_quotient else 'rem'} {llvm_type(t)} {a}, {b}")


def _floored(out: FunctionText, result: str, a: str, b: str, ty: str, wants_quotient: bool) -> str:
    """Turns C's quotient or remainder into Python's: a remainder whose sign differs from the divisor's moves by one divisor."""
    rest = out.op(f"sub {ty} {a}, {out.op(f'mul {ty} {result}, {b}')}") if wants_quotient else result
    inexact = out.op(f"icmp ne {ty} {rest}, 0")
    differs = out.op(f"icmp slt {ty} {out.op(f'xor {ty} {rest}, {b}')}, 0")
    moves = out.op(f"and i1 {inexact}, {differs}")
    if wants_quotient:
        return out.op(f"add {ty} {result}, {out.op(f'sext i1 {moves} to {ty}')}")
    return out.op(f"add {ty} {result}, {out.op(f'select i1 {moves}, {ty} {b}, {ty} 0')}")


def _by_constant(out: FunctionText, a: str, b: int, t: Scalar, wants_quotient: bool, floors: bool) -> str:
    """LLVM turns this into a multiplication; a positive power of two is a shift or a mask when floored."""
    ty = llvm_type(t)
    if b == 0:
        return "0"
    if b == -1:
        return out.op(f"sub {ty} 0, {a}") if wants_quotient else "0"
    if floors and b > 0 and b & (b - 1) == 0:
        return out.op(f"ashr {ty} {a}, {b.bit_length() - 1}" if wants_quotient else f"and {ty} {a}, {b - 1}")
    result = _divide(out, a, str(b), t, wants_quotient)
    return _floored(out, result, a, str(b), ty, wants_quotient) if floors else result
