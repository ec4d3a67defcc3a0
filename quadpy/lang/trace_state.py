"""The parts of a trace's state: the kernel's signature, random numbers, the order of tasks, loops, checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from quadpy.core.artifact import ResultShape
from quadpy.core.dtypes import Scalar
from quadpy.core.faults import Site
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK
from quadpy.lang.arguments import MemberPath
from quadpy.lang.concurrent import OpenFork
from quadpy.lang.frames import Outline
from quadpy.lang.known_ranges import Ranges
from quadpy.lang.retrace import LoopLocation
from quadpy.lang.values import ArrayRef, Value


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
