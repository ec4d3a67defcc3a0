"""Expressions of the IR: pure and scalar, with their operators and types; and the places that statements access."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from quadpy.core.dtypes import Scalar, i32, u1
from quadpy.core.light import dataclass
from quadpy.ir.node import Node, Pure

__all__ = [
    "AtomicOp", "BinOp", "Binary", "BitCast", "BlockIndex", "COMBINES", "Call", "Cast", "CmpOp", "Compare", "Const",
    "Element", "Expr", "Intrinsic", "ParamRead", "Pick", "Place", "Select", "ShapeOf", "Slot", "SlotRead", "Term", "ThreadIndex", "UnOp", "Unary", "Var",
    "VarRead", "slot_name",
]  # fmt: skip


class UnOp(enum.Enum):
    """``NEG`` and ``ABS`` wrap for integers; ``NOT`` inverts bits (logical for u1); the others take floats."""

    NEG = "neg"
    NOT = "not"
    ABS = "abs"
    SQRT = "sqrt"
    FLOOR = "floor"
    CEIL = "ceil"
    TRUNC = "trunc"
    RINT = "rint"


class BinOp(enum.Enum):
    """Both operands and the result have one type, which is the node's.

    ``DIV`` is true division (floats).  ``FLOORDIV`` and ``MOD`` (integers) follow Python's sign, ``RAWDIV``
    and ``RAWMOD`` C's; by zero all four are 0, and the smallest integer by -1 wraps.  ``SHR`` keeps the sign of
    a signed value, ``USHR`` does not; a count of the width or more, or a negative one, shifts everything out.
    ``MIN`` and ``MAX`` are IEEE 754-2019 minimumNumber and maximumNumber.
    """

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    FLOORDIV = "floordiv"
    MOD = "mod"
    RAWDIV = "rawdiv"
    RAWMOD = "rawmod"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"
    USHR = "ushr"
    MIN = "min"
    MAX = "max"


class CmpOp(enum.Enum):
    """Ordered comparisons, except ``NE``, which is true where an operand is NaN."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


class AtomicOp(enum.Enum):
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCHANGE = "exchange"
    CAS = "cas"


COMBINES: Final[dict[AtomicOp, BinOp]] = {
    op: BinOp(op.value) for op in AtomicOp if op not in (AtomicOp.EXCHANGE, AtomicOp.CAS)
}
"""How an atomic operation computes the new value from the old one; exchange and compare-and-swap are not included."""


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar variable; ``name`` is unique in its kernel or function."""

    name: str
    type: Scalar

    def __hash__(self) -> int:
        """That of the name, which Python keeps: a large kernel looks variables up millions of times."""
        return hash(self.name)


def _joins(op: BinOp) -> Callable[[Any, Expr | float], Binary]:
    return lambda a, b: Binary(op, a, as_operand(b, a), a.type, span=a.span)


def _joins_number(op: BinOp) -> Callable[[Any, float], Binary]:
    return lambda b, a: Binary(op, as_operand(a, b), b, b.type, span=b.span)


def _compares(op: CmpOp) -> Callable[[Any, Expr | float], Compare]:
    return lambda a, b: Compare(op, a, as_operand(b, a), u1, span=a.span)


def _changes(op: UnOp) -> Callable[[Any], Unary]:
    return lambda a: Unary(op, a, a.type, span=a.span)


class Term:
    """An expression: Python's operators combine it with one of the same type, or with a number.

    Each makes one node and simplifies nothing; its place in the source is that of the left expression.  ``==`` asks whether
    two expressions are the same: the comparisons are ``eq`` and ``ne``.
    """

    __slots__ = ()
    __add__, __radd__ = _joins(BinOp.ADD), _joins_number(BinOp.ADD)
    __sub__, __rsub__ = _joins(BinOp.SUB), _joins_number(BinOp.SUB)
    __mul__, __rmul__ = _joins(BinOp.MUL), _joins_number(BinOp.MUL)
    __truediv__, __rtruediv__ = _joins(BinOp.DIV), _joins_number(BinOp.DIV)
    __floordiv__, __mod__ = _joins(BinOp.FLOORDIV), _joins(BinOp.MOD)
    __and__, __or__, __xor__ = _joins(BinOp.AND), _joins(BinOp.OR), _joins(BinOp.XOR)
    __lshift__, __rlshift__ = _joins(BinOp.SHL), _joins_number(BinOp.SHL)
    __rshift__ = _joins(BinOp.SHR)
    __neg__, __invert__ = _changes(UnOp.NEG), _changes(UnOp.NOT)
    __lt__, __le__ = _compares(CmpOp.LT), _compares(CmpOp.LE)
    __gt__, __ge__ = _compares(CmpOp.GT), _compares(CmpOp.GE)
    eq, ne = _compares(CmpOp.EQ), _compares(CmpOp.NE)


def as_operand(value: Expr | float, like: Expr) -> Expr:
    """``value`` as the other operand of ``like``: a number becomes a constant of its type."""
    if not isinstance(value, Term):
        return Const(like.type(value), like.type, span=like.span)
    if value.type != like.type:
        raise TypeError(f"an operation of {like.type} and {value.type}: cast one of them")
    return value


@dataclass(frozen=True, slots=True)
class Const(Term, Pure):
    value: int | float | bool
    type: Scalar


@dataclass(frozen=True, slots=True)
class ParamRead(Term, Pure):
    """A scalar parameter of the kernel, or a parameter of a function."""

    name: str
    type: Scalar


@dataclass(frozen=True, slots=True)
class ShapeOf(Term, Pure):
    """The run-time extent of one axis of an array parameter; its type is the kernel's index type."""

    array: str
    axis: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class VarRead(Term, Pure):
    var: Var

    @property
    def type(self) -> Scalar:
        return self.var.type


@dataclass(frozen=True, slots=True)
class Unary(Term, Pure):
    CHILDREN = ("operand",)
    op: UnOp
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Binary(Term, Pure):
    CHILDREN = ("lhs", "rhs")
    op: BinOp
    lhs: Expr
    rhs: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Compare(Term, Pure):
    """Two operands of one type; the result is ``u1``."""

    CHILDREN = ("lhs", "rhs")
    op: CmpOp
    lhs: Expr
    rhs: Expr
    type: Scalar

    def __bool__(self) -> NoReturn:
        raise TypeError("a comparison of the IR has no value yet: use build.select, build.maximum, or is not None")


@dataclass(frozen=True, slots=True)
class Select(Term, Pure):
    """``then`` if ``cond`` holds, otherwise ``orelse``; both are evaluated."""

    CHILDREN = ("cond", "then", "orelse")
    cond: Expr
    then: Expr
    orelse: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Pick(Term, Pure):
    """The item whose number is ``at``, an integer; 0 where there is none.

    ``items`` are variables, which a target keeps in memory, or values that do not change.
    """

    CHILDREN = ("items", "at")
    items: tuple[Expr, ...]
    at: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Cast(Term, Pure):
    """Value conversion.  Float to integer truncates and saturates, NaN becomes 0; a ``u1`` says whether it was not 0."""

    CHILDREN = ("operand",)
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class BitCast(Term, Pure):
    """The same bits as another type of the same width."""

    CHILDREN = ("operand",)
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Intrinsic(Term, Pure):
    """A pure operation that targets have instructions for: a row of ``quadpy.intrinsics.INSTRUCTIONS``."""

    CHILDREN = ("args",)
    name: str
    args: tuple[Expr, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class Call(Term, Pure):
    """A pure ``Function`` of the kernel with one result."""

    CHILDREN = ("args",)
    function: str
    args: tuple[Expr, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class Element(Pure):
    """One scalar of an array, shared ones too: one index per axis, and the component of the element (row-major).

    ``chosen``, an i64, is a run-time offset in components, within one member; only passes of a target make such
    elements.
    """

    CHILDREN = ("index", "chosen")
    array: str
    index: tuple[Expr, ...]
    component: int
    type: Scalar
    chosen: Expr | None = None


@dataclass(frozen=True, slots=True)
class Slot(Pure):
    """Eight bytes of the kernel's scratch memory; the first slots are the kernel's results."""

    number: int
    type: Scalar


Place: TypeAlias = Element | Slot


def slot_name(number: int) -> str:
    """The name of a slot, which represents a variable among array names: no array has such a name."""
    return f"${number}"


@dataclass(frozen=True, slots=True)
class SlotRead(Term, Node):
    """The value of a slot when the task starts; only in the axes of a parallel loop."""

    READS, WRITES, BINDS, ORDERS = ("place",), (), (), ()
    number: int
    type: Scalar

    @property
    def place(self) -> Slot:
        return Slot(self.number, self.type, span=self.span)


@dataclass(frozen=True, slots=True)
class ThreadIndex(Term, Pure):
    """The number of this iteration in its block: its number in order, modulo ``block_dim``."""

    type: Scalar = i32


@dataclass(frozen=True, slots=True)
class BlockIndex(Term, Pure):
    """The number of this iteration's block, with ``block_dim`` iterations per block in order."""

    type: Scalar = i32


Expr: TypeAlias = (
    Const
    | ParamRead
    | ShapeOf
    | VarRead
    | SlotRead
    | Unary
    | Binary
    | Compare
    | Select
    | Pick
    | Cast
    | BitCast
    | Intrinsic
    | Call
    | ThreadIndex
    | BlockIndex
)
