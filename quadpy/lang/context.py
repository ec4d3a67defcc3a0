"""The state of one trace, and its three entries: an expression, a block of statements, a call of a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from quadpy.core.dtypes import Scalar, u1
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.errors import KernelSyntaxError, KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.lang.arguments import ArgType, Options
from quadpy.lang.builder import Builder
from quadpy.lang.dependencies import Dependencies
from quadpy.lang.fingerprints import is_our_module
from quadpy.lang.frames import Frame
from quadpy.lang.guard import Effort
from quadpy.lang.names import bound_once, stored_names
from quadpy.lang.promotion import Defaults
from quadpy.lang.retrace import LocalName, LoopLocation
from quadpy.lang.source import FunctionSource
from quadpy.lang.trace_state import (
    CalledFunction,
    CellState,
    Checks,
    LoopOptions,
    ParallelLoop,
    RandomState,
    Signature,
    TaskOrder,
)
from quadpy.lang.values import Value


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules of the language: one for each type of node, and one for calls.

    A rule for a statement returns True where control does not reach its end.  Rules take the type of node that they are
    for, which a mapping cannot express: hence ``Any``.  ``begin`` and ``end`` mark the source, before a statement and after
    the last of a block.  ``missing`` has constructs that users may try in vain, with alternatives.
    """

    expressions: Mapping[type[ast.expr], Callable[[Trace, Any], Value]]
    statements: Mapping[type[ast.stmt], Callable[[Trace, Any], bool | None]]
    call: Callable[[Trace, Value, list[Value], dict[str, Value], Span], Value]
    begin: Callable[[Trace, ast.stmt], None]
    end: Callable[[Trace], None]
    missing: Mapping[type[ast.AST], tuple[str, str]]


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
        self.checks = None
        if options.debug or options.guarded:
            self.checks = Checks(options.indices_only or not options.debug, not options.debug)
        self.build.lets = self.checks.ranges.lets if self.checks else None
        self.meeting: frozenset[LoopLocation] = frozenset()
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

    def depth_of(self, source: FunctionSource) -> int:
        """How many calls of the function ``source`` are being traced."""
        return sum(known is source for known in self.callers) + sum(frame.source is source for frame in self.frames)

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
        return source.span if node is None else source.span_of(node)

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
        return self.frame.source.span_of(node)

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

    def bound_once(self, body: Sequence[ast.stmt], source: FunctionSource) -> dict[str, bool]:
        """The names that need no variable in this body of the function ``source``, see ``names.bound_once``."""
        changed = self.changed(source)
        return {name: again for name, again in bound_once(body).items() if name not in changed}

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
