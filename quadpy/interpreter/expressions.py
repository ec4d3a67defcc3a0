"""Expressions of the IR as Python expressions over NumPy's scalars, whose operators wrap and round as the language does.

If NumPy gives a different result (float minima of zeros, casts of numbers that do not fit), the expression spells out
the right one in place: a debugger that steps into calls should find only the user's functions.

Vectors and structs are objects that debuggers can show.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.codegen.lower.expressions import POWERS, ROUNDED_ONCE
from quadpy.core.dtypes import BY_NAME, SCALARS, Scalar, bf16, f16, f32, f64, u1
from quadpy.errors import CodegenError
from quadpy.interpreter.numbers import (
    TYPES,
    bf16_of_bits,
    bits_of_bf16,
    fused,
    fused_single,
    number,
    odd_single,
    odd_single_of_integer,
)
from quadpy.interpreter.text import MARK, OWN
from quadpy.ir import nodes as ir
from quadpy.ir.printer import COMPARISONS
from quadpy.ir.walk import unhandled

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadpy.interpreter.scopes import Scope

_SYMBOLS: Final = {
    ir.BinOp.ADD: "+", ir.BinOp.SUB: "-", ir.BinOp.MUL: "*", ir.BinOp.DIV: "/", ir.BinOp.FLOORDIV: "//",
    ir.BinOp.MOD: "%", ir.BinOp.AND: "&", ir.BinOp.OR: "|", ir.BinOp.XOR: "^", ir.BinOp.SHL: "<<", ir.BinOp.SHR: ">>",
}  # fmt: skip
_OF_TRUTHS: Final = {ir.BinOp.ADD: "^", ir.BinOp.SUB: "^", ir.BinOp.MUL: "&"}
"""Arithmetic of one bit."""
_ROUNDINGS: Final = (ir.UnOp.SQRT, ir.UnOp.FLOOR, ir.UnOp.CEIL, ir.UnOp.TRUNC, ir.UnOp.RINT)
_PYTHONS_OWN: Final = (abs, breakpoint, enumerate, float, int, len, map, max, min, range)
"""Under names that no user's variable takes."""


def constructor(t: Scalar) -> str:
    """The name of NumPy's type for ``t`` in generated code."""
    return f"{t.name}{OWN}"


class Constants:
    """The names that generated code refers to: numbers, types, functions."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {constructor(t): TYPES[t] for t in SCALARS}
        self.names |= {f"{fn.__name__}{OWN}": fn for fn in _PYTHONS_OWN}
        self._known: dict[object, str] = {}
        self.prints = f"prints{OWN}"
        """The name of the function that prints."""

    def of(self, value: object, key: object = None) -> str:
        """A name for ``value``; equal keys share one."""
        key = id(value) if key is None else key
        if key not in self._known:
            self._known[key] = name = f"_{OWN}c{len(self._known)}"
            self.names[name] = value
        return self._known[key]

    def number(self, value: float, t: Scalar) -> str:
        made = number(value, t)
        return self.of(made, (t, made.tobytes()))

    def function(self, value: Callable[..., object]) -> str:
        """A function of NumPy's or quadpy's, under its own name."""
        name = f"{value.__name__}{OWN}"
        self.names[name] = value
        return name


class Expressions:
    """Texts of expressions in one Python function, ``scope``."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        self.scope, self.constants = scope, constants

    def text(self, e: ir.Expr) -> str:
        match e:
            case ir.Const(value=value, type=t):
                return self.constants.number(value, t)
            case ir.VarRead(var=var):
                return self.scope.read(var)
            case ir.ParamRead(name=name):
                return self.scope.given(name)
            case ir.ShapeOf(array=array, axis=axis):
                return self.scope.given(f"{array}{OWN}extent{axis}")
            case ir.SlotRead():
                raise AssertionError("slots belong to tasks, and this kernel has none")
            case ir.ThreadIndex():
                return self.scope.given(f"thread{OWN}")
            case ir.BlockIndex():
                return self.scope.given(f"block{OWN}")
            case ir.Unary(op=op, operand=x, type=t):
                return self.unary(op, self.text(x), t)
            case ir.Binary(op=op, lhs=a, rhs=b, type=t):
                return self.binary(op, self.text(a), self.text(b), t)
            case ir.Compare(op=op, lhs=a, rhs=b):
                return f"({self.text(a)} {COMPARISONS[op]} {self.text(b)})"
            case ir.Select(cond=cond, then=then, orelse=orelse):
                return f"({self.text(then)} if {self.text(cond)} else {self.text(orelse)})"
            case ir.Pick(items=items, at=at, type=t):
                now, again = self.once(self.text(at))
                held = f"({''.join(f'{self.text(item)}, ' for item in items)})"
                return f"({held}[{again}] if 0 <= {now} < {len(items)} else {self.constants.number(0, t)})"
            case ir.Cast(operand=x, type=t):
                return self.cast(self.text(x), x.type, t)
            case ir.BitCast(operand=x, type=t):
                return self.bits(self.text(x), x.type, t)
            case ir.Intrinsic(name=name, args=args):
                if (rule := INTRINSICS.get(name)) is None:
                    raise CodegenError(
                        f"kernels under arch=qp.python cannot use {name}", e.span, hint="use arch=qp.cpu"
                    )
                return rule(self, [self.text(arg) for arg in args], args[0].type, e.type)
            case ir.Call(function=name, args=(base, ir.Const(value=power))) if name in POWERS and power in ROUNDED_ONCE:
                return self.power(base, int(power))
            case ir.Call(function=name, args=args):
                return f"{self.scope.function(name)}({', '.join(map(self.text, args))})"
            case _:
                raise unhandled(e)

    def once(self, text: str) -> tuple[str, str]:
        """``text`` at its first use, and the name that it has afterwards."""
        if text.replace(MARK, "_").isidentifier():
            return text, text
        name = self.scope.temporary()
        return f"({name} := {text})", name

    def call(self, fn: Callable[..., object], *args: str) -> str:
        return f"{self.constants.function(fn)}({', '.join(args)})"

    def unary(self, op: ir.UnOp, x: str, t: Scalar) -> str:
        if t == u1:
            return f"(~{x})" if op is ir.UnOp.NOT else x
        if op is ir.UnOp.NEG:
            return f"(-{x})"
        if op is ir.UnOp.NOT:
            return f"(~{x})"
        if op is ir.UnOp.ABS:
            return f"abs{OWN}({x})"
        assert op in _ROUNDINGS
        return self.rounded(self.call(getattr(np, op.value), x), t)

    def rounded(self, x: str, t: Scalar) -> str:
        """A bf16 is an f32 that is representable in bf16."""
        return f"{constructor(t)}({x})" if t == bf16 else x

    def binary(self, op: ir.BinOp, a: str, b: str, t: Scalar) -> str:
        if op in (ir.BinOp.MIN, ir.BinOp.MAX):
            return self.extreme(op, a, b, t)
        if op is ir.BinOp.RAWMOD:
            return self.call(np.fmod, a, b)
        if op is ir.BinOp.RAWDIV:
            (a, again), (b, divisor) = self.once(a), self.once(b)
            return f"(({a} - {self.call(np.fmod, again, b)}) // {divisor})"
        if op is ir.BinOp.USHR:
            if t.kind != "int":
                return f"({a} >> {b})"
            unsigned = BY_NAME[f"u{t.bits}"]
            return self.bits(f"({self.bits(a, t, unsigned)} >> {self.bits(b, t, unsigned)})", unsigned, t)
        symbol = _OF_TRUTHS.get(op, _SYMBOLS[op]) if t == u1 else _SYMBOLS[op]
        return self.rounded(f"({a} {symbol} {b})", t)

    def power(self, base: ir.Expr, exponent: int) -> str:
        """One of the powers that compiled code turns into products, since these are rounded once."""
        one, x = self.constants.number(1, base.type), self.text(base)
        if exponent == 0:
            return one
        if exponent == -1:
            return f"({one} / {x})"
        first, again = self.once(x)
        return first if exponent == 1 else f"({first} * {again})"

    def extreme(self, op: ir.BinOp, a: str, b: str, t: Scalar) -> str:
        """For floats: a number wins over a NaN, and -0 is below +0."""
        if not t.is_float:
            return f"{op.value}{OWN}({a}, {b})"
        (a, x), (b, y) = self.once(a), self.once(b)
        least = op is ir.BinOp.MIN
        first, second = (x, y) if least else (y, x)
        zeros = f"({first} if {self.call(np.signbit, x)} else {second})"
        return f"({self.call(np.fmin if least else np.fmax, x, y)} if {a} != {b} else {zeros})"

    def cast(self, x: str, src: Scalar, dst: Scalar) -> str:
        if src == dst:
            return x
        if dst == u1:
            return f"({x} != 0)"
        if src.is_float and not dst.is_float:
            return self.whole(x, src, dst)
        if src == u1:
            return f"({self.constants.number(1, dst)} if {x} else {self.constants.number(0, dst)})"
        if dst == bf16 and src == f64:
            return f"{constructor(bf16)}({self.call(odd_single, x)})"
        if dst == bf16 and src.bits > 16 and not src.is_float:
            return f"{constructor(bf16)}({self.call(odd_single_of_integer, x)})"
        if dst == f16 and not src.is_float:
            return f"{constructor(f16)}({constructor(f32)}({x}))"
        made = f"{x}.astype({constructor(dst)})" if dst != bf16 else f"{constructor(bf16)}({constructor(f32)}({x}))"
        return x if (src, dst) == (bf16, f32) else made

    def whole(self, x: str, src: Scalar, dst: Scalar) -> str:
        """Truncated; a number that does not fit becomes the nearest integer that does, a NaN becomes 0."""
        x, again = self.once(x if src != f16 else f"{constructor(f32)}({x})")
        least, most, zero = (self.constants.number(n, dst) for n in (dst.min_int, dst.max_int, 0))
        beyond = f"({most} if {again} > 0 else {least} if {again} < 0 else {zero})"
        inside = f"{float(dst.min_int)!r} < {x} < {float(dst.max_int + 1)!r}"
        return f"({constructor(dst)}(int{OWN}({again})) if {inside} else {beyond})"

    def bits(self, x: str, src: Scalar, dst: Scalar) -> str:
        if src == dst:
            return x
        if src == bf16:
            x, src = self.call(bits_of_bf16, x), BY_NAME["u16"]
        if dst == bf16:
            return self.call(bf16_of_bits, self.bits(x, src, BY_NAME["u16"]))
        return x if src == dst else f"{x}.view({constructor(dst)})"

    def shown(self, seen: ir.Seen) -> str:
        """The value that a name of the source stands for."""
        match seen:
            case ir.VectorSeen(shape=shape, elems=elems):
                items = iter(map(self.text, elems))
                rows = [", ".join(next(items) for _ in range(shape[-1])) for _ in range(len(elems) // shape[-1])]
                inner = f"({rows[0]},)" if len(shape) == 1 else f"({', '.join(f'({row},)' for row in rows)},)"
                return f"{self.constants.function(np.array)}({inner}).view({self.constants.of(Vector, Vector)})"
            case ir.StructSeen(members=members):
                inner = ", ".join(f"{name}={self.shown(member)}" for name, member in members)
                return f"{self.constants.of(Struct, Struct)}({inner})"
            case ir.ArraySeen(name=name):
                return self.scope.given(f"{name}{OWN}whole")
            case ir.ObjectSeen(value=value):
                return self.constants.of(value)
            case _:
                return self.text(seen)


def _popcnt(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    return f"{constructor(result)}(({_natural(args[0], t)}).bit_count())"


def _clz(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    return f"{constructor(result)}({t.bits} - ({_natural(args[0], t)}).bit_length())"


def _ctz(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    x, again = e.once(_natural(args[0], t))
    return f"{constructor(result)}(({again} & -{again}).bit_length() - 1 if {x} else {t.bits})"


def _natural(x: str, t: Scalar) -> str:
    """The bits of an integer as a Python integer."""
    return f"int{OWN}({x}) & {(1 << t.bits) - 1}"


def _mulhi(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    return f"{constructor(t)}(int{OWN}({args[0]}) * int{OWN}({args[1]}) >> {t.bits})"


def _fma(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    """For 16-bit floats computed in f64, where the product is exact, and then rounded."""
    given = [f"float{OWN}({arg})" for arg in args]
    if t == f32:
        return e.call(fused_single, *given)
    return e.cast(f"{constructor(f64)}({e.call(fused, *given)})", f64, t)


def _copysign(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    return e.call(np.copysign, *args)


def _rsqrt_seed(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
    return f"({e.constants.number(1, t)} / {e.call(np.sqrt, args[0])})"


INTRINSICS: Final[dict[str, Callable[[Expressions, list[str], Scalar, Scalar], str]]] = {
    "popcnt": _popcnt, "clz": _clz, "ctz": _ctz, "mulhi": _mulhi, "fma": _fma, "copysign": _copysign,
    "rsqrt_seed": _rsqrt_seed,
}  # fmt: skip
"""``(expressions, operands, their type, the type of the result)``, for each instruction of ``quadpy.intrinsics``."""


class Vector(np.ndarray[Any, Any]):
    """A vector or matrix of a kernel, as it was when its name was last bound."""

    @property
    def x(self) -> Any:
        return self[0]

    @property
    def y(self) -> Any:
        return self[1]

    @property
    def z(self) -> Any:
        return self[2]

    @property
    def w(self) -> Any:
        return self[3]

    r, g, b, a = x, y, z, w


class Struct(SimpleNamespace):
    """A struct of a kernel, as it was when its name was last bound."""
