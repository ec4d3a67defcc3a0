"""The parts of a trace's state: the kernel's signature, random numbers, the order of tasks, loops, known ranges, checks.

Ranges of integers are known at compile time, so that checks that cannot fail are omitted.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.core.dtypes import Scalar, bounds_of
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadpy.core.artifact import ResultShape
    from quadpy.core.faults import Site
    from quadpy.core.source import Span
    from quadpy.lang.arguments import MemberPath
    from quadpy.lang.concurrent import OpenFork
    from quadpy.lang.frames import Outline
    from quadpy.lang.retrace import LoopLocation
    from quadpy.lang.values import ArrayRef, Value

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


@dataclass(slots=True)
class Signature:
    """The kernel's parameters, results and functions.

    The caller passes ``params``, the launch adds ``hidden``; ``fields`` maps the id of a field to its reference and the
    field itself; ``slots`` numbers the variables that parallel loops share; ``outline`` is the shape of the result.
    ``members`` are the values of members of arguments, ``found`` those that the arguments of the trace do not list.
    """

    params: list[ir.Param] = field(default_factory=list)
    field_params: list[ir.ArrayParam] = field(default_factory=list)
    hidden: dict[str, ir.ScalarParam] = field(default_factory=dict)
    fields: dict[int, tuple[ArrayRef, Any]] = field(default_factory=dict)
    functions: dict[str, ir.Function] = field(default_factory=dict)
    slots: dict[ir.Var, int] = field(default_factory=dict)
    results: tuple[Scalar, ...] = ()
    outline: ResultShape = None
    members: dict[str, Value] = field(default_factory=dict)
    found: list[MemberPath] = field(default_factory=list)

    @property
    def is_pure(self) -> bool:
        """Whether the kernel uses nothing but numbers that the caller passes."""
        return not (self.params or self.field_params or self.hidden or self.slots)


@dataclass(slots=True)
class RandomState:
    """Which random numbers were drawn.

    ``draws`` counts those of the current iteration, ``passes`` the iterations of do_while loops whose parallel loops
    draw.  Each parallel loop and section has its own stream; the code around them uses ``serial_stream``.
    """

    draws: ir.Var | None = None
    streams: int = 0
    serial_stream: int = 0
    passes: ir.Var | None = None
    drew_in_loop: bool = False


@dataclass(slots=True)
class TaskOrder:
    """Where in the order of tasks the trace is.

    ``graph`` says that the kernel is a graph kernel; ``fork`` holds the sections that an adjacent one joins;
    ``section`` is the place of the section around, ``repeats`` the number of do_while loops around, and ``allowed`` what the
    parallel loops that follow may race for, with the reasons.  ``checkpoint`` says whether one is around.
    """

    graph: bool
    fork: OpenFork | None = None
    section: Span | None = None
    repeats: int = 0
    allowed: tuple[tuple[str | ir.Var, str], ...] = ()
    checkpoint: bool = False


@dataclass(slots=True)
class LoopOptions:
    """Options for the next loop from ``qp.loop_config`` at ``span``."""

    block_dim: int | None = None
    serialize: bool = False
    name: str | None = None
    span: Span | None = None


@dataclass(slots=True)
class CellState:
    """What is known about the cells of sparse trees at this point.

    ``known`` holds the cells that are active, ``suppressed`` says that writes make none active; ``loops`` are the loops
    over active cells around, and ``changing`` those of the kernel that make cells inactive.
    """

    known: list[list[tuple[object, ...]]] = field(default_factory=list)
    suppressed: bool = False
    loops: list[LoopLocation] = field(default_factory=list)
    changing: frozenset[LoopLocation] = frozenset()


@dataclass(slots=True)
class ParallelLoop:
    """The parallel loop around; ``position`` is the number of an iteration, for random numbers.

    ``prints`` is the loop's number among those that print, 0 before it prints; ``order`` gives the place of an iteration
    among those of the loop; ``allowed`` are arrays for which iterations may race, with the reasons.
    """

    position: ir.Expr
    order: Callable[[], ir.Expr]
    block_dim: int = DEFAULT_BLOCK
    uses_block: bool = False
    shared: list[ir.SharedArray] = field(default_factory=list)
    prints: int = 0
    allowed: dict[str | ir.Var, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A user's function that the kernel calls, and the shape of its result; ``kept`` are the values it was made for."""

    function: ir.Function
    outline: Outline
    kept: tuple[Value, ...]


STOP: Final = "$stop"
"""The prefix of labels of blocks that failed checks leave."""


@dataclass(slots=True)
class Checks:
    """The checks of ``debug=True`` so far, or with ``indices_only`` those of ``check_out_of_bound=True``.

    ``sites`` numbers them; ``counters`` are the variables of the loops around, with their names.  ``stop`` is the label
    of the block that a failed check leaves, around the loop ``left``; None if it goes on.  ``stops`` says whether
    any does, ``blocks`` counts the labels.  ``silent`` checks are not reported: what they protect is skipped.
    """

    indices_only: bool = False
    silent: bool = False
    ranges: Ranges = field(default_factory=Ranges)
    sites: dict[Site, int] = field(default_factory=dict)
    counters: list[tuple[str, ir.Var]] = field(default_factory=list)
    blocks: int = 0
    stop: str | None = None
    stops: bool = False
    left: LoopLocation | None = None
