"""The order of a kernel's tasks where it is more than their sequence.  Owns: Flow, Fork, Loop and questions about them.

Imports: the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Flow", "Fork", "Loop", "conditions_of", "loop_ends", "print_flow", "tasks_of"]


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches that do not depend on each other; what follows waits for all of them."""

    branches: tuple[tuple[Flow, ...], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``body``, and again while element 0 of the integer array parameter ``condition`` is not 0."""

    condition: str
    body: tuple[Flow, ...]


Flow: TypeAlias = "int | Fork | Loop"
"""A task by its number, or what holds several."""


def tasks_of(flow: tuple[Flow, ...]) -> Iterator[int]:
    """The numbers of the tasks, in the order in which they stand."""
    for part in flow:
        match part:
            case Fork(branches=branches):
                for branch in branches:
                    yield from tasks_of(branch)
            case Loop(body=body):
                yield from tasks_of(body)
            case _:
                yield part


def conditions_of(flow: tuple[Flow, ...]) -> tuple[str, ...]:
    """The parameters that loops ask, each once, in their order."""
    return tuple(dict.fromkeys(_conditions(flow)))


def _conditions(flow: tuple[Flow, ...]) -> Iterator[str]:
    for part in flow:
        if isinstance(part, Fork):
            for branch in part.branches:
                yield from _conditions(branch)
        elif isinstance(part, Loop):
            yield part.condition
            yield from _conditions(part.body)


def loop_ends(flow: tuple[Flow, ...]) -> dict[int, list[tuple[str, int]]]:
    """For each task that ends loops: their conditions and their first tasks, the innermost loop first."""
    ends: dict[int, list[tuple[str, int]]] = {}

    def visit(parts: tuple[Flow, ...]) -> None:
        for part in parts:
            if isinstance(part, Fork):
                for branch in part.branches:
                    visit(branch)
            elif isinstance(part, Loop):
                visit(part.body)
                inside = list(tasks_of(part.body))
                ends.setdefault(inside[-1], []).append((part.condition, inside[0]))

    visit(flow)
    return ends


def print_flow(flow: tuple[Flow, ...]) -> str:
    """``0 fork(1 2 | 3) loop go (4 5)``."""
    return " ".join(map(_text, flow))


def _text(part: Flow) -> str:
    match part:
        case Fork(branches=branches):
            return f"fork({' | '.join(map(print_flow, branches))})"
        case Loop(condition=condition, body=body):
            return f"loop {condition} ({print_flow(body)})"
        case _:
            return str(part)
