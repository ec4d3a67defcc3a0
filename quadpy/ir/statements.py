"""Statements of the IR."""

from __future__ import annotations

import enum
from typing import TypeAlias

from quadpy.core.light import dataclass
from quadpy.core.output import Message
from quadpy.ir.expressions import AtomicOp, Element, Expr, ParamRead, Place, Var
from quadpy.ir.marks import Breakpoint, Enter, Exit, Line, Names
from quadpy.ir.node import Node, Order, Pure
from quadpy.ir.types import Array

__all__ = [
    "Assign", "AssignOne", "Atomic", "Axis", "Barrier", "Block", "Break", "CallMany", "Continue", "DoWhile", "Fault", "Fence",
    "For", "Gate", "If", "Leave", "Let", "Load", "Locate", "ParallelFor", "Print", "Reach", "ReadClock", "LabelledBlock", "Return", "Sections",
    "SharedArray", "Simple", "Stmt", "Store", "Wave", "WaveOp", "While",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Let(Node):
    """Binds ``var`` once, for the statements that follow in this block and below it."""

    CHILDREN = ("value",)
    READS, WRITES, BINDS, ORDERS = (), (), ("var",), ()
    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Assign(Pure):
    """Sets a mutable variable, which is 0 at the start of its iteration (or serial task, or function)."""

    CHILDREN = ("value",)
    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class AssignOne(Pure):
    """Does the one of ``options`` whose number is ``at``, an integer; none where there is no such option.

    The options have variables of one type, each its own, and one value.
    """

    CHILDREN = ("options", "at")
    options: tuple[Assign, ...]
    at: Expr


@dataclass(frozen=True, slots=True)
class Load(Node):
    """Binds ``var`` once, to the current value of ``place``."""

    CHILDREN = ("place",)
    READS, WRITES, BINDS, ORDERS = ("place",), (), ("var",), ()
    var: Var
    place: Place


@dataclass(frozen=True, slots=True)
class Store(Node):
    CHILDREN = ("place", "value")
    READS, WRITES, BINDS, ORDERS = (), ("place",), (), ()
    place: Place
    value: Expr


@dataclass(frozen=True, slots=True)
class Atomic(Node):
    """Read-modify-write in one step; binds ``result``, if any, to the old value.

    Only ``CAS`` has ``expected``.  Relaxed, and visible to the whole device.  ``in_launch`` says that it need be one step
    only for the iterations of its launch, as ``x[i] += v``.
    """

    CHILDREN = ("place", "value", "expected")
    READS, WRITES, BINDS, ORDERS = ("place",), ("place",), ("result",), (Order.UPDATE,)
    op: AtomicOp
    place: Place
    value: Expr
    result: Var | None = None
    expected: Expr | None = None
    in_launch: bool = False


@dataclass(frozen=True, slots=True)
class ReadClock(Node):
    """Binds ``var``, an i64, once to the current ticks of the processor's counter."""

    READS, WRITES, BINDS, ORDERS = (), (), ("var",), ()
    var: Var


@dataclass(frozen=True, slots=True)
class Locate(Node):
    """Binds ``var``, a u64, once to the address of ``place``, which is not accessed."""

    CHILDREN = ("place",)
    READS, WRITES, BINDS, ORDERS = (), (), ("var",), ()
    var: Var
    place: Element


@dataclass(frozen=True, slots=True)
class CallMany(Node):
    """Binds ``results`` once each, to the results of a pure ``Function``."""

    CHILDREN = ("args",)
    READS, WRITES, BINDS, ORDERS = (), (), ("results",), ()
    results: tuple[Var, ...]
    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class If(Pure):
    CHILDREN = ("cond", "then", "orelse")
    cond: Expr
    then: Block
    orelse: Block


@dataclass(frozen=True, slots=True)
class For(Pure):
    """A sequential loop; ``start``, ``stop`` and ``step`` are evaluated once, a step of 0 runs no iteration.

    ``var`` is bound again for each iteration and is not assigned in the body.
    """

    CHILDREN = ("start", "stop", "step", "body")
    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class While(Pure):
    """``head`` and then ``cond`` are evaluated before each iteration; a ``Continue`` goes to ``head``."""

    CHILDREN = ("head", "cond", "body")
    head: Block
    cond: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class Break(Pure):
    """Leaves the innermost ``For`` or ``While``."""


@dataclass(frozen=True, slots=True)
class Continue(Pure):
    """Ends this iteration of the innermost ``For`` or ``While``, or of the parallel loop if there is none."""


@dataclass(frozen=True, slots=True)
class LabelledBlock(Pure):
    """A block that ``Leave`` may end early: the body of an inlined function with a ``return`` in it."""

    CHILDREN = ("body",)
    label: str
    body: Block


@dataclass(frozen=True, slots=True)
class Leave(Pure):
    label: str


@dataclass(frozen=True, slots=True)
class Return(Pure):
    """Ends a ``Function`` with its results, or sets the results of a kernel (in its last serial task)."""

    CHILDREN = ("values",)
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Barrier(Node):
    """All iterations of a block arrive here before any goes on, and then see what the others wrote before.

    Stands in control flow that is uniform in a block: see ``ir.uniform``.
    """

    READS, WRITES, BINDS, ORDERS = (), (), (), (Order.BLOCK,)


class Reach(enum.Enum):
    """Who sees an iteration's writes in order: its wave, its block, or the whole device."""

    WAVE = "wave"
    BLOCK = "block"
    GRID = "grid"


@dataclass(frozen=True, slots=True)
class Fence(Node):
    """All iterations of ``reach`` see what this one wrote before they see what it writes after."""

    READS, WRITES, BINDS, ORDERS = (), (), (), (Order.FENCE,)
    reach: Reach = Reach.BLOCK


class WaveOp(enum.Enum):
    """The operations of a whole wave.

    Numbers of lanes, distances and masks count modulo the size of the wave.

    ``SHUFFLE``    (value, lane): the value of ``lane``
    ``UP``         (value, distance): that of the lane ``distance`` below; where there is none, the lane's own
    ``DOWN``       (value, distance): that of the lane ``distance`` above; where there is none, the lane's own
    ``XOR``        (value, mask): that of the lane whose number differs in the bits of ``mask``
    ``BROADCAST``  (value, lane): like ``SHUFFLE``, with the ``lane`` that lane 0 names
    ``COMMON``     (value): lane 0's, where the whole block is known to have the same
    ``BALLOT``     (truth): a u64 with a bit for each lane
    ``ANY``        (truth): whether it holds in any lane
    ``ALL``        (truth): whether it holds in all lanes
    ``MATCH``      (value): a u64 with a bit for each lane that has the same value, to the bit
    ``REDUCE``     (value): the values of all lanes combined
    ``INCLUSIVE``  (value): those of the lanes up to this one
    ``EXCLUSIVE``  (value): those of the lanes before this one; in lane 0 the start value of the operation
    ``SYNC``       (): the lanes meet, and see what each of them wrote before
    """

    SHUFFLE = "shuffle"
    UP = "up"
    DOWN = "down"
    XOR = "xor"
    BROADCAST = "broadcast"
    COMMON = "common"
    BALLOT = "ballot"
    ANY = "any"
    ALL = "all"
    MATCH = "match"
    REDUCE = "reduce"
    INCLUSIVE = "inclusive"
    EXCLUSIVE = "exclusive"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class Wave(Node):
    """All lanes of a wave of ``size`` iterations do ``op`` together; binds ``result``, except for ``SYNC``.

    ``combine`` belongs to reductions and scans.  Their order is fixed: see ``ir.waves``.  Stands in control flow that is
    uniform in a wave.
    """

    CHILDREN = ("args",)
    READS, WRITES, BINDS, ORDERS = (), (), ("result",), (Order.WAVE,)
    op: WaveOp
    size: int
    args: tuple[Expr, ...]
    result: Var | None = None
    combine: AtomicOp | None = None


@dataclass(frozen=True, slots=True)
class Print(Node):
    """Puts a record into the launch's ring, whose address is ``ring``: the key of ``message``, and ``words``, each a u64.

    Prints of one iteration stay in their order.
    """

    CHILDREN = ("ring", "words")
    READS, WRITES, BINDS, ORDERS = ("ring",), ("ring",), (), (Order.REPORT,)
    ring: ParamRead
    message: Message
    words: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Fault(Node):
    """Leaves ``values`` in the record at the address ``record``, unless an earlier fault has it: see ``quadpy.core.faults``.

    ``check`` is the number of the check that failed.  All are u64.
    """

    CHILDREN = ("record", "check", "values")
    READS, WRITES, BINDS, ORDERS = (), (), (), (Order.REPORT,)
    record: Expr
    check: Expr
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class SharedArray(Pure):
    """An array that each block of a parallel loop has for itself; elements that were not written hold any value."""

    name: str
    type: Array


@dataclass(frozen=True, slots=True)
class Axis(Pure):
    """One axis of a parallel loop: ``var`` takes ``start``, ``start + step``, … below (or above) ``stop``.

    The three are launch-uniform: built from constants, scalar parameters, extents and slots only.
    """

    CHILDREN = ("start", "stop", "step")
    var: Var
    start: Expr
    stop: Expr
    step: Expr


@dataclass(frozen=True, slots=True)
class ParallelFor(Pure):
    """A top-level loop before tasks are split: iterations in any order, the last axis fastest.

    ``allowed`` as in ``ParallelTask``, with the variables themselves.
    """

    CHILDREN = ("axes", "body", "shared")
    axes: tuple[Axis, ...]
    body: Block
    block_dim: int | None = None
    name: str | None = None
    shared: tuple[SharedArray, ...] = ()
    allowed: tuple[tuple[str | Var, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Sections(Pure):
    """Blocks of a kernel's top level that run at once; like ``DoWhile``, there only before tasks are split."""

    CHILDREN = ("branches",)
    branches: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class DoWhile(Pure):
    """``body``, and again while element 0 of the array parameter ``condition`` is not 0."""

    CHILDREN = ("body",)
    condition: str
    body: Block


@dataclass(frozen=True, slots=True)
class Gate(Pure):
    """Part of a kernel's top level, which runs unless the turn is greater than ``number``: see ``lang.checkpoints``."""

    CHILDREN = ("body",)
    number: int
    body: Block


Simple: TypeAlias = (
    Let | Assign | AssignOne | Load | Store | Atomic | ReadClock | Locate | CallMany | Break | Continue | Leave | Return | Barrier | Fence | Print | Wave
    | Fault
)  # fmt: skip
"""Statements without inner blocks."""

Stmt: TypeAlias = (
    Simple
    | If
    | For
    | While
    | LabelledBlock
    | ParallelFor
    | Sections
    | DoWhile
    | Gate
    | Line
    | Names
    | Enter
    | Exit
    | Breakpoint
)


@dataclass(frozen=True, slots=True)
class Block(Pure):
    CHILDREN = ("stmts",)
    stmts: tuple[Stmt, ...]
