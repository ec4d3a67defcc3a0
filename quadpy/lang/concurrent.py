"""The concurrent sections of one fork while they are traced: their names, and the variables that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.touches import touches
from quadpy.ir.walk import walk


@dataclass(frozen=True, slots=True)
class Use:
    """The variables that a section uses and changes, each with a location; ``span`` is that of the section."""

    touched: dict[ir.Var, Span]
    changed: dict[ir.Var, Span]
    span: Span


class OpenFork:
    """``node`` is what has been emitted for the fork; ``bound`` are the names that its sections bound, each with the
    place of the section.  No section sees what another one bound.
    """

    def __init__(self) -> None:
        self.node: ir.Sections | None = None
        self.bound: dict[str, Span] = {}
        self._uses: list[Use] = []
        self._entry: dict[str, Any] = {}
        self._before: dict[str, Any] = {}
        self._after: dict[str, Any] = {}

    def enter(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """What names mean at the start of a section that follows where they mean ``env``."""
        self._entry = {**{name: value for name, value in env.items() if name not in self.bound}, **self._before}
        return dict(self._entry)

    def clash(self, use: Use) -> tuple[str, Span, Span] | None:
        """A variable that one section changes and this one touches, or the other way round: its name, its place in
        this section, the place of the other.
        """
        for other in self._uses:
            shared = (use.changed.keys() & other.touched.keys()) | (use.touched.keys() & other.changed.keys())
            if shared:
                var = min(shared, key=lambda v: (use.touched[v].line, v.name))
                return var.name.partition(".")[0], use.touched[var], other.span
        return None

    def add(self, use: Use, stmts: Sequence[ir.Stmt], env: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a section that left names as ``env``; returns what names mean after it.

        A name that several sections bind has no meaning there, since none of them is the last.
        """
        for name, value in env.items():
            if self._entry.get(name) is value:
                continue
            if name in self.bound:
                self._after.pop(name, None)
                continue
            self._after[name], self.bound[name] = value, use.span
            if name in self._entry:
                self._before[name] = self._entry[name]
        self.bound |= {name: use.span for name in self._entry if name not in env}
        self._uses.append(use)
        branch = ir.Block(tuple(stmts), span=use.span)
        self.node = ir.Sections((*self.node.branches, branch) if self.node else (branch,), span=self._uses[0].span)
        return {**{name: value for name, value in self._entry.items() if name not in self.bound}, **self._after}


def use_of(stmts: Sequence[ir.Stmt], slots: Mapping[ir.Var, int], span: Span) -> Use:
    """What a section does with variables; ``slots`` are those that parallel loops asked for."""
    variables = {number: var for var, number in slots.items()}
    use = Use({}, {}, span)
    for stmt in stmts:
        for node in walk(stmt):
            for var, changes in _variables(node, variables):
                use.touched.setdefault(var, node.span)
                if changes:
                    use.changed.setdefault(var, node.span)
    return use


def _variables(node: ir.Node, variables: Mapping[int, ir.Var]) -> Iterator[tuple[ir.Var, bool]]:
    """The variables that ``node`` itself touches, and whether it changes them."""
    match node:
        case ir.VarRead(var=var):
            yield var, False
        case ir.Assign(var=var):
            yield var, True
        case _:
            for place, access in touches(node):
                if isinstance(place, ir.Slot):
                    yield variables[place.number], access is not ir.Access.READ
