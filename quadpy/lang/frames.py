"""The functions being traced, and the variables of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Literal, TypeAlias

from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.core.records import RecordType, Shape, shape_of_member
from quadpy.core.source import NOWHERE, Span
from quadpy.ir import nodes as ir
from quadpy.lang.source import FunctionSource
from quadpy.lang.values import Record, Vec, shaped

Outline: TypeAlias = 'Literal["scalar"] | Shape | list[Outline] | dict[object, Outline] | None'
"""The shape of what a function returns: of a number, a vector or struct, a tuple, or nothing."""


@dataclass(frozen=True, eq=False, slots=True)  # each is itself, also in sets
class MutableVar:
    """A name bound to variables: one for a scalar (``shape`` is ``()``), one for each scalar of a vector or struct.

    ``shared`` variables live outside the parallel loops of a kernel; inside a loop they are slots of scratch memory.
    ``whole`` says that it is not part of another.
    """

    vars: tuple[ir.Var, ...]
    shape: Shape
    shared: bool
    span: Span
    whole: bool = True

    @property
    def types(self) -> tuple[Scalar, ...]:
        return tuple(var.type for var in self.vars)

    def stand_in(self, span: Span) -> ir.Expr | Vec | Record:
        """A value of the variable's type and shape, for what asks for no more."""
        return shaped(self.shape, tuple(ir.VarRead(var, span=span) for var in self.vars))

    def part(self, picked: Iterable[int], shape: Shape) -> MutableVar:
        """Some of the scalars, as a variable of the given shape."""
        return MutableVar(tuple(self.vars[k] for k in picked), shape, self.shared, self.span, whole=False)

    def member(self, name: str) -> MutableVar | None:
        """A member, as a variable; None where there is no such member."""
        found = self.shape.window(name) if isinstance(self.shape, RecordType) else None
        if found is None:
            return None
        first, member = found
        return self.part(range(first, first + len(member.types)), shape_of_member(member))


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """A name, or an item, bound to a list, tuple or dict whose items are assigned: ``held`` has a variable, or more such
    items, for each item.
    """

    held: Any
    shared: bool

    def same_form(self, value: Any) -> bool:
        """Whether ``value`` has the same items, but for their numbers."""
        if type(value) is not type(self.held) or len(self.held) != len(value):
            return False
        if isinstance(value, dict):
            return value.keys() == self.held.keys() and Items([*self.held.values()], self.shared).same_form(
                [value[key] for key in self.held]
            )
        return all(
            item.same_form(given) if isinstance(item, Items) else item.shape == getattr(given, "shape", ())
            for item, given in zip(self.held, value, strict=True)
        )


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """What names an object of ``cls`` while a kernel makes it; ``now`` gives the object as it is."""

    cls: type
    now: Callable[[], object]


Assigned: TypeAlias = set[tuple[str, MutableVar]]
"""Variables with their names: a name may stand for other variables on other paths."""


@dataclass(frozen=True, slots=True)
class ChosenPart:
    """One of ``parts``, the components or rows of a variable: the one whose number ``at`` is at run time."""

    parts: tuple[MutableVar, ...]
    at: ir.Expr

    @property
    def vars(self) -> tuple[ir.Var, ...]:
        """The variables of the first part; each part has as many."""
        return self.parts[0].vars

    @property
    def shape(self) -> Shape:
        return self.parts[0].shape

    @property
    def types(self) -> tuple[Scalar, ...]:
        return self.parts[0].types

    def is_at(self, number: int, span: Span) -> ir.Expr:
        """Whether part ``number`` is the chosen one."""
        return self.at.eq(number)


@dataclass(slots=True)
class Frame:
    """One function being traced: the kernel, or a function inlined into it.

    ``singles`` are the names that need no variable, with True where they are assigned again; ``static`` counts the ``qp.static`` around;
    ``function`` is the lambda of the frame, ``comprehended`` has the names of the comprehensions around; ``loops`` the kinds of the loops around; ``early_returns`` counts
    returns that jump to the end of the block ``label``.  ``results`` are the variables of returned values,
    ``outline`` their shape, ``returned`` the value of the one return; ``literals`` maps the ids of returned constants
    to them: they stay exact until all returns meet.  ``unset`` are the variables that a path to here leaves without a
    value, ``breaks`` what was set at each ``break`` of the run-time loops around.  ``outer`` is what was bound before
    the parallel loop around, ``shared`` the names of compile-time values of it that the loop has read; ``private`` are names that an earlier such loop bound again, with
    its line: they have no value after it.  ``seen`` are the names that marks of the source have shown;
    ``nones`` those to which None was assigned, with the number of loops around it; ``called_at`` is the call of a function;
    ``entry`` are the names that were bound where the innermost statement around begins that may run more than once, or not at all;
    ``items`` are what the names of unrolled loops were bound to, where that is a part of something that lives on;
    ``finished`` what they are bound to after their loops, until something reads them; ``replaced`` are variables whose
    names became those of others, of another type.
    """

    source: FunctionSource
    env: dict[str, object]
    singles: Mapping[str, bool] = field(default_factory=dict)
    static: int = 0
    function: object = None
    comprehended: dict[str, object] = field(default_factory=dict)
    runtime_depth: int = 0
    entry: frozenset[str] = frozenset()
    loops: list[str] = field(default_factory=list)
    label: str = ""
    early_returns: int = 0
    results: list[list[ir.Var]] = field(default_factory=list)
    outline: Outline = None
    returned: object = None
    literals: dict[int, ir.Const] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    breaks: list[list[Assigned]] = field(default_factory=list)
    outer: dict[str, object] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    private: dict[str, Span] = field(default_factory=dict)
    seen: dict[str, object] = field(default_factory=dict)
    nones: dict[str, int] = field(default_factory=dict)
    called_at: Span = NOWHERE
    items: dict[str, object] = field(default_factory=dict)
    finished: dict[str, object] = field(default_factory=dict)
    replaced: dict[str, MutableVar] = field(default_factory=dict)

    @contextmanager
    def at_compile_time(self) -> Iterator[None]:
        """Context manager: inside ``qp.static``, where Python functions may be called."""
        self.static += 1
        try:
            yield
        finally:
            self.static -= 1

    @contextmanager
    def conditional(self, *, depth: int = 1) -> Iterator[None]:
        """Context manager: inside a statement that may run more than once, or not at all."""
        outer, self.entry = self.entry, frozenset(self.env)
        self.runtime_depth += depth
        try:
            yield
        finally:
            self.runtime_depth -= depth
            self.entry = outer

    def binds(self, name: str, value: object) -> bool:
        """Whether ``name`` is still bound to ``value``."""
        return name in self.env and self.env[name] is value

    def is_item(self, name: str) -> bool:
        """Whether ``name`` stands for an item of the container that an unrolled loop runs over."""
        return name in self.items and self.binds(name, self.items[name])

    def is_finished(self, name: str) -> bool:
        """Whether ``name`` is that of an unrolled loop that is over, and nothing has read it since."""
        return name in self.finished and self.binds(name, self.finished[name])

    def variables(self) -> Assigned:
        return {(name, value) for name, value in self.env.items() if isinstance(value, MutableVar)}

    def assigned(self) -> Assigned:
        """The variables that every path to here assigns."""
        return {(name, variable) for name, variable in self.variables() if name not in self.unset}

    def meet(self, paths: Sequence[Assigned]) -> None:
        """Paths come together here, each with the variables that it assigned."""
        missing = self.variables() - paths[0].intersection(*paths[1:]) if paths else set()
        self.unset = {name for name, _ in missing}
