"""Intrinsics of the IR: each row of ``quadpy.intrinsics`` that is an instruction, on each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from quadpy.codegen.lower.casts import cast, from_bits, resize, to_bits
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.text import constant, llvm_type
from quadpy.core.dtypes import Scalar, bf16, f32, f64
from quadpy.errors import CodegenError, KernelTypeError
from quadpy.intrinsics import INSTRUCTIONS
from quadpy.intrinsics.rows import Emitted, Llvm, Unsupported
from quadpy.ir import nodes as ir

Emit: TypeAlias = Callable[[Scope, list[str], Scalar], str]
"""``(scope, operands, type)``: writes the instructions; the name of the result."""


def lower_intrinsic(s: Scope, e: ir.Intrinsic, operands: list[str]) -> str:
    """The operand that holds the value of ``e``; KernelTypeError if the target does not have it."""
    row = INSTRUCTIONS.get(e.name)
    match row and row.on(s.rules.family):
        case Llvm(name=name, constants=constants):
            return _llvm(s, e, name, operands, constants)
        case Emitted() if e.name in EMITTED:
            return EMITTED[e.name](s, operands, e.type)
        case Unsupported(why=why):
            raise KernelTypeError(f"qp.{e.name} does not exist on {s.rules.family}: {why}", e.span)
        case _:
            raise CodegenError(f"{s.rules.family} has no instruction for {e.name!r}", e.span)


def _llvm(s: Scope, e: ir.Intrinsic, name: str, operands: list[str], constants: tuple[tuple[str, str], ...]) -> str:
    """Call LLVM's intrinsic, whose result has the operands' type, and convert it to the type of ``e``.

    For bf16, which is held as bits, it is computed in f32.
    """
    t = e.args[0].type
    own = f32 if t == bf16 else t
    ty = llvm_type(own)
    given = [x if own == t else cast(s.text, x, t, own) for x in operands]
    found = s.text.intrinsic(
        f"llvm.{name}.{'f' if own.is_float else 'i'}{own.bits}", ty, *((ty, x) for x in given), *constants
    )
    if own != e.type and not own.is_float:
        return resize(s.text, found, Scalar("", "uint", own.bits), e.type.bits)
    return found if own == e.type else cast(s.text, found, own, e.type)


def _mulhi(s: Scope, operands: list[str], t: Scalar) -> str:
    extend, ty, double = ("sext" if t.kind == "int" else "zext"), f"i{t.bits}", f"i{2 * t.bits}"
    wide = [s.text.op(f"{extend} {ty} {x} to {double}") for x in operands]
    product = s.text.op(f"mul {double} {wide[0]}, {wide[1]}")
    return s.text.op(f"trunc {double} {s.text.op(f'lshr {double} {product}, {t.bits}')} to {ty}")


def _fma(s: Scope, operands: list[str], t: Scalar) -> str:
    """16-bit floats: in f64, where the product is exact, and then rounded."""
    wide = t if t in (f32, f64) else f64
    ty = llvm_type(wide)
    a, b, c = ((ty, cast(s.text, x, t, wide)) for x in operands)
    return cast(s.text, s.text.intrinsic(f"llvm.fma.f{wide.bits}", ty, a, b, c), wide, t)


def _copysign(s: Scope, operands: list[str], t: Scalar) -> str:
    """Computed on bits, since bf16 is held as bits."""
    word = f"i{t.bits}"
    size, sign = (to_bits(s.text, x, t) for x in operands)
    sign = s.text.op(f"and {word} {sign}, {-1 << (t.bits - 1)}")
    size = s.text.op(f"and {word} {size}, {(1 << (t.bits - 1)) - 1}")
    return from_bits(s.text, s.text.op(f"or {word} {size}, {sign}"), t)


def _rsqrt_seed(s: Scope, operands: list[str], t: Scalar) -> str:
    """The hardware's approximation, or a quotient if it has none.  The library's later steps remove its error."""
    if t.bits == 16:
        return cast(s.text, _rsqrt_seed(s, [cast(s.text, operands[0], t, f32)], f32), f32, t)
    x = (llvm_type(t), operands[0])
    if s.rules.gpu is not None and t == f32:
        return s.text.intrinsic(s.rules.gpu.approximate["rsqrt"], x[0], x)
    return s.text.op(f"fdiv {x[0]} {constant(1, t)}, {s.text.intrinsic(f'llvm.sqrt.f{t.bits}', x[0], x)}")


EMITTED: Final[Mapping[str, Emit]] = {
    "mulhi": _mulhi, "fma": _fma, "copysign": _copysign, "rsqrt_seed": _rsqrt_seed,
}  # fmt: skip
