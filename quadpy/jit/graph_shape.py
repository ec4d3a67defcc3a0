"""What the graph of a call has for nodes, and what each comes after.  Owns: GraphNode, Repeat, Part, ``parts_of``.

A task comes after those before it that touch the same array, one of the two writing; what is independent so stays
independent, also where the kernel does not say it.  Names suffice for that: code that was compiled for arrays that do
not overlap touches the same memory only by the same name.  Other code keeps its order.
Imports: ``artifact``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from quadpy.artifact import CodeObject, TaskInfo
from quadpy.flow import Flow, Fork, Loop, Step, tasks_of

__all__ = ["GraphNode", "Part", "Repeat", "passes", "parts_of", "place", "size_of"]

Kind: TypeAlias = Literal["task", "loop", "begin", "again"]
"""``begin`` and ``again`` tell the device that the body of a loop in a loop is to run, and whether to run one again."""

_ALL: Final = "$all"
_SCRATCH: Final = "$scratch"
_TURN: Final = "$turn"
_INNER: Final = 4
"""How often a pass over a loop's body goes over the body of a loop in it."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node behind others, by their numbers; ``task`` is a launch of the code, ``name`` the condition of a loop."""

    kind: Kind
    after: tuple[int, ...]
    task: int = -1
    name: str = ""
    body: tuple[GraphNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop that the host repeats: ``steps`` of its body, with latches."""

    steps: Flow


Part: TypeAlias = "tuple[GraphNode, ...] | Repeat"
"""What is one graph, or a loop."""

Effects: TypeAlias = Mapping[str, str]
State: TypeAlias = dict[str, tuple[frozenset[int], frozenset[int]]]
"""The nodes that wrote a name last, and those that have read it since."""


def parts_of(code: CodeObject, *, ordered: bool) -> tuple[Part, ...]:
    """What runs one after the other; loops are nodes where the code has no latches.

    ``ordered`` keeps the order of tasks though nothing is known to need it.
    """
    steps = code.flow or tuple(range(len(code.tasks)))
    if not any(task.latch for task in code.tasks):
        return (place(steps, code.tasks, ordered=ordered),)
    parts: list[Part] = []
    for loops, run in itertools.groupby(steps, lambda step: isinstance(step, Loop)):
        if loops:
            parts += (Repeat(step.body) for step in run if isinstance(step, Loop))
        else:
            parts.append(place(tuple(run), code.tasks, ordered=ordered))
    return tuple(parts)


def passes(repeat: Repeat, count: int) -> Flow:
    """Steps that go over the body ``count`` times, and each time a few times over that of a loop in it."""
    return _pass(repeat.steps) * count


def _pass(steps: Flow) -> Flow:
    found: list[Step] = []
    for step in steps:
        found += _pass(step.body) * _INNER if isinstance(step, Loop) else (step,)
    return tuple(found)


def place(steps: Flow, tasks: Sequence[TaskInfo], *, ordered: bool, turns: bool = False) -> tuple[GraphNode, ...]:
    """The nodes for ``steps``; with ``turns`` every task looks whose turn it is, which latches change."""
    return _Placing(tasks, ordered=ordered, turns=turns).nodes_of(steps)


def size_of(repeat: Repeat) -> int:
    """How many nodes one pass has."""
    return len(list(tasks_of(passes(repeat, 1))))


class _Placing:
    """The nodes of one graph so far."""

    def __init__(self, tasks: Sequence[TaskInfo], *, ordered: bool, turns: bool, nested: bool = False) -> None:
        self._tasks, self._ordered, self._turns, self._nested = tasks, ordered, turns, nested
        self._nodes: list[GraphNode] = []
        self._ancestors: list[int] = []  # a bit for each node that must have run before

    def nodes_of(self, steps: Flow, *, again: str = "") -> tuple[GraphNode, ...]:
        state = self._steps(steps, {})
        if again:
            self._add(state, "again", {again: "r", _ALL: "r"}, name=again)
        return tuple(self._nodes)

    def _steps(self, steps: Flow, state: State) -> State:
        for step in steps:
            match step:
                case int():
                    self._add(state, "task", self._effects(step), task=step)
                case Fork(branches=branches):
                    state = _merged([self._steps(branch, dict(state)) for branch in branches] or [state])
                case Loop():
                    self._loop(step, state)
                case _:
                    raise AssertionError(step)
        return state

    def _loop(self, step: Loop, state: State) -> None:
        """A node with a graph of its own, behind all that its tasks come after."""
        name = step.condition
        effects: dict[str, str] = {name: "r"}
        for task in tasks_of(step.body):
            for touched, letters in self._effects(task).items():
                effects[touched] = effects.get(touched, "") + letters
        body = _Placing(self._tasks, ordered=self._ordered, turns=False, nested=True)
        nodes = body.nodes_of(step.body, again=name)
        begin = None
        if self._nested:  # what a launch of the whole graph begins with is long gone
            begin = len(self._nodes)
            self._add({}, "begin", {}, name=name)
        self._add(state, "loop", effects, name=name, body=nodes, behind=begin)

    def _effects(self, task: int) -> Effects:
        if self._ordered:
            return {_ALL: "w"}
        info = self._tasks[task]
        found = dict(info.effects)
        if info.scratch:
            found[_SCRATCH] = info.scratch
        if self._turns:
            found[_TURN] = "w" if info.latch else "r"
        return found

    def _add(
        self, state: State, kind: Kind, effects: Effects, *, task: int = -1, name: str = "",
        body: tuple[GraphNode, ...] = (), behind: int | None = None,
    ) -> None:  # fmt: skip
        """One node more, and what ``state`` is behind it."""
        number = len(self._nodes)
        found = set() if behind is None else {behind}
        for touched, letters in effects.items():
            writers, readers = state.get(touched, (frozenset(), frozenset()))
            found |= writers if letters.strip("r") == "" else writers | readers
        implied = ancestors = 0
        for node in found:
            implied |= self._ancestors[node]
            ancestors |= self._ancestors[node] | 1 << node
        self._ancestors.append(ancestors)
        after = tuple(sorted(node for node in found if not implied >> node & 1))
        self._nodes.append(GraphNode(kind, after, task, name, body))
        for touched, letters in effects.items():
            writers, readers = state.get(touched, (frozenset(), frozenset()))
            if letters.strip("r") == "":
                state[touched] = writers, readers | {number}
            else:
                state[touched] = frozenset({number}), frozenset()


def _merged(states: Sequence[State]) -> State:
    """Behind all branches of a fork."""
    merged: State = {}
    for state in states:
        for name, (writers, readers) in state.items():
            before = merged.get(name, (frozenset(), frozenset()))
            merged[name] = before[0] | writers, before[1] | readers
    return merged
