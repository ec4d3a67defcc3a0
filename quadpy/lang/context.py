"""The state of one trace, and its three entries: an expression, a block of statements, a call of a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final, NoReturn, TypeAlias

from quadpy.artifact import ResultShape
from quadpy.dtypes import Scalar, u1
from quadpy.errors import KernelSyntaxError, KernelTypeError
from quadpy.faults import Site
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK
from quadpy.lang.arguments import ArgType, MemberPath, Options
from quadpy.lang.builder import Builder
from quadpy.lang.concurrent import OpenFork
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.frames import Frame, Outline
from quadpy.lang.guard import Effort
from quadpy.lang.known_ranges import Ranges
from quadpy.lang.names import single_assignment, stored_names
from quadpy.lang.promotion import Defaults
from quadpy.lang.source import FunctionSource
from quadpy.lang.values import ArrayRef, Value
from quadpy.source import Span

__all__ = [
    "BlockMeets",
    "CalledFunction",
    "CellsChange",
    "CellState",
    "Checks",
    "Grammar",
    "LocalAtomicFound",
    "LoopOptions",
    "ParallelLoop",
    "STOP",
    "RandomState",
    "Retrace",
    "Signature",
    "TaskOrder",
    "Trace",
]

LocalName: TypeAlias = tuple[CodeType, str]
"""A name of one function."""
LoopPlace: TypeAlias = tuple[CodeType, int, int]
"""A loop of one function, by its line and column."""


class Retrace(Exception):
    """What the trace found shows that it must start again."""


class LocalAtomicFound(Retrace):
    """An atomic operation, or a method of a struct, changes a local name, which the syntax does not show.

    The trace starts again, and this time makes the name a variable from the start.
    """

    def __init__(self, name: LocalName) -> None:
        super().__init__(name[1])
        self.name = name


class BlockMeets(Retrace):
    """The iterations of a loop from which a failed check jumps wait for each other at a barrier."""

    def __init__(self, loop: LoopPlace) -> None:
        super().__init__()
        self.loop = loop


class CellsChange(Retrace):
    """A loop over active cells makes cells inactive: what it writes may have to make them active again."""

    def __init__(self, loop: LoopPlace) -> None:
        super().__init__()
        self.loop = loop


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules of the language: one for each type of node, and one for calls.

    A rule for a statement returns True where control does not reach its end.  Rules take the type of node that they are
    for, which a mapping cannot express: hence ``Any``.  ``begin`` and ``end`` mark the source, before a statement and after
    the last of a block.  ``missing`` has what users may write in vain, and what instead.
    """

    expressions: Mapping[type[ast.expr], Callable[[Trace, Any], Value]]
    statements: Mapping[type[ast.stmt], Callable[[Trace, Any], bool | None]]
    call: Callable[[Trace, Value, list[Value], dict[str, Value], Span], Value]
    begin: Callable[[Trace, ast.stmt], None]
    end: Callable[[Trace], None]
    missing: Mapping[type[ast.AST], tuple[str, str]]


@dataclass(slots=True)
class Signature:
    """What the kernel takes, returns and carries with it.

    ``params`` are what the caller passes, ``hidden`` what the launch adds; ``fields`` maps the id of a field to its reference and the field itself;
    ``slots`` numbers the variables that parallel loops share; ``outline`` is the shape of the result.
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
        """Whether nothing was used but numbers that were passed."""
        return not (self.params or self.field_params or self.hidden or self.slots)


@dataclass(slots=True)
class RandomState:
    """Which random numbers were drawn.

    ``draws`` counts those of the current iteration, ``passes`` the iterations of do_while loops whose parallel loops
    draw.  Each parallel loop and section has a stream of its own; ``serial_stream`` is that of the code around them.
    """

    draws: ir.Var | None = None
    streams: int = 0
    serial_stream: int = 0
    passes: ir.Var | None = None
    drew_in_loop: bool = False


@dataclass(slots=True)
class TaskOrder:
    """Where in the order of tasks the trace is.

    ``graph`` says that the kernel is a graph kernel; ``fork`` has the sections that an adjacent one joins; ``section``
    is the place of the section around, ``repeats`` the number of do_while loops around, and ``allowed`` what the
    parallel loops that follow may race for, with the reasons.
    """

    graph: bool
    fork: OpenFork | None = None
    section: Span | None = None
    repeats: int = 0
    allowed: tuple[tuple[str | ir.Var, str], ...] = ()


@dataclass(slots=True)
class LoopOptions:
    """What ``qp.loop_config``, at ``span``, says about the next loop."""

    block_dim: int | None = None
    serialize: bool = False
    name: str | None = None
    span: Span | None = None


@dataclass(slots=True)
class CellState:
    """What is known of the cells of sparse trees here.

    ``known`` has the cells that are active, ``suppressed`` says that writes make none active; ``loops`` are the loops over
    active cells around, and ``changing`` those of the kernel that make cells inactive.
    """

    known: list[list[tuple[object, ...]]] = field(default_factory=list)
    suppressed: bool = False
    loops: list[LoopPlace] = field(default_factory=list)
    changing: frozenset[LoopPlace] = frozenset()


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
    """A user's function that the kernel calls, and the shape of its result; ``kept`` are what it was made for."""

    function: ir.Function
    outline: Outline
    kept: tuple[Value, ...]


STOP: Final = "$stop"
"""Begins the labels of the regions that failed checks leave."""


@dataclass(slots=True)
class Checks:
    """The checks of ``debug=True`` so far, or with ``indices_only`` those of ``check_out_of_bound=True``.

    ``sites`` numbers them; ``counters`` are the variables of the loops around, with their names.  ``stop`` is the label
    of the region that a failed check leaves, around the loop ``left``; None where it goes on.  ``stops`` says whether
    any does, ``regions`` counts the labels.
    """

    indices_only: bool = False
    ranges: Ranges = field(default_factory=Ranges)
    sites: dict[Site, int] = field(default_factory=dict)
    counters: list[tuple[str, ir.Var]] = field(default_factory=list)
    regions: int = 0
    stop: str | None = None
    stops: bool = False
    left: LoopPlace | None = None


class Trace:
    """One trace.

    ``arguments`` are the types of the kernel's arguments and of their members;
    ``width`` is that of the library function being traced, None in a kernel; ``changing`` are the local names that
    atomic operations change; ``prints`` counts the parallel loops that print, ``printed`` static_prints, of which the
    first ``already_printed`` are not repeated;
    ``loop_options`` are those of the next loop; ``trail`` has the calls that an exception left, the innermost first.
    ``in_function`` says that the trace is of a function that is called, ``callers`` which functions call it, and
    ``called`` has the functions that were traced so, by their arguments.
    ``checks`` is None where nothing is checked, and ``meeting`` are the loops that failed checks do not leave.
    ``cells`` are those of sparse trees.
    """

    def __init__(
        self,
        source: FunctionSource,
        options: Options,
        grammar: Grammar,
        deps: Dependencies,
        width: Scalar | None = None,
    ) -> None:
        self.options, self.grammar, self.deps, self.width = options, grammar, deps, width
        self.defaults = Defaults(options.default_ip, options.default_fp)
        self.is_library = width is not None
        self.build = Builder()
        self.effort = Effort(self.here)
        self.frames = [Frame(source, {})]
        self.doing: tuple[FunctionSource, ast.AST | None] = (source, None)
        self.signature = Signature()
        self.arguments: Mapping[str, ArgType] = {}
        self.random = RandomState()
        self.tasks = TaskOrder(options.graph)
        self.loop: ParallelLoop | None = None
        self.loop_options = LoopOptions()
        self.shared_count = 0
        self.changing: frozenset[LocalName] = frozenset()
        self.already_printed = self.printed = 0
        self.trail: list[tuple[FunctionSource, Span]] = []
        self.in_function = self.is_library
        self.callers: tuple[FunctionSource, ...] = ()
        self.called: dict[object, CalledFunction | None] = {}
        self.prints = 0
        self.checks = Checks(options.indices_only) if options.debug else None
        self.build.lets = self.checks.ranges.lets if self.checks else None
        self.meeting: frozenset[LoopPlace] = frozenset()
        self.cells = CellState()

    def for_function(self) -> Trace:
        """A trace of a function that this one calls: it shares all but the statements and what the kernel takes."""
        made = Trace(self.frames[0].source, self.options, self.grammar, self.deps, self.width)
        made.effort, made.called, made.changing = self.effort, self.called, self.changing
        made.already_printed, made.printed = self.already_printed, self.printed
        made.meeting, made.cells = self.meeting, self.cells
        made.callers = (*self.callers, *(frame.source for frame in self.frames))
        made.signature.functions.update(self.signature.functions)
        made.in_function = True
        return made

    def is_active(self, source: FunctionSource) -> bool:
        """Whether the function ``source`` is being traced."""
        return source in self.callers or any(frame.source is source for frame in self.frames)

    def expr(self, node: ast.expr) -> Value:
        """The value of an expression; its effects are emitted on the way."""
        return self._rule(self.grammar.expressions, node)(self, node)

    def block(self, stmts: list[ast.stmt]) -> bool:
        """Traces statements; True where control does not reach the end."""
        if not self.is_marked(self.frame.source):
            return any(self._rule(self.grammar.statements, stmt)(self, stmt) for stmt in stmts)
        ends = False
        for stmt in stmts:
            self.grammar.begin(self, stmt)
            if ends := bool(self._rule(self.grammar.statements, stmt)(self, stmt)):
                break
        else:
            self.grammar.end(self)
        return ends

    def is_marked(self, source: FunctionSource) -> bool:
        """Whether marks of the source are wanted in ``source``: quadpy's own functions have none."""
        return self.options.lines and not is_our_module(source.fn.__module__)

    @contextmanager
    def own_loops(self) -> Iterator[None]:
        """Context manager: traces statements in which loop options must find their loop.

        Raises:
            KernelSyntaxError: no loop follows them.
        """
        before = self.loop_options.span
        yield
        given = self.loop_options.span
        if given is not None and given is not before:
            self.fail_syntax("no loop follows this loop_config", given, "put it before the loop that it is meant for")

    def _rule(self, rules: Mapping[type[Any], Callable[[Trace, Any], Any]], node: ast.AST) -> Callable[..., Any]:
        self.doing = self.frame.source, node
        self.effort.take(1)
        if rule := rules.get(type(node)):
            return rule
        word, hint = self.grammar.missing.get(type(node), (type(node).__name__, ""))
        self.fail_syntax(f"{word} is not part of the kernel language", self.span(node), hint)

    def call(self, fn: Value, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        """Calls a value."""
        return self.grammar.call(self, fn, args, kwargs, span)

    def here(self) -> Span:
        """The place that was traced last."""
        source, node = self.doing
        return source.span if node is None else source.place(node)

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def in_parallel(self) -> bool:
        return self.loop is not None

    @property
    def loop_around(self) -> ParallelLoop:
        """The loop that the iteration belongs to; calls of rows that are ``per_block`` are refused elsewhere."""
        assert self.loop is not None
        return self.loop

    def span(self, node: ast.AST) -> Span:
        return self.frame.source.place(node)

    def at_top_level(self) -> bool:
        """True where a ``for`` is a parallel loop: in the kernel's body, or in a function called from there.

        What follows an early ``return`` of a function may not run: it is under a condition, like a branch.
        """
        return not (self.in_parallel or self.in_function or self.options.serial) and not any(
            f.runtime_depth or f.early_returns for f in self.frames
        )

    def changed(self, source: FunctionSource) -> frozenset[str]:
        """The names of a function that atomic operations change."""
        return frozenset(name for code, name in self.changing if code == source.code)

    def stored(self, nodes: Iterable[ast.AST], source: FunctionSource) -> frozenset[str]:
        """The names that the function ``source`` assigns below ``nodes``."""
        return self.changed(source).union(stored_names(nodes))

    def bound_once(self, body: Sequence[ast.stmt], source: FunctionSource) -> frozenset[str]:
        """The names that need no variable in this body of the function ``source``."""
        return single_assignment(body) - self.changed(source)

    def slot(self, var: ir.Var, span: Span) -> ir.Slot:
        """The scratch memory of a variable that parallel loops use."""
        return ir.Slot(self.signature.slots.setdefault(var, len(self.signature.slots)), var.type, span=span)

    def scalar_type(self, annotation: Any) -> Any:
        """``float``, ``int`` and ``bool`` as the types that they stand for; anything else unchanged."""
        if annotation in (float, int, bool):
            return self.defaults.fp if annotation is float else self.defaults.ip if annotation is int else u1
        return annotation

    def fail_type(self, message: str, span: Span, hint: str = "") -> NoReturn:
        raise KernelTypeError(message, span, hint=hint)

    def fail_syntax(self, message: str, span: Span, hint: str = "") -> NoReturn:
        raise KernelSyntaxError(message, span, hint=hint)
