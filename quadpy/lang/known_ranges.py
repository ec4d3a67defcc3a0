"""Known ranges of integers at compile time, so that checks that cannot fail are omitted."""

from __future__ import annotations

from dataclasses import field
from typing import Final, TypeAlias

from quadpy.core.dtypes import Scalar, bounds_of
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir

Range: TypeAlias = tuple[int, int]
"""The smallest and the largest value."""

_DEEPEST: Final = 16
_COUNTS: Final = ("clz", "ctz", "popcnt")


@dataclass(slots=True)
class Ranges:
    """``lets`` are the names that the trace gave to values, ``counters`` the loop variables with a positive step."""

    lets: dict[ir.Var, ir.Expr] = field(default_factory=dict)
    counters: dict[ir.Var, ir.Axis] = field(default_factory=dict)

    def add_counter(self, axis: ir.Axis) -> None:
        if isinstance(axis.step, ir.Const) and axis.step.value > 0:
            self.counters[axis.var] = axis

    def of(self, e: ir.Expr, depth: int = 0) -> Range:
        """The values that the integer ``e`` can have."""
        most = bounds_of(e.type)
        found = most if depth > _DEEPEST else self._known(e, depth + 1)
        low, high = found or most
        return found if found is not None and most[0] <= low and high <= most[1] else most

    def _known(self, e: ir.Expr, depth: int) -> Range | None:
        match e:
            case ir.Const(value=value):
                return int(value), int(value)
            case ir.ShapeOf():
                return 0, e.type.max_int
            case ir.VarRead(var=var) if var in self.lets:
                return self.of(self.lets[var], depth)
            case ir.VarRead(var=var) if axis := self.counters.get(var):
                return self.of(axis.start, depth)[0], self.of(axis.stop, depth)[1] - 1
            case ir.Cast(operand=operand) if not operand.type.is_float:
                return self.of(operand, depth)
            case ir.Select(then=then, orelse=orelse):
                (a, b), (c, d) = self.of(then, depth), self.of(orelse, depth)
                return min(a, c), max(b, d)
            case ir.Intrinsic(name=name, args=args) if name in _COUNTS:
                return 0, args[0].type.bits
            case ir.Binary(op=op, lhs=lhs, rhs=rhs) if not e.type.is_float:
                return result_of(op, self.of(lhs, depth), self.of(rhs, depth))
            case _:
                return None

    def is_inside(self, index: ir.Expr, extent: ir.Expr | int) -> bool:
        """Whether ``index`` is certainly one of an axis of ``extent``: by its range, or as a counter up to the extent."""
        low, high = self.of(index)
        if low < 0:
            return False
        least = extent if isinstance(extent, int) else self.of(extent)[0]
        if high < least:
            return True
        base, more = self._sum(index)
        if isinstance(extent, int) or not isinstance(base, ir.VarRead) or base.var not in self.counters:
            return False
        stop, beyond = self._sum(self.counters[base.var].stop)
        return stop == extent and more + beyond <= 0

    def _sum(self, e: ir.Expr) -> tuple[ir.Expr, int]:
        """``e`` as a value and a constant that is added to it, where that cannot overflow."""
        total = 0
        for _ in range(_DEEPEST):
            match e:
                case ir.VarRead(var=var) if var in self.lets:
                    e = self.lets[var]
                case ir.Cast(operand=operand, type=type) if _holds(type, operand.type):
                    e = operand
                case ir.Binary(op=ir.BinOp.ADD, lhs=lhs, rhs=ir.Const(value=value)) if self._is_exact(e):
                    e, total = lhs, total + int(value)
                case ir.Binary(op=ir.BinOp.SUB, lhs=lhs, rhs=ir.Const(value=value)) if self._is_exact(e):
                    e, total = lhs, total - int(value)
                case _:
                    break
        return e, total

    def _is_exact(self, e: ir.Binary) -> bool:
        return self.fits(e.op, e.lhs, e.rhs, e.type)

    def fits(self, op: ir.BinOp, a: ir.Expr, b: ir.Expr, type: Scalar) -> bool:
        """Whether ``a op b`` certainly fits ``type``."""
        found, (low, high) = result_of(op, self.of(a), self.of(b)), bounds_of(type)
        return found is not None and low <= found[0] and found[1] <= high


def result_of(op: ir.BinOp, a: Range, b: Range) -> Range | None:
    """The exact results of ``op`` over all values of two ranges; None where that is not known."""
    match op:
        case ir.BinOp.ADD:
            return a[0] + b[0], a[1] + b[1]
        case ir.BinOp.SUB:
            return a[0] - b[1], a[1] - b[0]
        case ir.BinOp.MUL:
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case ir.BinOp.FLOORDIV if b[0] > 0:
            quotients = [x // y for x in a for y in b]
            return min(quotients), max(quotients)
        case ir.BinOp.MOD if b[0] > 0:
            return (0, min(a[1], b[1] - 1)) if a[0] >= 0 else (0, b[1] - 1)
        case ir.BinOp.AND if b[0] >= 0:
            return 0, b[1]
        case ir.BinOp.SHR if a[0] >= 0:
            return 0, a[1]
        case ir.BinOp.MIN:
            return min(a[0], b[0]), min(a[1], b[1])
        case ir.BinOp.MAX:
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None


def _holds(type: Scalar, other: Scalar) -> bool:
    (low, high), (least, greatest) = bounds_of(type), bounds_of(other)
    return not type.is_float and not other.is_float and low <= least and greatest <= high
