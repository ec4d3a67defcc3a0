"""Operators over scalars, vectors and compile-time numbers.  Owns: Operators.  Imports: ``ir``, ``lang``, leaves."""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from quadpy.dtypes import Scalar, f32, i64, promote, u1, u64
from quadpy.errors import KernelValueError
from quadpy.ir.nodes import (
    Binary,
    BinOp,
    BitCast,
    Block,
    Cast,
    CmpOp,
    Compare,
    Expr,
    If,
    Select,
    Unary,
    UnOp,
    VarRead,
)  # fmt: skip
from quadpy.lang.guard import MOST_BITS
from quadpy.lang.literals import LITERAL, LITERAL_UNARY
from quadpy.lang.promotion import literal
from quadpy.lang.state import State
from quadpy.lang.values import (
    ArrayRef,
    Value,
    Vec,
    holds_runtime,
    is_direct,
    is_number,
    is_runtime,
    parts_of,
    shape_text,
)
from quadpy.source import Span

__all__ = ["Operators", "saturated"]

_PYTHON: Final[dict[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_ARITHMETIC: Final = {
    ast.Add: BinOp.ADD, ast.Sub: BinOp.SUB, ast.Mult: BinOp.MUL, ast.Div: BinOp.DIV,
    ast.FloorDiv: BinOp.FLOORDIV, ast.Mod: BinOp.MOD,
}  # fmt: skip
_BITS: Final = {ast.BitAnd: BinOp.AND, ast.BitOr: BinOp.OR, ast.BitXor: BinOp.XOR}
_SHIFTS: Final = {ast.LShift: BinOp.SHL, ast.RShift: BinOp.SHR}
_COMPARE: Final = {
    ast.Eq: CmpOp.EQ, ast.NotEq: CmpOp.NE, ast.Lt: CmpOp.LT, ast.LtE: CmpOp.LE, ast.Gt: CmpOp.GT, ast.GtE: CmpOp.GE,
}  # fmt: skip
_LARGEST_UNROLLED_POWER: Final = 64
_CONTAINERS: Final = (list, tuple, dict, set, frozenset, str, range)
_GO_THROUGH: Final[tuple[Any, ...]] = (
    sum, sorted, list, tuple, set, frozenset, dict, min, max, any, all, str, zip, enumerate, reversed, operator.contains,
)  # fmt: skip
"""Functions of Python's that look at each item of a container."""


def saturated(value: float, type: Scalar) -> float:
    """A compile-time number as a run-time cast would make it: floats are cut and saturate, integers must fit."""
    if isinstance(value, int):
        return value
    if value != value:
        return 0
    return int(min(max(value, type.min_int), type.max_int))


def _length(value: Any) -> int:
    """How many items a container of Python's own has; of all else, none."""
    try:
        return len(value) if type(value) in _CONTAINERS else 0
    except OverflowError:  # a range
        return sys.maxsize


def _text_length(value: Value, known: dict[int, int] | None = None) -> int:
    """How many items the text of ``value`` shows, each as often as it does."""
    known = {} if known is None else known
    if id(value) not in known:
        inside = parts_of(value)
        known[id(value)] = 1 + sum(_text_length(part, known) for part in inside) if inside else 1
    return known[id(value)]


def _arrays(*values: Value) -> bool:
    return any(isinstance(value, ArrayRef) for value in values)


class Operators(State):
    """What ``+``, ``<``, ``@``, casts and ``select`` mean."""

    def scalar(self, value: Value, span: Span) -> Expr:
        """A run-time scalar of ``value``; a literal takes its default type."""
        if is_runtime(value):
            return value
        if is_number(value):
            return literal(value, self.defaults.of(value), span)
        self.fail_type(f"a number is needed here, not {shape_text(value)}", span)

    def cast(self, value: Value, type: Scalar, span: Span) -> Expr:
        """``value`` converted to ``type``; a literal is converted once, from its exact value."""
        if is_number(value):
            if not type.is_float and type != u1:
                value = saturated(value, type)
            return literal(value, type, span)
        expr = self.scalar(value, span)
        return expr if expr.type == type else Cast(expr, type, span=span)

    def meet(self, a: Value, b: Value, span: Span) -> tuple[Expr, Expr]:
        """Both operands in the type in which they meet."""
        type_a = a.type if is_runtime(a) else self.defaults.of(a)
        type_b = b.type if is_runtime(b) else self.defaults.of(b)
        type = promote(type_a, type_b)
        return self.convert(a, type, span), self.convert(b, type, span)

    def convert(self, value: Value, type: Scalar, span: Span) -> Expr:
        """An implicit conversion: as ``cast``, but a literal must fit."""
        return literal(value, type, span) if is_number(value) else self.cast(value, type, span)

    def unary(self, op: type[ast.unaryop], value: Value, span: Span) -> Value:
        if isinstance(value, Vec):
            return self.map_vec(lambda e: self.unary(op, e, span), value)
        if not is_runtime(value):
            if op is ast.Not:
                return not self.decided(value, span)
            if is_number(value):
                return self.python_call(LITERAL_UNARY[op], [value], {}, span)
            self.fail_type(f"this operator needs a number, not {shape_text(value)}", span)
        if op is ast.Not:
            return Unary(UnOp.NOT, self.cast(value, u1, span), u1, span=span)
        if op is ast.UAdd:
            return value
        if op is ast.Invert:
            if value.type.is_float:
                self.fail_type(f"~ needs an integer, not {value.type}", span, "bit_cast it to an integer first")
            return Unary(UnOp.NOT, value, value.type, span=span)
        number = self.cast(value, self.defaults.ip, span) if value.type == u1 else value
        return Unary(UnOp.NEG, number, number.type, span=span)

    def map_vec(self, f: Callable[..., Value], *vecs: Value) -> Vec:
        """``f`` over the components of vectors of one shape; scalars are broadcast."""
        shape = next(v.shape for v in vecs if isinstance(v, Vec))
        count = len(next(v.elems for v in vecs if isinstance(v, Vec)))
        span = self.frame.source.span
        self.effort.take(count)
        columns = [v.elems if isinstance(v, Vec) else (v,) * count for v in vecs]
        return Vec(shape, tuple(self.build.let(self.scalar(f(*row), span)) for row in zip(*columns, strict=True)))

    def binary(self, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
        """``a op b``; vectors go component by component."""
        if op is ast.MatMult:
            return self.matmul(a, b, span)
        if isinstance(a, str) and holds_runtime(b):
            self.fail_type(f"text is of compile time and cannot hold a run-time value: {shape_text(b)}", span)
        if self.joins(op, a, b):
            return self.fold(op, a, b, span)
        if isinstance(a, (Vec, tuple, list)) or isinstance(b, (Vec, tuple, list)):
            a, b = self.broadcast(a, b, span)
            return self.map_vec(lambda x, y: self.binary(op, x, y, span), a, b)
        if not is_runtime(a) and not is_runtime(b):
            return self.fold(op, a, b, span)
        for value in (a, b):
            if not (is_runtime(value) or is_number(value)):
                self.fail_type(f"this operator needs numbers or vectors, not {shape_text(value)}", span)
        return self.runtime_binary(op, a, b, span)

    @staticmethod
    def joins(op: type[ast.operator], a: Value, b: Value) -> bool:
        """Whether this joins or repeats containers, whatever they contain, as in Python."""
        if op is ast.Mult:
            return isinstance(a, (tuple, list)) and isinstance(b, int)
        return op is ast.Add and any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list))

    def fold(self, op: type[ast.AST], a: Value, b: Value, span: Span) -> Value:
        """Compile-time arithmetic, as Python does it; where Python has no real result, as at run time."""
        self.check_size(op, a, b, span)
        numbers = is_number(a) and is_number(b)
        operation = LITERAL.get(op, _PYTHON[op]) if numbers else _PYTHON[op]
        try:
            result = operation(a, b)
        except ArithmeticError:
            if not numbers:
                raise  # out of an object's own code
            if op is ast.Pow and isinstance(b, float):
                return self.runtime_binary(op, a, b, span)
            raise KernelValueError("a literal that no type holds", span, hint="use floats: 2.0 ** 1000.0") from None
        except (TypeError, ValueError):
            hint = "arrays are combined element by element, in a loop" if _arrays(a, b) else ""
            self.fail_type(f"this operator is not defined for {shape_text(a)} and {shape_text(b)}", span, hint)
        return self.runtime_binary(op, a, b, span) if isinstance(result, complex) else result  # type: ignore[arg-type]

    def check_size(self, op: type[ast.AST], a: Value, b: Value, span: Span) -> None:
        """Before Python computes it: numbers that no type could hold, containers that take long to make."""
        if isinstance(a, int) and isinstance(b, int):
            bits = 0
            if op is ast.Pow:
                bits = a.bit_length() * b
            elif op is ast.LShift:
                bits = a.bit_length() + b
            elif op is ast.Mult:
                bits = a.bit_length() + b.bit_length()
            if bits > MOST_BITS:
                how = "power" if op is ast.Pow else "shift" if op is ast.LShift else "product"
                message = f"the result of this {how} of literals has up to {bits:,} bits and fits no type"
                raise KernelValueError(message, span, hint="use floats: 2.0 ** 1000.0")
        elif op in (ast.Add, ast.Mult):
            sizes = [_length(x) or (x if isinstance(x, int) else 1) for x in (a, b)]
            if any(map(_length, (a, b))):
                self.effort.take(sizes[0] * sizes[1] if op is ast.Mult else sum(sizes))

    def python_call(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], span: Span) -> Any:
        """``fn`` of compile-time values; arguments that it does not take are the kernel's error.

        What it goes through counts as work of the compiler; an iterator is what it gives, as a list.
        """
        try:
            if any(fn is known for known in _GO_THROUGH):
                args = [self.counted_items(fn, arg) for arg in args]
            made = fn(*args, **kwargs)
            return list(self.counted(made)) if isinstance(made, Iterator) else made
        except (TypeError, LookupError, AttributeError) as exc:
            self.fail_type(f"there is no key {exc}" if isinstance(exc, KeyError) else str(exc), span)

    def counted_items(self, fn: Callable[..., Any], value: Any) -> Any:
        """``value`` as an argument of a function that goes through its items, each of which is work of the compiler."""
        plain = type(value) in _CONTAINERS or not hasattr(type(value), "__iter__") or hasattr(type(value), "keys")
        if fn is str or plain:
            self.effort.take(_text_length(value) if fn is str else _length(value))
            return value
        return list(self.counted(iter(value)))

    def counted(self, items: Iterator[Any]) -> Iterator[Any]:
        """``items``, each of which is work of the compiler."""
        for item in items:
            self.effort.take(1)
            yield item

    def runtime_binary(self, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
        if op is ast.Pow:
            return self.power(a, b, span)
        if op in _SHIFTS:
            x = self.integer(self.scalar(a, span), span)
            if isinstance(b, int) and not 0 <= b < x.type.bits:  # which x.type may not hold, and shifts everything out
                b = x.type.bits
            y = self.convert(b, x.type, span) if is_number(b) else self.integer(b, span)
            if y.type != x.type:
                y = self.shift_count(y, x.type, span)
            return Binary(_SHIFTS[op], x, y, x.type, span=span)
        if op is ast.Div and self.is_whole(a) and self.is_whole(b):  # each one's own value, whatever its sign
            a, b = self.cast(a, self.defaults.fp, span), self.cast(b, self.defaults.fp, span)
        x, y = self.meet(a, b, span)
        if op in _BITS:
            if x.type.is_float:
                self.fail_type(f"bit operators need integers, not {x.type}", span)
            return Binary(_BITS[op], x, y, x.type, span=span)
        if x.type == u1:
            x, y = self.cast(x, self.defaults.ip, span), self.cast(y, self.defaults.ip, span)
        if x.type.is_float and op in (ast.FloorDiv, ast.Mod):
            return self.library("py_floordiv" if op is ast.FloorDiv else "py_mod", (x, y), span)
        return Binary(_ARITHMETIC[op], x, y, x.type, span=span)

    @staticmethod
    def is_whole(value: Value) -> bool:
        return not value.type.is_float if is_runtime(value) else isinstance(value, int)

    def shift_count(self, count: Expr, type: Scalar, span: Span) -> Expr:
        """A shift count in the type of what is shifted; counts that it cannot hold stay huge or negative."""
        if count.type.bits <= type.bits:
            return self.cast(count, type, span)
        count = self.build.let(count)
        limit = literal(type.bits, count.type, span)
        huge = Compare(CmpOp.GE, count, limit, u1, span=span)
        if count.type.kind == "int":
            negative = Compare(CmpOp.LT, count, literal(0, count.type, span), u1, span=span)
            huge_or_negative: Expr = Binary(BinOp.OR, huge, negative, u1, span=span)
        else:
            huge_or_negative = huge
        return Select(huge_or_negative, literal(type.bits, type, span), self.cast(count, type, span), type, span=span)

    def integer(self, value: Expr, span: Span) -> Expr:
        if value.type.is_float:
            self.fail_type(f"an integer is needed here, not {value.type}", span)
        return self.cast(value, self.defaults.ip, span) if value.type == u1 else value

    def power(self, a: Value, b: Value, span: Span) -> Value:
        """``a ** b``: by repeated squaring for an integer ``b``, else the library's ``pow``."""
        if not self.is_whole(b):
            return self.library("pow", self.meet(a, b, span), span)
        base = self.scalar(a, span)
        if base.type == u1:
            base = self.cast(a, self.defaults.ip, span)
        if isinstance(b, int):
            if b < 0 and not base.type.is_float:
                base = self.cast(a, self.defaults.fp, span)
            if abs(b) <= _LARGEST_UNROLLED_POWER:
                return self.small_power(base, b, span)
            b = literal(b, i64 if b < 0 else u64, span)
        return self.integer_power(base, b, span)

    def small_power(self, base: Expr, exponent: int, span: Span) -> Expr:
        """``base ** exponent`` as a chain of products; where that overflows, a negative one by those of ``1 / base``."""
        one = literal(1, base.type, span)
        if exponent == 0:
            return one
        base = self.build.let(base)
        power = self.squared(base, abs(exponent), span)
        if exponent > 0:
            return power
        inverse = Binary(BinOp.DIV, one, power, base.type, span=span)
        if exponent == -1:
            return inverse
        var = self.build.var("power", base.type, mutable=True)
        self.build.assign(var, inverse, span)
        infinite = Compare(CmpOp.EQ, Unary(UnOp.ABS, power, base.type, span=span),
                           literal(math.inf, base.type, span), u1, span=span)  # fmt: skip
        with self.build.block() as stmts:
            small = self.build.let(Binary(BinOp.DIV, one, base, base.type, span=span))
            self.build.assign(var, self.squared(small, -exponent, span), span)
        self.build.emit(If(infinite, Block(tuple(stmts), span=span), Block((), span=span), span=span))
        return self.build.let(VarRead(var, span=span))

    def squared(self, base: Expr, exponent: int, span: Span) -> Expr:
        """A product for each binary digit of ``exponent`` from the second one on, and one more for each 1."""
        power: Expr = base
        for bit in bin(exponent)[3:]:
            power = self.build.let(Binary(BinOp.MUL, power, power, base.type, span=span))
            if bit == "1":
                power = self.build.let(Binary(BinOp.MUL, power, base, base.type, span=span))
        return power

    def compare(self, op: type[ast.cmpop], a: Value, b: Value, span: Span) -> Value:
        if isinstance(a, Vec) or isinstance(b, Vec):
            a, b = self.broadcast(a, b, span)
            return self.map_vec(lambda x, y: self.compare(op, x, y, span), a, b)
        if not holds_runtime(a) and not holds_runtime(b):
            return self.fold(op, a, b, span)
        for value in (a, b):
            if not (is_runtime(value) or is_number(value)):
                self.fail_type(f"a comparison needs numbers, not {shape_text(value)}", span)
        x, y = self.meet(a, b, span)
        return Compare(_COMPARE[op], x, y, u1, span=span)

    def select(self, cond: Value, then: Value, orelse: Value, span: Span) -> Value:
        """``then`` where ``cond`` holds, else ``orelse``; both are evaluated; vectors component by component."""
        if any(isinstance(v, Vec) for v in (cond, then, orelse)):
            shape = next(v for v in (cond, then, orelse) if isinstance(v, Vec))
            cond, then, orelse = (self.broadcast(v, shape, span)[0] for v in (cond, then, orelse))
            return self.map_vec(lambda c, x, y: self.select(c, x, y, span), cond, then, orelse)
        if not is_runtime(cond):
            return then if self.decided(cond, span) else orelse
        x, y = self.meet(then, orelse, span)
        return Select(self.truth(cond, span), x, y, x.type, span=span)

    def decided(self, value: Value, span: Span) -> bool:
        """The truth of what is known when compiling."""
        if isinstance(value, Vec):
            self.fail_type("a condition is one value, not a vector", span, "use .any() or .all()")
        if is_direct(value):
            self.fail_type(f"a condition is one value, not {shape_text(value)}", span)
        try:
            return bool(value)
        except (TypeError, ValueError) as exc:
            self.fail_type(str(exc), span)

    def truth(self, value: Value, span: Span) -> Expr:
        """A run-time condition: not zero."""
        return self.cast(value if is_runtime(value) else self.decided(value, span), u1, span)

    def broadcast(self, a: Value, b: Value, span: Span) -> tuple[Value, Value]:
        """Lists and tuples as vectors; shapes must agree unless one side is a scalar."""
        a, b = (self.vector(v, span) if isinstance(v, (tuple, list)) else v for v in (a, b))
        if isinstance(a, Vec) and isinstance(b, Vec) and a.shape != b.shape:
            self.fail_type(f"shapes do not agree: {shape_text(a)} and {shape_text(b)}", span)
        return a, b

    def bit_cast(self, value: Value, type: Scalar, span: Span) -> Value:
        if isinstance(value, Vec):
            return self.map_vec(lambda e: self.bit_cast(e, type, span), value)
        expr = self.scalar(value, span)
        if expr.type.bits != type.bits or u1 in (expr.type, type):
            self.fail_type(f"bit_cast needs equal widths: {expr.type} and {type}", span)
        return expr if expr.type == type else BitCast(expr, type, span=span)

    def in_f32(self, f: Callable[..., Value], *args: Expr, span: Span) -> Value:
        """A function of 16-bit floats: computed in f32, rounded once."""
        type = args[0].type
        result = f(*(self.cast(arg, f32, span) for arg in args))
        return self.cast(result, type, span)

    # Supplied by the classes that derive from this one.
    def attribute(self, value: Value, name: str, span: Span) -> Value:
        raise NotImplementedError

    def sum_of(self, items: Sequence[Expr], span: Span) -> Expr:
        raise NotImplementedError

    def matmul(self, a: Value, b: Value, span: Span) -> Value:
        raise NotImplementedError

    def vector(self, items: Any, span: Span, dtype: Scalar | None = None) -> Vec:
        raise NotImplementedError

    def integer_power(self, base: Expr, exponent: Expr, span: Span) -> Value:
        raise NotImplementedError

    def library(self, name: str, args: tuple[Expr, ...], span: Span) -> Value:
        raise NotImplementedError

    def check_index(self, index: int, extent: int, span: Span) -> int:
        """A compile-time index into something of ``extent`` items; negative ones count from the end."""
        if not -extent <= index < extent:
            raise KernelValueError(f"index {index} is out of range for {extent} components", span)
        return index % extent
