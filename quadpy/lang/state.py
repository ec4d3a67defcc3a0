"""What a trace knows while it runs.  Owns: ChosenPart, Frame, MutableVar, State.  Imports: ``ir``, ``lang`` and leaves."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn, TypeAlias

from quadpy.dtypes import Scalar, i32, u1
from quadpy.errors import KernelNameError, KernelSyntaxError, KernelTypeError
from quadpy.ir.blocks import DEFAULT_BLOCK
from quadpy.ir.nodes import ArrayParam, Const, Expr, Function, Param, ScalarParam, SharedArray, Slot, Var, VarRead
from quadpy.lang.builder import Builder
from quadpy.lang.dependencies import MISSING, Dependencies
from quadpy.lang.guard import Effort
from quadpy.lang.names import single_assignment, stored_names
from quadpy.lang.promotion import Defaults
from quadpy.lang.source import FunctionSource
from quadpy.lang.values import ArrayRef, ElementRef, Value, Vec, holds_runtime, is_runtime
from quadpy.source import Span

__all__ = ["Changes", "ChosenPart", "Frame", "MutableVar", "State"]

_Name: TypeAlias = tuple[CodeType, str]
"""A name of one function."""


class Changes(Exception):
    """An atomic operation changes a local name in the middle of an expression, which its syntax did not tell.

    The trace starts again, and takes the name for such a variable from the start.
    """

    def __init__(self, name: _Name) -> None:
        super().__init__(name[1])
        self.name = name


@dataclass(frozen=True, slots=True)
class MutableVar:
    """A name bound to variables: one for a scalar (``shape`` None), one a component for a vector.

    ``shared`` names live outside the parallel loops of a kernel; inside a loop they are slots of scratch memory.
    """

    vars: tuple[Var, ...]
    shape: tuple[int, ...] | None
    shared: bool
    span: Span

    def part(self, picked: Iterable[int], shape: tuple[int, ...] | None) -> MutableVar:
        """Some components, as a variable of the given shape."""
        return MutableVar(tuple(self.vars[k] for k in picked), shape, self.shared, self.span)


@dataclass(frozen=True, slots=True)
class ChosenPart:
    """The one of ``parts``, components or rows of one variable, whose number ``at`` is at run time."""

    parts: tuple[MutableVar, ...]
    at: Expr

    @property
    def vars(self) -> tuple[Var, ...]:
        """Of the first part: as many as of each."""
        return self.parts[0].vars


@dataclass(slots=True)
class Frame:
    """One function being traced: the kernel, or a function inlined into it.

    ``unset`` are the variables that a path to here leaves without a value, ``breaks`` what was set at each ``break``
    of the run-time loops around.
    """

    source: FunctionSource
    env: dict[str, Any]
    singles: frozenset[str] = frozenset()
    runtime_depth: int = 0
    loops: list[str] = field(default_factory=list)
    label: str = ""
    leaves: int = 0
    results: list[list[Var]] = field(default_factory=list)
    outline: Any = None
    returned: Any = None
    literals: dict[int, Const] = field(default_factory=dict)  # that are returned, by id: exact until all returns meet
    unset: set[str] = field(default_factory=set)
    breaks: list[list[set[str]]] = field(default_factory=list)

    def variables(self) -> set[str]:
        return {name for name, value in self.env.items() if isinstance(value, MutableVar)}

    def assigned(self) -> set[str]:
        """The variables that every path to here assigns."""
        return self.variables() - self.unset

    def meet(self, paths: Sequence[set[str]]) -> None:
        """Paths come together here, each with the variables that it assigned."""
        self.unset = self.variables() - paths[0].intersection(*paths[1:]) if paths else set()


class State:
    """The tables of one trace.  The classes that derive from it add the rules of the language."""

    def __init__(self, defaults: Defaults, index: Scalar = i32, *, fast_math: bool = False) -> None:
        self.defaults, self.index, self.fast_math = defaults, index, fast_math
        self.build = Builder()
        self.doing: tuple[FunctionSource, ast.AST] | None = None
        self.effort = Effort(self.here)
        self.frames: list[Frame] = []
        self.params: list[Param] = []  # what the caller passes
        self.field_params: list[ArrayParam] = []
        self.functions: dict[str, Function] = {}
        self.fields: dict[int, tuple[ArrayRef, Any]] = {}
        self.slots: dict[Var, int] = {}
        self.deps = Dependencies()
        self.in_parallel = False
        self.is_library = False
        self.hidden: dict[str, ScalarParam] = {}  # what the launch adds to the caller's arguments
        self.draws: Var | None = None
        self.streams = 0  # of random numbers: one for each parallel loop and section, and 0 for what is outside
        self.serial_stream = 0
        self.passes: Var | None = None  # counts iterations of do-while loops, where parallel loops draw in them
        self.drew_in_loop = False
        self.repeats = 0  # do-while loops around what is traced
        self.loop_position: Expr | None = None
        self.block_dim = DEFAULT_BLOCK
        self.uses_block = False
        self.shared: list[SharedArray] = []
        self.shared_count = 0
        self.changing: frozenset[_Name] = frozenset()  # by atomic operations
        self.told = self.prints = 0  # static_prints of an earlier trace of the same call, and of this one

    # The rules call each other across modules; the last class of the chain has them all.
    def expr(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def place(self, node: ast.expr) -> ElementRef | MutableVar | ChosenPart | None:
        raise NotImplementedError

    def block(self, stmts: list[ast.stmt]) -> bool:
        raise NotImplementedError

    def call_python(self, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        raise NotImplementedError

    def field_ref(self, value: Any) -> ArrayRef:
        raise NotImplementedError

    def here(self) -> Span:
        """The place that was looked at last."""
        source, node = self.doing or (self.frames[0].source, None)
        return source.span if node is None else source.place(node)

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def span(self, node: ast.AST) -> Span:
        return self.frame.source.place(node)

    def at_top_level(self) -> bool:
        """True where a ``for`` is a parallel loop: in the kernel's body, or a function called from there.

        What follows an early ``return`` of a function may not run: it is under a condition, like a branch.
        """
        return not (self.in_parallel or self.is_library) and not any(f.runtime_depth or f.leaves for f in self.frames)

    def lookup(self, name: str, span: Span) -> Value:
        """What ``name`` means here.

        Raises:
            KernelNameError: nothing.
        """
        frame = self.frame
        if name in frame.env:
            bound = frame.env[name]
            if not isinstance(bound, MutableVar):
                return bound
            self.check_assigned(name, span)
            value = self.read(bound, span)
            return self.freeze_all(value) if (frame.source.code, name) in self.changing else value
        try:
            value = self.outside(name)
        except KeyError:
            raise self.undefined(name, span) from None
        return self.import_value(value)

    def check_assigned(self, name: str, span: Span) -> None:
        """A variable that is asked for has a value on every path to here.

        Raises:
            KernelNameError: a path leaves it unassigned.
        """
        if name in self.frame.unset:
            raise self.undefined(name, span)

    def outside(self, name: str) -> Any:
        """What a name that is not bound here means in the closure or module of the function.

        Raises:
            KeyError: nothing, or the function has a variable of its own of that name.
        """
        source = self.frame.source
        if name in source.locals:
            raise KeyError(name)
        value = self.deps.name(source, name)
        if value is MISSING:
            raise KeyError(name)
        return value

    def undefined(self, name: str, span: Span) -> KernelNameError:
        source = self.frame.source
        if name in source.locals:
            return KernelNameError(
                f"{name!r} is not defined here: {source.name} assigns it, but not on every way to this line", span,
                hint="assign it first, at the level of this line or above; what a loop binds ends with the loop",
            )  # fmt: skip
        known = [n for n in self.frame.env if not n.startswith("$")]
        hint = f"names bound here: {', '.join(sorted(known))}" if known else ""
        return KernelNameError(f"the name {name!r} is not defined", span, hint=hint)

    def import_value(self, value: Any) -> Value:
        """A Python object of the user's as a value of the kernel: NumPy numbers become Python ones."""
        if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
            return value.item()
        if getattr(type(value), "__quadpy_field__", False):
            return self.field_ref(value)
        if getattr(type(value), "__quadpy_value__", False):
            zero = Span("", 0)
            elems = tuple(Const(e, value.dtype, span=zero) for e in value.entries)
            return Vec(tuple(value.shape), elems)
        return value

    def read(self, bound: MutableVar, span: Span) -> Value:
        """The value of a variable now."""
        if bound.shared and self.in_parallel:
            elems = tuple(self.build.load(self.slot(var, span), span, var.name) for var in bound.vars)
        else:
            elems = tuple(VarRead(var, span=span) for var in bound.vars)
        return elems[0] if bound.shape is None else Vec(bound.shape, elems)

    def freeze_all(self, value: Value) -> Value:
        """``value`` as it is now: no later assignment changes it."""
        if not holds_runtime(value):
            return value
        if isinstance(value, (tuple, list)):
            return type(value)(self.freeze_all(v) for v in value)
        if isinstance(value, dict):
            return {key: self.freeze_all(v) for key, v in value.items()}
        if isinstance(value, Vec):
            return Vec(value.shape, tuple(self.build.freeze(e) for e in value.elems))
        return self.build.freeze(value) if is_runtime(value) else value

    def changed(self, source: FunctionSource) -> frozenset[str]:
        """The names of a function that atomic operations change."""
        return frozenset(name for code, name in self.changing if code == source.code)

    def stored(self, nodes: Iterable[ast.AST], source: FunctionSource) -> frozenset[str]:
        """The names that the function ``source`` assigns below ``nodes``."""
        return self.changed(source).union(stored_names(nodes))

    def bound_once(self, body: Sequence[ast.stmt], source: FunctionSource) -> frozenset[str]:
        """The names that need no variable in this body of the function ``source``."""
        return single_assignment(body) - self.changed(source)

    def slot(self, var: Var, span: Span) -> Slot:
        """The scratch memory behind a variable that parallel loops touch."""
        return Slot(self.slots.setdefault(var, len(self.slots)), var.type, span=span)

    def scalar_type(self, annotation: Any) -> Any:
        """``float``, ``int`` and ``bool`` as the types that they stand for; all else as it is."""
        if annotation in (float, int, bool):
            return self.defaults.fp if annotation is float else self.defaults.ip if annotation is int else u1
        return annotation

    def fail_type(self, message: str, span: Span, hint: str = "") -> NoReturn:
        raise KernelTypeError(message, span, hint=hint)

    def fail_syntax(self, message: str, span: Span, hint: str = "") -> NoReturn:
        raise KernelSyntaxError(message, span, hint=hint)
