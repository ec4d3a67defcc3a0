"""The derivative of every operation of floats, as expressions.

A ``Change`` takes a small change of one operand to that of the result.  It is linear; therefore, it also takes the adjoint of the result
to what the operand's adjoint gets.  Where a function is not smooth: ``abs`` has the derivative 0 at 0, ``min`` and ``max`` follow
the operand that was taken, of equal ones the first, rounding has the derivative 0, ``sqrt`` and ``hypot`` have 0 at 0 (so
that the norm of a zero vector has), and ``atan2`` has 0 at (0, 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.maths import Maths, both

Change: TypeAlias = Callable[[ir.Expr], ir.Expr]
Changes: TypeAlias = tuple[Change | None, ...]
"""One for each operand; None where changes of that operand do not change the result."""


def changes_of(node: ir.Expr, operands: Sequence[ir.Expr], result: ir.Expr, m: Maths) -> Changes:
    """How ``node`` changes with its children; ``operands`` are their values, ``result`` its own, all in the type of ``m``.

    Conditions and integers stay as they are.

    Raises:
        KernelTypeError: quadpy knows no derivative of this operation.
    """
    match node:
        case ir.Unary(op=op):
            return (_unary(op, operands[0], result, m),)
        case ir.Binary(op=op):
            a, b = operands
            return _binary(op, a, b, result, m)
        case ir.Select():
            return (None, *_chosen(operands[0], m))
        case ir.Pick(items=items):
            at = operands[-1]
            hits = (m.compare(ir.CmpOp.EQ, at, ir.Const(k, at.type, span=m.span)) for k in range(len(items)))
            return (*(_if(hit, m) for hit in hits), None)
        case ir.Cast():
            return (_same,)
        case ir.Intrinsic(name=name):
            return _named(INSTRUCTIONS, name, node)(*operands, result, m)
        case ir.Call(function=function):
            return _named(LIBRARY, library_name(function), node)(*operands, result, m)
        case _:
            return ()


def library_name(function: str) -> str:
    """The name in the library of a function of a kernel, such as ``sin`` for ``fast_sin.f32``."""
    return function.partition(".")[0].removeprefix("fast_")


def _named(table: Mapping[str, Callable[..., Changes]], name: str, node: ir.Expr) -> Callable[..., Changes]:
    if (rule := table.get(name)) is None:
        raise KernelTypeError(f"quadpy knows no derivative of {name}", node.span)
    return rule


def _same(d: ir.Expr) -> ir.Expr:
    return d


def _if(cond: ir.Expr, m: Maths) -> Change:
    return lambda d: m.only_if(cond, d)


def _times(factor: ir.Expr, m: Maths) -> Change:
    return lambda d: m.mul(d, factor)


def _over(divisor: ir.Expr, m: Maths) -> Change:
    return lambda d: m.div(d, divisor)


def _chosen(first: ir.Expr, m: Maths) -> tuple[Change, Change]:
    """Of a choice between two operands."""
    return (lambda d: m.only_if(first, d)), (lambda d: m.select(first, m.number(0), d))


def _unless(cond: ir.Expr, change: Change, m: Maths) -> Change:
    """0 where ``cond`` holds, whatever ``change`` would give there."""
    return lambda d: m.select(cond, m.number(0), change(d))


def _is_zero(x: ir.Expr, m: Maths) -> ir.Expr:
    return m.compare(ir.CmpOp.EQ, x, m.number(0))


# ------------------------------------------------------------------ operators


def _unary(op: ir.UnOp, x: ir.Expr, result: ir.Expr, m: Maths) -> Change | None:
    match op:
        case ir.UnOp.NEG:
            return m.neg
        case ir.UnOp.ABS:
            less, more = (m.compare(way, x, m.number(0)) for way in (ir.CmpOp.LT, ir.CmpOp.GT))
            return lambda d: m.select(less, m.neg(d), m.only_if(more, d))
        case ir.UnOp.SQRT:
            return _unless(_is_zero(x, m), _over(m.mul(m.number(2), result), m), m)
        case _:
            return None


def _binary(op: ir.BinOp, a: ir.Expr, b: ir.Expr, result: ir.Expr, m: Maths) -> Changes:
    match op:
        case ir.BinOp.ADD:
            return _same, _same
        case ir.BinOp.SUB:
            return _same, m.neg
        case ir.BinOp.MUL:
            return _times(b, m), _times(a, m)
        case ir.BinOp.DIV:
            return _over(b, m), lambda d: m.neg(m.div(m.mul(d, result), b))
        case ir.BinOp.MIN | ir.BinOp.MAX:
            return _chosen(m.compare(ir.CmpOp.EQ, result, a), m)
        case _:
            return None, None


# ------------------------------------------------------------------ instructions


def _copysign(x: ir.Expr, y: ir.Expr, result: ir.Expr, m: Maths) -> Changes:
    one = m.number(1)
    kept, wanted = (ir.Intrinsic("copysign", (one, each), m.type, span=m.span) for each in (x, y))
    return _times(m.mul(kept, wanted), m), None


INSTRUCTIONS: Final[Mapping[str, Callable[..., Changes]]] = {
    "copysign": _copysign,
    "fma": lambda x, y, z, r, m: (_times(y, m), _times(x, m), _same),
}
"""The rows of ``quadpy.intrinsics`` that take floats: operands, the result, and the ``Maths``."""


# ------------------------------------------------------------------ the math library


def _slope(factor: Callable[[ir.Expr, ir.Expr, Maths], ir.Expr]) -> Callable[..., Changes]:
    """A function of one number whose derivative is ``factor`` of the number and the result."""
    return lambda x, r, m: (_times(factor(x, r, m), m),)


def _inverse(divisor: Callable[[ir.Expr, ir.Expr, Maths], ir.Expr]) -> Callable[..., Changes]:
    """The same, divided by ``divisor``."""
    return lambda x, r, m: (_over(divisor(x, r, m), m),)


def _circle(x: ir.Expr, r: ir.Expr, m: Maths) -> ir.Expr:
    """The square root of 1 - x², exact near 1."""
    return m.sqrt(_unit(x, r, m))


def _unit(x: ir.Expr, r: ir.Expr, m: Maths) -> ir.Expr:
    one = m.number(1)
    return m.mul(m.sub(one, x), m.add(one, x))


def _gauss(factor: float) -> Callable[..., Changes]:
    return _slope(lambda x, r, m: m.mul(m.number(factor), m.call("exp", m.neg(m.square(x)))))


def _j1(x: ir.Expr, r: ir.Expr, m: Maths) -> Changes:
    elsewhere = m.sub(m.call("j0", x), m.div(r, x))
    return (_times(m.select(_is_zero(x, m), m.number(0.5), elsewhere), m),)


def _atan2(y: ir.Expr, x: ir.Expr, r: ir.Expr, m: Maths) -> Changes:
    length = m.call("hypot", x, y)
    origin = _is_zero(length, m)

    def part(factor: ir.Expr) -> Change:
        return _unless(origin, lambda d: m.div(m.mul(d, m.div(factor, length)), length), m)

    return part(x), part(m.neg(y))


def _hypot(x: ir.Expr, y: ir.Expr, r: ir.Expr, m: Maths) -> Changes:
    origin = _is_zero(r, m)
    return _unless(origin, _times(m.div(x, r), m), m), _unless(origin, _times(m.div(y, r), m), m)


def _pow(x: ir.Expr, y: ir.Expr, r: ir.Expr, m: Maths) -> Changes:
    """x**0 is 1 for every x, and 0**y is 0 for all positive y."""
    base = _times(m.mul(y, m.call("pow", x, m.sub(y, m.number(1)))), m)
    vanishes = both(_is_zero(x, m), m.compare(ir.CmpOp.GT, y, m.number(0)))
    return _unless(_is_zero(y, m), base, m), _unless(vanishes, _times(m.mul(r, m.call("log", x)), m), m)


def _remainder(quotient: Callable[[Maths, ir.Expr], ir.Expr]) -> Callable[..., Changes]:
    return lambda x, y, r, m: (_same, _times(m.neg(quotient(m, m.div(m.sub(x, r), y))), m))


def _rint(m: Maths, x: ir.Expr) -> ir.Expr:
    return ir.Unary(ir.UnOp.RINT, x, m.type, span=m.span)


_cosine = _slope(lambda x, r, m: m.call("cos", x))
_root = _slope(lambda x, r, m: m.mul(m.mul(m.number(-0.5), r), m.square(r)))  # no division: n-body loops live on it

LIBRARY: Final[Mapping[str, Callable[..., Changes]]] = {
    "sin": _cosine,
    "cos": _slope(lambda x, r, m: m.neg(m.call("sin", x))),
    "tan": _slope(lambda x, r, m: m.add(m.number(1), m.square(r))),
    "asin": _inverse(_circle),
    "acos": _inverse(lambda x, r, m: m.neg(_circle(x, r, m))),
    "atan": _inverse(lambda x, r, m: m.add(m.number(1), m.square(x))),
    "sinh": _slope(lambda x, r, m: m.call("cosh", x)),
    "cosh": _slope(lambda x, r, m: m.call("sinh", x)),
    "tanh": _slope(lambda x, r, m: _unit(r, x, m)),
    "asinh": _inverse(lambda x, r, m: m.call("hypot", x, m.number(1))),
    "acosh": _inverse(lambda x, r, m: m.mul(m.sqrt(m.sub(x, m.number(1))), m.sqrt(m.add(x, m.number(1))))),
    "atanh": _inverse(_unit),
    "exp": _slope(lambda x, r, m: r),
    "exp2": _slope(lambda x, r, m: m.mul(r, m.number(math.log(2)))),
    "exp10": _slope(lambda x, r, m: m.mul(r, m.number(math.log(10)))),
    "expm1": _slope(lambda x, r, m: m.add(r, m.number(1))),
    "log": _inverse(lambda x, r, m: x),
    "log2": _inverse(lambda x, r, m: m.mul(x, m.number(math.log(2)))),
    "log10": _inverse(lambda x, r, m: m.mul(x, m.number(math.log(10)))),
    "log1p": _inverse(lambda x, r, m: m.add(x, m.number(1))),
    "rsqrt": _root,
    "inverse_root": _root,
    "cbrt": _inverse(lambda x, r, m: m.mul(m.number(3), m.square(r))),
    "erf": _gauss(2 / math.sqrt(math.pi)),
    "erfc": _gauss(-2 / math.sqrt(math.pi)),
    "j0": _slope(lambda x, r, m: m.neg(m.call("j1", x))),
    "j1": _j1,
    "atan2": _atan2,
    "hypot": _hypot,
    "pow": _pow,
    "fmod": _remainder(_rint),
    "py_mod": _remainder(_rint),
    "py_floordiv": lambda x, y, r, m: (None, None),
}
"""The functions of ``quadpy.mathlib`` that kernels call: operands, the result, and the ``Maths``.

``tgamma`` and ``lgamma`` are not among them: the library has no digamma function.
"""
