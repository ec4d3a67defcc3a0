"""Expressions of the IR: pure and scalar, with their operators and types; and the places that statements access."""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

from quadpy.dtypes import Scalar, i32
from quadpy.ir.node import Node, Pure
from quadpy.light import dataclass

__all__ = [
    "AtomicOp", "BinOp", "Binary", "BitCast", "BlockIndex", "COMBINES", "Call", "Cast", "CmpOp", "Compare", "Const",
    "Element", "Expr", "Intrinsic", "ParamRead", "Pick", "Place", "Select", "ShapeOf", "Slot", "SlotRead", "ThreadIndex", "UnOp", "Unary", "Var",
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


@dataclass(frozen=True, slots=True)
class Const(Pure):
    value: int | float | bool
    type: Scalar


@dataclass(frozen=True, slots=True)
class ParamRead(Pure):
    """A scalar parameter of the kernel, or a parameter of a function."""

    name: str
    type: Scalar


@dataclass(frozen=True, slots=True)
class ShapeOf(Pure):
    """The run-time extent of one axis of an array parameter; its type is the kernel's index type."""

    array: str
    axis: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class VarRead(Pure):
    var: Var

    @property
    def type(self) -> Scalar:
        return self.var.type


@dataclass(frozen=True, slots=True)
class Unary(Pure):
    CHILDREN = ("operand",)
    op: UnOp
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Binary(Pure):
    CHILDREN = ("lhs", "rhs")
    op: BinOp
    lhs: Expr
    rhs: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Compare(Pure):
    """Two operands of one type; the result is ``u1``."""

    CHILDREN = ("lhs", "rhs")
    op: CmpOp
    lhs: Expr
    rhs: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Select(Pure):
    """``then`` if ``cond`` holds, otherwise ``orelse``; both are evaluated."""

    CHILDREN = ("cond", "then", "orelse")
    cond: Expr
    then: Expr
    orelse: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Pick(Pure):
    """The item whose number is ``at``, an integer; 0 where there is none.

    ``items`` are variables, which a target keeps in memory, or values that do not change.
    """

    CHILDREN = ("items", "at")
    items: tuple[Expr, ...]
    at: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Cast(Pure):
    """Value conversion.  Float to integer truncates and saturates, NaN becomes 0; a ``u1`` says whether it was not 0."""

    CHILDREN = ("operand",)
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class BitCast(Pure):
    """The same bits as another type of the same width."""

    CHILDREN = ("operand",)
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Intrinsic(Pure):
    """A pure operation that targets have instructions for: a row of ``quadpy.intrinsics.INSTRUCTIONS``."""

    CHILDREN = ("args",)
    name: str
    args: tuple[Expr, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class Call(Pure):
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
class SlotRead(Node):
    """The value of a slot when the task starts; only in the axes of a parallel loop."""

    READS, WRITES, BINDS, ORDERS = ("place",), (), (), ()
    number: int
    type: Scalar

    @property
    def place(self) -> Slot:
        return Slot(self.number, self.type, span=self.span)


@dataclass(frozen=True, slots=True)
class ThreadIndex(Pure):
    """The number of this iteration in its block: its number in order, modulo ``block_dim``."""

    type: Scalar = i32


@dataclass(frozen=True, slots=True)
class BlockIndex(Pure):
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
