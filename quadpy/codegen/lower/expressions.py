"""Expressions, and the intrinsics of the IR: each row of ``quadpy.intrinsics`` that is an instruction, on each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from quadpy.codegen.lower.arithmetic import binary, compare, unary
from quadpy.codegen.lower.casts import bitcast, cast, from_bits, resize, to_bits
from quadpy.codegen.lower.chosen import MOST_VALUES, cell_of_one, copied
from quadpy.codegen.lower.scope import FAST_FLAGS, Scope
from quadpy.codegen.lower.text import constant, llvm_type, memory_type, symbol
from quadpy.codegen.plans.branches import plain_name
from quadpy.core.dtypes import Scalar, bf16, f32, f64
from quadpy.errors import CodegenError, KernelTypeError
from quadpy.intrinsics import INSTRUCTIONS
from quadpy.intrinsics.rows import Emitted, Llvm, Unsupported
from quadpy.ir import nodes as ir
from quadpy.ir.long_loops import calls_long
from quadpy.ir.walk import unhandled

POWERS: Final = ("pow.f32.f32", "pow.f64.f64", "fast_pow.f32.f32")
_PRODUCTS: Final = 64
"""The largest power that becomes products under ``fast_math``."""
ROUNDED_ONCE: Final = (-1, 0, 1, 2)
"""Powers that products give correctly rounded."""


def lower_expr(s: Scope, e: ir.Expr) -> str:
    """The operand that holds the value of ``e``."""
    match e:
        case ir.VarRead(var=var):
            if (cell := s.cells.get(var.name)) is not None:
                return s.text.op(f"load {llvm_type(var.type)}, {s.rules.private} {cell}")
            return s.values[var.name]
        case ir.Const(value=value, type=t):
            return constant(value, t)
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t):
            return binary(s.text, op, lower_expr(s, lhs), lower_expr(s, rhs), t, s.flags)
        case ir.ParamRead(name=name):
            return s.params[name]
        case ir.Compare(op=cmp, lhs=lhs, rhs=rhs):
            return compare(s.text, cmp, lower_expr(s, lhs), lower_expr(s, rhs), lhs.type)
        case ir.Select(cond=cond, then=then, orelse=orelse, type=t):
            ty = llvm_type(t)
            c, a, b = lower_expr(s, cond), lower_expr(s, then), lower_expr(s, orelse)
            return s.text.op(f"select i1 {c}, {ty} {a}, {ty} {b}")
        case ir.Pick():
            return _pick(s, e)
        case ir.Unary(op=unary_op, operand=x, type=t):
            return unary(s.text, unary_op, lower_expr(s, x), t, s.flags)
        case ir.Cast(operand=x, type=t):
            return cast(s.text, lower_expr(s, x), x.type, t, s.rules.saturating)
        case ir.BitCast(operand=x, type=t):
            return bitcast(s.text, lower_expr(s, x), x.type, t)
        case ir.Intrinsic():
            return lower_intrinsic(s, e, [lower_expr(s, arg) for arg in e.args])
        case ir.Call(function=name, args=args):
            return lower_call(s, name, args)
        case ir.ShapeOf(array=array, axis=axis):
            return s.arrays[array].extents[axis]
        case ir.SlotRead(number=number, type=t):
            return load_slot(s, number, t)
        case ir.ThreadIndex():
            return s.thread
        case ir.BlockIndex():
            return s.block
        case _:
            raise unhandled(e)


def _pick(s: Scope, e: ir.Pick) -> str:
    at, ty = lower_expr(s, e.at), llvm_type(e.type)
    if (cell := cell_of_one(s, e, at)) is None:
        items = [lower_expr(s, item) for item in e.items]
        if len(items) <= MOST_VALUES:
            return _selected(s, items, e, at)
        cell = copied(s, items, e.type, (e.at.type, at))
    return s.text.op(f"load {ty}, {s.rules.private} {cell}")


def _selected(s: Scope, items: list[str], e: ir.Pick, at: str) -> str:
    held, ty = constant(0, e.type), llvm_type(e.type)
    for number, item in enumerate(items):
        hit = s.text.op(f"icmp eq {llvm_type(e.at.type)} {at}, {number}")
        held = s.text.op(f"select i1 {hit}, {ty} {item}, {ty} {held}")
    return held


def lower_offset(s: Scope, e: ir.Expr) -> str:
    """The index ``e`` in the type used for addresses.

    In 64 bits, a loop variable plus something small is computed from the induction variable itself: a narrower sum that
    is extended afterwards hides from LLVM that the address advances by a constant.  This is correct only if a sum
    that would wrap in its own type is out of bounds either way: see ``wide_twin`` and ``_based``.
    """
    if s.narrow:
        return resize(s.text, lower_expr(s, e), e.type, 32)
    return wide_twin(s, e) or _based(s, e) or resize(s.text, lower_expr(s, e), e.type, 64)


def wide_twin(s: Scope, e: ir.Expr) -> str | None:
    """``e`` as an i64, where it is a loop variable plus or minus small constants; None for anything else."""
    match e:
        case ir.VarRead(var=var):
            return s.wide.get(var.name)
        case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB as op, lhs=lhs, rhs=ir.Const(value=c), type=t) if _is_small(c, t):
            twin = wide_twin(s, lhs)
            return twin and s.text.op(f"{op.value} nsw i64 {twin}, {c}")
        case ir.Binary(op=ir.BinOp.ADD, lhs=ir.Const(value=c), rhs=rhs, type=t) if _is_small(c, t):
            twin = wide_twin(s, rhs)
            return twin and s.text.op(f"add nsw i64 {twin}, {c}")
        case _:
            return None


def natural_sum(s: Scope, e: ir.Expr) -> tuple[str, int] | None:
    """``e`` as an i32 that is never below 0, and a constant; None if no such sum is known."""
    match e:
        case ir.VarRead(var=var) if var.name in s.sums:
            return s.sums[var.name]
        case ir.VarRead(var=var) if var.name in s.natural and var.type.bits == 32:
            return s.values[var.name], 0
        case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB as op, lhs=lhs, rhs=ir.Const(value=c), type=t) if _is_small(c, t):
            left = natural_sum(s, lhs)
            return left and (left[0], left[1] + int(c if op is ir.BinOp.ADD else -c))
        case ir.Binary(op=ir.BinOp.ADD, lhs=ir.Const(value=c), rhs=rhs, type=t) if _is_small(c, t):
            right = natural_sum(s, rhs)
            return right and (right[0], right[1] + int(c))
        case ir.Const(value=c, type=t) if _is_small(c, t) and c >= 0:
            return "0", int(c)
        case _:
            return None


def _based(s: Scope, e: ir.Expr) -> str | None:
    """``e`` as an i64, where it is a natural loop variable plus or minus another value, as in ``row * width + j``."""
    match e:
        case ir.Binary(op=ir.BinOp.ADD, lhs=lhs, rhs=ir.VarRead(var=var)) if var.name in s.natural:
            return s.text.op(f"add nsw i64 {resize(s.text, lower_expr(s, lhs), e.type, 64)}, {s.wide[var.name]}")
        case ir.Binary(op=ir.BinOp.ADD | ir.BinOp.SUB as op, lhs=ir.VarRead(var=var), rhs=rhs) if var.name in s.natural:
            other = resize(s.text, lower_expr(s, rhs), e.type, 64)
            return s.text.op(f"{op.value} nsw i64 {s.wide[var.name]}, {other}")
        case _:
            return None


def _is_small(constant: float, t: Scalar) -> bool:
    return t.kind == "int" and abs(constant) < 1 << 16


def is_natural(s: Scope, start: ir.Expr, t: Scalar) -> bool:
    """Whether a loop that counts up from ``start`` in ``t`` never goes below 0."""
    match start:
        case ir.Const(value=value):
            return t.kind == "int" and value >= 0
        case ir.VarRead(var=var):
            return var.name in s.natural
        case _:
            return False


def slot_address(s: Scope, number: int) -> str:
    """The address of a slot of the kernel's scratch memory."""
    if number == 0:
        return s.scratch
    return s.text.op(f"getelementptr inbounds i8, {s.rules.pointer} {s.scratch}, i64 {8 * number}")


def load_slot(s: Scope, number: int, t: Scalar) -> str:
    held = s.text.op(f"load {memory_type(t)}, {s.rules.pointer} {slot_address(s, number)}, align {t.nbytes}{s.access}")
    return held if t.bits > 1 else s.text.op(f"icmp ne i8 {held}, 0")


# ------------------------------------------------------------------ functions


def function_symbol(name: str) -> str:
    return symbol(f"fn.{name}")


def result_type(results: tuple[Scalar, ...]) -> str:
    """The LLVM type that a function returns: a struct if it has several results."""
    types = [llvm_type(t) for t in results]
    return types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"


def lower_call(s: Scope, name: str, args: tuple[ir.Expr, ...]) -> str:
    """Call a function of the kernel; some powers become products."""
    if plain_name(name) in POWERS and (power := _power_of_products(s, *args)) is not None:
        return power
    operands = ", ".join([f"{llvm_type(arg.type)} {lower_expr(s, arg)}" for arg in args])
    function, result = function_symbol(name), result_type(s.functions[name].results)
    if s.fuel is None or not calls_long(name, s.functions):
        return s.text.call(function, result, operands)
    value = s.text.call(function, result, f"{operands}, ptr {s.fuel.cell}" if operands else f"ptr {s.fuel.cell}")
    s.fuel.called()
    return value


def _power_of_products(s: Scope, base: ir.Expr, exponent: ir.Expr) -> str | None:
    """Powers with constant exponents: whole ones, and under ``fast_math`` halves, which take a root."""
    if not isinstance(exponent, ir.Const) or not float(2 * exponent.value).is_integer():
        return None
    if abs(exponent.value) > _PRODUCTS or (s.flags != FAST_FLAGS and exponent.value not in ROUNDED_ONCE):
        return None
    t, square, left = base.type, lower_expr(s, base), int(abs(exponent.value))
    has_half = left != abs(exponent.value)
    power = unary(s.text, ir.UnOp.SQRT, square, t, s.flags) if has_half else constant(1, t)
    while left:
        if left & 1:
            power = binary(s.text, ir.BinOp.MUL, power, square, t, s.flags)
        if left := left >> 1:
            square = binary(s.text, ir.BinOp.MUL, square, square, t, s.flags)
    return binary(s.text, ir.BinOp.DIV, constant(1, t), power, t, s.flags) if exponent.value < 0 else power


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
