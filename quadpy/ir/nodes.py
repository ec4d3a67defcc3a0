"""The nodes of the IR: typed, frozen, structured, each with its place in the user's file.

Expressions are pure and scalar: vectors are taken apart by the front end (docs/adr/0001).  All that
reads or writes memory is a statement, so the order of effects is the order of statements.  A kernel is a
sequence of tasks, each of which is one launch; what crosses from task to task lives in numbered slots of
the kernel's scratch memory, the first of which are its results.

Imports: ``ir.types`` and leaves only.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from quadpy.dtypes import Scalar, i32
from quadpy.ir.flow import Flow, Fork, Loop
from quadpy.ir.types import Array
from quadpy.source import Span

__all__ = [
    "Access", "ArrayParam", "Assign", "Atomic", "AtomicOp", "Axis", "Barrier", "BinOp", "Binary", "BitCast", "Block",
    "BlockIndex", "Break", "Call", "CallMany", "Cast", "CmpOp", "Compare", "Const", "Continue", "DoWhile", "Element", "Expr", "Fence", "Flow", "For", "Fork", "Function",
    "If",
    "Intrinsic", "Kernel", "Leave", "Let", "Load", "Loop", "Node", "Param", "ParamRead", "ParallelFor", "ParallelTask",
    "Place", "Region", "Reduction", "Return", "ScalarParam", "Sections", "Select", "SerialTask", "ShapeOf", "SharedArray",
    "Slot", "SlotRead", "Stmt", "Store", "Task", "ThreadIndex", "UnOp", "Unary", "Var", "VarRead", "While",
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
    and ``RAWMOD`` C's; by zero all four are 0, and the least integer by -1 wraps.  ``SHR`` keeps the sign of
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


class Access(enum.Flag):
    """What a task does with an array."""

    READ = enum.auto()
    WRITE = enum.auto()
    ATOMIC = enum.auto()


@dataclass(frozen=True, slots=True)
class Node:
    """``CHILDREN`` names the fields that hold nodes or tuples of nodes: all that a traversal needs to know."""

    CHILDREN: ClassVar[tuple[str, ...]] = ()
    span: Span = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar variable; ``name`` is unique in its kernel or function."""

    name: str
    type: Scalar


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Const(Node):
    value: int | float | bool
    type: Scalar


@dataclass(frozen=True, slots=True)
class ParamRead(Node):
    """A scalar parameter of the kernel, or a parameter of a function."""

    name: str
    type: Scalar


@dataclass(frozen=True, slots=True)
class ShapeOf(Node):
    """The run-time extent of one axis of an array parameter; its type is the kernel's index type."""

    array: str
    axis: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class VarRead(Node):
    var: Var

    @property
    def type(self) -> Scalar:
        return self.var.type


@dataclass(frozen=True, slots=True)
class Unary(Node):
    CHILDREN = ("operand",)
    op: UnOp
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Binary(Node):
    CHILDREN = ("lhs", "rhs")
    op: BinOp
    lhs: Expr
    rhs: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """Two operands of one type; the result is ``u1``."""

    CHILDREN = ("lhs", "rhs")
    op: CmpOp
    lhs: Expr
    rhs: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Select(Node):
    """``then`` or ``orelse``; both are evaluated."""

    CHILDREN = ("cond", "then", "orelse")
    cond: Expr
    then: Expr
    orelse: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """Value conversion.  Float to integer truncates and saturates, NaN gives 0; to ``u1`` asks "not zero"."""

    CHILDREN = ("operand",)
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class BitCast(Node):
    """The same bits as another type of the same width."""

    CHILDREN = ("operand",)
    operand: Expr
    type: Scalar


@dataclass(frozen=True, slots=True)
class Intrinsic(Node):
    """A pure operation that every target has: ``fma``, ``copysign``, ``popcnt``, ``clz``, ``ctz``, ``mulhi``."""

    CHILDREN = ("args",)
    name: str
    args: tuple[Expr, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A pure ``Function`` of the kernel with one result."""

    CHILDREN = ("args",)
    function: str
    args: tuple[Expr, ...]
    type: Scalar


@dataclass(frozen=True, slots=True)
class SlotRead(Node):
    """What a slot holds when the task starts; in the axes of a parallel loop only."""

    number: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class ThreadIndex(Node):
    """The number of this iteration in its block: of the iterations in order, modulo ``block_dim``."""

    type: Scalar = i32


@dataclass(frozen=True, slots=True)
class BlockIndex(Node):
    """The number of this iteration's block: of the iterations in order, ``block_dim`` a block."""

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
    | Cast
    | BitCast
    | Intrinsic
    | Call
    | ThreadIndex
    | BlockIndex
)

# --------------------------------------------------------------------- places


@dataclass(frozen=True, slots=True)
class Element(Node):
    """One scalar of an array, shared ones too: an index an axis, and the component of the element (row-major)."""

    CHILDREN = ("index",)
    array: str
    index: tuple[Expr, ...]
    component: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Slot(Node):
    """Eight bytes of the kernel's scratch memory; the first slots are the kernel's results."""

    number: int
    type: Scalar


Place: TypeAlias = Element | Slot

# ----------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Let(Node):
    """Binds ``var`` once, for the statements that follow in this block and below it."""

    CHILDREN = ("value",)
    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """Sets a mutable variable, which is 0 at the start of its iteration (or serial task, or function)."""

    CHILDREN = ("value",)
    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Load(Node):
    """Binds ``var`` once, to what ``place`` holds now."""

    CHILDREN = ("place",)
    var: Var
    place: Place


@dataclass(frozen=True, slots=True)
class Store(Node):
    CHILDREN = ("place", "value")
    place: Place
    value: Expr


@dataclass(frozen=True, slots=True)
class Atomic(Node):
    """Read-modify-write in one step; binds ``result``, where there is one, to the old value.

    ``expected`` belongs to ``CAS`` alone.  Relaxed, and visible to the whole device.
    """

    CHILDREN = ("place", "value", "expected")
    op: AtomicOp
    place: Place
    value: Expr
    result: Var | None = None
    expected: Expr | None = None


@dataclass(frozen=True, slots=True)
class CallMany(Node):
    """Binds ``results`` once each, to the results of a pure ``Function``."""

    CHILDREN = ("args",)
    results: tuple[Var, ...]
    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    CHILDREN = ("cond", "then", "orelse")
    cond: Expr
    then: Block
    orelse: Block


@dataclass(frozen=True, slots=True)
class For(Node):
    """A sequential loop; ``start``, ``stop`` and ``step`` are evaluated once, a step of 0 runs no iteration.

    ``var`` is bound anew for each iteration and is not assigned in the body.
    """

    CHILDREN = ("start", "stop", "step", "body")
    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class While(Node):
    """``head`` and then ``cond`` are evaluated before each iteration; a ``Continue`` goes to ``head``."""

    CHILDREN = ("head", "cond", "body")
    head: Block
    cond: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class Break(Node):
    """Leaves the innermost ``For`` or ``While``."""


@dataclass(frozen=True, slots=True)
class Continue(Node):
    """Ends this iteration of the innermost ``For`` or ``While``, or of the parallel loop where there is none."""


@dataclass(frozen=True, slots=True)
class Region(Node):
    """A block that ``Leave`` may end early: the body of an inlined function with a ``return`` in it."""

    CHILDREN = ("body",)
    label: str
    body: Block


@dataclass(frozen=True, slots=True)
class Leave(Node):
    label: str


@dataclass(frozen=True, slots=True)
class Return(Node):
    """Ends a ``Function`` with its results, or sets the results of a kernel (in its last serial task)."""

    CHILDREN = ("values",)
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Barrier(Node):
    """All iterations of a block come here before one goes on; what they wrote before is seen after.

    In control flow that is uniform in a block: see ``ir.uniform``.
    """


@dataclass(frozen=True, slots=True)
class Fence(Node):
    """What this iteration wrote before is seen by its block before what it writes after."""


@dataclass(frozen=True, slots=True)
class SharedArray(Node):
    """An array of which each block of a parallel loop has its own; what nobody wrote is some value of the type."""

    name: str
    type: Array


@dataclass(frozen=True, slots=True)
class Axis(Node):
    """One axis of a parallel loop: ``var`` takes ``start``, ``start + step``, … below (or above) ``stop``.

    The three are launch-uniform: built from constants, scalar parameters, extents and slots only.
    """

    CHILDREN = ("start", "stop", "step")
    var: Var
    start: Expr
    stop: Expr
    step: Expr


@dataclass(frozen=True, slots=True)
class ParallelFor(Node):
    """A top-level loop before tasks are split: iterations in any order, the last axis fastest."""

    CHILDREN = ("axes", "body", "shared")
    axes: tuple[Axis, ...]
    body: Block
    block_dim: int | None = None
    name: str | None = None
    shared: tuple[SharedArray, ...] = ()


@dataclass(frozen=True, slots=True)
class Sections(Node):
    """Blocks of a kernel's top level that run at once; there before tasks are split only, as is ``DoWhile``."""

    CHILDREN = ("branches",)
    branches: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class DoWhile(Node):
    """``body``, and again while element 0 of the array parameter ``condition`` is not 0."""

    CHILDREN = ("body",)
    condition: str
    body: Block


Stmt: TypeAlias = (
    Let | Assign | Load | Store | Atomic | CallMany | If | For | While | Break | Continue | Region | Leave | Return
    | ParallelFor | Barrier | Fence | Sections | DoWhile
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block(Node):
    CHILDREN = ("stmts",)
    stmts: tuple[Stmt, ...]


# ------------------------------------------------------------ tasks and kernels


@dataclass(frozen=True, slots=True)
class Reduction(Node):
    """``place op= var`` after the loop, for a ``var`` that each iteration accumulates into.

    ``var`` starts as the identity of ``op``.  How the iterations are grouped is fixed by their number alone:
    see ``codegen.reduction``.
    """

    CHILDREN = ("place",)
    op: AtomicOp
    place: Place
    var: Var


@dataclass(frozen=True, slots=True)
class SerialTask(Node):
    """Statements that one thread runs."""

    CHILDREN = ("body",)
    name: str
    body: Block
    effects: tuple[tuple[str, Access], ...] = ()


@dataclass(frozen=True, slots=True)
class ParallelTask(Node):
    """A parallel loop: one launch.

    ``privates`` names small arrays that the loop only accumulates into, each with its operation: the target
    may give groups of iterations copies of their own and merge them in order.  ``shared`` are the arrays of which
    each block of ``block_dim`` iterations has its own.
    """

    CHILDREN = ("axes", "body", "reductions", "shared")
    name: str
    axes: tuple[Axis, ...]
    body: Block
    effects: tuple[tuple[str, Access], ...] = ()
    reductions: tuple[Reduction, ...] = ()
    privates: tuple[tuple[str, AtomicOp], ...] = ()
    block_dim: int | None = None
    shared: tuple[SharedArray, ...] = ()


Task: TypeAlias = SerialTask | ParallelTask


@dataclass(frozen=True, slots=True)
class ScalarParam(Node):
    name: str
    type: Scalar


@dataclass(frozen=True, slots=True)
class ArrayParam(Node):
    """An array that the caller passes, or a field that the kernel names (``is_field``)."""

    name: str
    type: Array
    is_field: bool = False


Param: TypeAlias = ScalarParam | ArrayParam


@dataclass(frozen=True, slots=True)
class Function(Node):
    """A pure function over scalars, from the math library; always inlined by the target."""

    CHILDREN = ("body",)
    name: str
    params: tuple[Var, ...]
    results: tuple[Scalar, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Kernel(Node):
    """What code generation gets.

    ``index`` is i32, or i64 where an array of the launch needs it: the type of extents and loop variables.
    ``body`` holds the statements before tasks are split and is empty after.  ``flow`` is the order of the tasks,
    which ``()`` says is theirs.  ``noalias`` says that no written
    array overlaps another.  A kernel that draws random numbers has the scalar parameters ``$seed`` (u64) and
    ``$launch`` (u64).  ``predicated`` says that the loops of the flow are repeated without a look at their conditions,
    and on a GPU the tasks see for themselves whether it is their turn.  ``fused`` asks for one launch of all tasks,
    ``indirect`` for kernels of a GPU that read their arguments from memory.
    """

    CHILDREN = ("params", "functions", "body", "tasks")
    name: str
    params: tuple[Param, ...]
    results: tuple[Scalar, ...]
    functions: tuple[Function, ...]
    body: Block
    tasks: tuple[Task, ...] = ()
    slots: int = 0
    index: Scalar = Scalar("i32", "int", 32)
    noalias: bool = True
    fast_math: bool = False
    flow: tuple[Flow, ...] = ()
    predicated: bool = False
    fused: bool = False
    indirect: bool = False
