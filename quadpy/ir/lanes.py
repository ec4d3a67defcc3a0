"""The values of expressions in each thread of a block, if they follow from the thread's number alone."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.ir import nodes as ir

LaneValues: TypeAlias = tuple[int, ...]
"""An integer or truth of each thread of a block, in order."""

_BINARY: Final[Mapping[ir.BinOp, Callable[[int, int], int]]] = {
    ir.BinOp.ADD: operator.add, ir.BinOp.SUB: operator.sub, ir.BinOp.MUL: operator.mul, ir.BinOp.AND: operator.and_,
    ir.BinOp.OR: operator.or_, ir.BinOp.XOR: operator.xor, ir.BinOp.MIN: min, ir.BinOp.MAX: max,
    ir.BinOp.FLOORDIV: lambda a, b: a // b if b else 0, ir.BinOp.MOD: lambda a, b: a % b if b else 0,
}  # fmt: skip
_SHIFTS: Final[Mapping[ir.BinOp, Callable[[int, int], int]]] = {
    ir.BinOp.SHL: operator.lshift, ir.BinOp.SHR: operator.rshift,
}  # fmt: skip
_COMPARE: Final[Mapping[ir.CmpOp, Callable[[int, int], bool]]] = {
    ir.CmpOp.EQ: operator.eq, ir.CmpOp.NE: operator.ne, ir.CmpOp.LT: operator.lt, ir.CmpOp.LE: operator.le,
    ir.CmpOp.GT: operator.gt, ir.CmpOp.GE: operator.ge,
}  # fmt: skip


def lane_values(e: ir.Expr, known: Mapping[ir.Var, LaneValues], threads: int) -> LaneValues | None:
    """The value of ``e`` in each of the ``threads`` of a block; None if it does not follow from their numbers.

    ``known`` holds the variables whose values are known.
    """
    if not e.type.is_integral:
        return None
    match e:
        case ir.Const(value=value):
            return (int(value),) * threads
        case ir.ThreadIndex():
            return tuple(range(threads))
        case ir.VarRead(var=var):
            return known.get(var)
        case ir.Cast(operand=x, type=t) if x.type.is_integral:
            values = lane_values(x, known, threads)
            return values and tuple(int(v != 0) if t.bits == 1 else _wrapped(v, t) for v in values)
        case ir.Unary(op=ir.UnOp.NOT, operand=x, type=t):
            values = lane_values(x, known, threads)
            return values and tuple(1 - v if t.bits == 1 else _wrapped(~v, t) for v in values)
        case ir.Binary(op=op, lhs=lhs, rhs=rhs, type=t):
            return _pairwise(_operation(op, t), lhs, rhs, known, threads)
        case ir.Compare(op=cmp, lhs=lhs, rhs=rhs):
            return _pairwise(_COMPARE[cmp], lhs, rhs, known, threads)
        case ir.Select(cond=cond, then=a, orelse=b):
            found = [lane_values(each, known, threads) for each in (cond, a, b)]
            conds, thens, others = found
            if conds is None or thens is None or others is None:
                return None
            return tuple(x if c else y for c, x, y in zip(conds, thens, others, strict=True))
        case _:
            return None


def same_in_waves(values: LaneValues, size: int) -> bool:
    """Whether all lanes of each wave of ``size`` threads have one value."""
    return all(len(set(values[first : first + size])) == 1 for first in range(0, len(values), size))


def _operation(op: ir.BinOp, t: Scalar) -> Callable[[int, int], int] | None:
    if (plain := _BINARY.get(op)) is not None:
        return lambda a, b: _wrapped(plain(a, b), t)
    if (shift := _SHIFTS.get(op)) is not None:
        return lambda a, b: _wrapped(shift(a, b if 0 <= b < t.bits else t.bits), t)
    return None


def _pairwise(
    f: Callable[[int, int], int] | None, lhs: ir.Expr, rhs: ir.Expr, known: Mapping[ir.Var, LaneValues], threads: int
) -> LaneValues | None:
    if f is None or (left := lane_values(lhs, known, threads)) is None:
        return None
    right = lane_values(rhs, known, threads)
    return right and tuple(int(f(a, b)) for a, b in zip(left, right, strict=True))


def _wrapped(value: int, t: Scalar) -> int:
    """The low bits of ``value`` as a ``t``."""
    low = value & ((1 << t.bits) - 1)
    return low - (1 << t.bits) if t.kind == "int" and low > t.max_int else low
