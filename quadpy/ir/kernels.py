"""Kernels of the IR: parameters, functions, and the tasks that are one launch each."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.core.faults import Site
from quadpy.core.flow import Flow
from quadpy.core.light import dataclass
from quadpy.ir.expressions import AtomicOp, Expr, Place, Var
from quadpy.ir.node import Node, Pure
from quadpy.ir.statements import Axis, Block, SharedArray
from quadpy.ir.types import Array

__all__ = [
    "ArrayParam", "Function", "Kernel", "ParallelTask", "Param", "Private", "Reduction", "ScalarParam", "SerialTask", "Task", "TaskGate",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reduction(Node):
    """``place op= var`` after the loop, for a ``var`` that each iteration accumulates into.

    ``var`` starts as the identity of ``op``.  How the iterations are grouped is fixed by their number alone:
    see ``codegen.reduction``.  ``in_launch`` as in ``Atomic``: otherwise the place is updated atomically.
    """

    CHILDREN = ("place",)
    READS, WRITES, BINDS, ORDERS = ("place",), ("place",), (), ()
    op: AtomicOp
    place: Place
    var: Var
    in_launch: bool = False


class Private(NamedTuple):
    """An array that a loop only accumulates into by ``op``; ``in_launch`` as in ``Atomic``."""

    array: str
    op: AtomicOp
    in_launch: bool


class TaskGate(NamedTuple):
    """The ``number`` of the ``Gate`` around a task, and the array that holds the turn."""

    state: str
    number: int


@dataclass(frozen=True, slots=True)
class SerialTask(Pure):
    """Statements that one thread runs; ``gate`` as in ``ParallelTask``."""

    CHILDREN = ("body",)
    name: str
    body: Block
    gate: TaskGate | None = None


@dataclass(frozen=True, slots=True)
class ParallelTask(Pure):
    """A parallel loop: one launch.

    ``privates`` are small arrays that the loop only accumulates into: the target may give groups of iterations
    their own copies and merge these in order.  ``shared`` are the arrays of which
    each block of ``block_dim`` iterations has its own.  ``allowed`` has the arrays, and the slots of variables by
    name, for which the user lets iterations race, each with the reason.  Nothing runs where ``gate`` is closed.
    """

    CHILDREN = ("axes", "body", "reductions", "shared")
    name: str
    axes: tuple[Axis, ...]
    body: Block
    reductions: tuple[Reduction, ...] = ()
    privates: tuple[Private, ...] = ()
    block_dim: int | None = None
    shared: tuple[SharedArray, ...] = ()
    allowed: tuple[tuple[str, str], ...] = ()
    gate: TaskGate | None = None


Task: TypeAlias = SerialTask | ParallelTask


@dataclass(frozen=True, slots=True)
class ScalarParam(Pure):
    name: str
    type: Scalar


@dataclass(frozen=True, slots=True)
class ArrayParam(Pure):
    """An array that the caller passes, or a field that the kernel names (``is_field``).

    The rest is for messages.  ``offset`` is what the user's indices of a field begin at, ``blocks`` are the extents of the
    levels of each of its axes, which are separate axes here, and ``called`` is the source name of a field.
    """

    name: str
    type: Array
    is_field: bool = False
    offset: tuple[int, ...] = ()
    blocks: tuple[tuple[int, ...], ...] = ()
    called: str = ""


Param: TypeAlias = ScalarParam | ArrayParam


@dataclass(frozen=True, slots=True)
class Function(Pure):
    """A pure function over scalars: from the math library, or a user's, which ``is_called``: inlined only where it is small."""

    CHILDREN = ("body",)
    name: str
    params: tuple[Var, ...]
    results: tuple[Scalar, ...]
    body: Block
    is_called: bool = False


@dataclass(frozen=True, slots=True)
class Kernel(Pure):
    """The input of code generation.

    ``index`` is the type of extents and loop variables: i32, or i64 where an array of the launch needs it.
    Before tasks are split, ``body`` holds the statements, and ``crossing`` the variables of the slots that the trace
    numbered, from slot 0 on; afterwards both are empty.  ``flow`` is the order of the tasks; ``()`` is the order in
    which they stand.  ``noalias`` promises that no written array overlaps another.  A kernel that draws random numbers
    has the scalar parameters ``$seed`` (u64) and ``$launch`` (u64); one with checks, whose ``sites`` say what each means,
    ``$fault``, the address of a record, and ``$sites``, the number of its first check.  ``debug`` asks for the checks that
    passes add; ``shadow`` is how many words of memory, ``$shadow``, race checks need in a launch.  ``variables`` has
    the source name of each slot, empty for slots without one.  The barriers of a ``trusted`` kernel are refused only if
    they are certain to hang.
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
    crossing: tuple[Var, ...] = ()
    flow: Flow = ()
    sites: tuple[Site, ...] = ()
    debug: bool = False
    shadow: Expr | None = None
    variables: tuple[str, ...] = ()
    trusted: bool = False

    @property
    def arrays(self) -> dict[str, ArrayParam]:
        """The arrays by name, those of fields among them."""
        return {param.name: param for param in self.params if isinstance(param, ArrayParam)}

    @property
    def array_types(self) -> dict[str, Array]:
        """Their types by name."""
        return {name: param.type for name, param in self.arrays.items()}

    def called(self, name: str) -> str:
        """The source name of an array, or of the variable in a slot, from its name here."""
        if name.startswith("$") and name[1:].isdigit():
            number = int(name[1:])
            return (self.variables[number] if number < len(self.variables) else "") or "a variable"
        return next((p.called for p in self.params if p.name == name and isinstance(p, ArrayParam)), "") or name
