"""The order of a kernel's tasks where it is more than their sequence: branches that may run at once, and loops.

The IR, code objects, launches and graphs share these types; only ``flow_to_json`` and ``flow_from_json`` know how a
manifest spells them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from quadpy.core.light import dataclass


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches that do not depend on each other; what follows waits for all of them."""

    branches: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``body``, and again while element 0 of the integer array parameter ``condition`` is not 0."""

    condition: str
    body: Flow


Step: TypeAlias = "int | Fork | Loop"
"""A task by its number, or what holds several."""

Flow: TypeAlias = tuple[Step, ...]
"""Steps in order.  Where it is a kernel's, ``()`` stands for all of its tasks in order."""


def steps_of(flow: Iterable[Step]) -> Iterator[Step]:
    """All steps, each before those inside it."""
    for step in flow:
        yield step
        match step:
            case Fork(branches=branches):
                for branch in branches:
                    yield from steps_of(branch)
            case Loop(body=body):
                yield from steps_of(body)
            case _:
                pass


def tasks_of(flow: Iterable[Step]) -> Iterator[int]:
    """The numbers of the tasks, in order."""
    return (step for step in steps_of(flow) if isinstance(step, int))


def loops_of(flow: Iterable[Step]) -> Iterator[Loop]:
    """The loops, each before those inside it."""
    return (step for step in steps_of(flow) if isinstance(step, Loop))


def has_loop(flow: Iterable[Step]) -> bool:
    """Whether any part is repeated."""
    return any(True for _ in loops_of(flow))


def depth_of(flow: Flow) -> int:
    """How many tasks run one after another, with one pass through each loop."""
    return sum(
        max(map(depth_of, step.branches), default=0) if isinstance(step, Fork)
        else depth_of(step.body) if isinstance(step, Loop) else 1
        for step in flow
    )  # fmt: skip


def conditions_of(flow: Iterable[Step]) -> tuple[str, ...]:
    """The parameters that decide loops, each once, in order."""
    return tuple(dict.fromkeys(loop.condition for loop in loops_of(flow)))


def loop_ends(flow: Flow) -> dict[int, list[tuple[str, int]]]:
    """For each task that ends loops: their conditions and their first tasks, the innermost loop first."""
    ends: dict[int, list[tuple[str, int]]] = {}
    for loop in reversed(list(loops_of(flow))):
        inside = list(tasks_of(loop.body))
        ends.setdefault(inside[-1], []).append((loop.condition, inside[0]))
    return ends


def map_tasks(
    flow: Iterable[Step], tasks: Callable[[int], Iterable[int]], condition: Callable[[str], str] = str
) -> Flow:
    """``flow`` with each task replaced by ``tasks`` of it, and each loop's condition by ``condition`` of it."""

    def visit(steps: Iterable[Step]) -> Iterator[Step]:
        for step in steps:
            match step:
                case Fork(branches=branches):
                    yield Fork(tuple(tuple(visit(branch)) for branch in branches))
                case Loop(condition=name, body=body):
                    yield Loop(condition(name), tuple(visit(body)))
                case _:
                    yield from tasks(step)

    return tuple(visit(flow))


def print_flow(flow: Flow) -> str:
    """``0 fork(1 2 | 3) loop go (4 5)``."""
    return " ".join(map(_text, flow))


def _text(step: Step) -> str:
    match step:
        case Fork(branches=branches):
            return f"fork({' | '.join(map(print_flow, branches))})"
        case Loop(condition=condition, body=body):
            return f"loop {condition} ({print_flow(body)})"
        case _:
            return str(step)


def flow_to_json(flow: Flow) -> list[Any]:
    """Numbers of tasks, ``{"fork": [branch, ...]}`` and ``{"loop": condition, "body": [...]}``."""
    return [_step_to_json(step) for step in flow]


def _step_to_json(step: Step) -> Any:
    match step:
        case Fork(branches=branches):
            return {"fork": [flow_to_json(branch) for branch in branches]}
        case Loop(condition=condition, body=body):
            return {"loop": condition, "body": flow_to_json(body)}
        case _:
            return step


def flow_from_json(data: Iterable[Any]) -> Flow:
    """What ``flow_to_json`` gave; KeyError for anything else."""
    return tuple(map(_step_from_json, data))


def _step_from_json(data: Any) -> Step:
    if isinstance(data, int):
        return data
    if "fork" in data:
        return Fork(tuple(map(flow_from_json, data["fork"])))
    return Loop(data["loop"], flow_from_json(data["body"]))
