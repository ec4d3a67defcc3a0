"""The nodes of a kernel's graph, derived from its flow.

A task comes after earlier tasks that touch the same array, if one of the two writes.  Names are enough to tell: code that
was compiled for arrays that do not overlap touches the same memory only by the same name.  Without effects, as for other
code, the order is that of the flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from quadpy.core.flow import Flow, Fork, Loop, tasks_of
from quadpy.graph.model.dependences import UNTOUCHED, Ancestors, History
from quadpy.runtime.launch.launch import Effects as KnownEffects

Kind: TypeAlias = Literal["task", "loop", "begin", "again"]

Effects: TypeAlias = Mapping[str, bool]
"""The arrays that a task touches, by name, and whether it writes them."""

_Touched: TypeAlias = dict[str, History]

_ALL: Final[Effects] = {"$all": True}


@dataclass(frozen=True, slots=True)
class TaskNode:
    """One node, after others by their numbers; ``inside`` is the loop to whose body it belongs, or -1.

    task   runs the launch ``task``
    loop   repeats its body
    begin  sets the condition of the nested loop ``loop``, so that its body runs
    again  sets the condition of the loop ``loop`` from element 0 of the array ``condition``
    """

    kind: Kind
    after: tuple[int, ...]
    inside: int = -1
    task: int = -1
    loop: int = -1
    condition: str = ""


def task_nodes(flow: Flow, effects: Sequence[Effects] | None) -> tuple[TaskNode, ...]:
    """The nodes for ``flow``, whose task ``k`` has ``effects[k]``; without effects the order is that of the flow."""
    graph = _Graph(effects)
    graph.add_flow(flow, {}, -1)
    return tuple(graph.nodes)


@lru_cache(maxsize=1024)
def known_task_nodes(flow: Flow, effects: KnownEffects | None) -> tuple[TaskNode, ...]:
    """The same, for calls that come again."""
    return task_nodes(flow, None if effects is None else list(map(dict, effects)))


class _Graph:
    """The nodes so far.  Each body of a loop starts with nothing touched."""

    def __init__(self, effects: Sequence[Effects] | None) -> None:
        self._effects = effects
        self._ancestors = Ancestors()
        self.nodes: list[TaskNode] = []

    def add_flow(self, flow: Flow, touched: _Touched, inside: int) -> _Touched:
        """Add the nodes for ``flow`` after those in ``touched``; returns what is touched then."""
        for step in flow:
            match step:
                case int():
                    effects = self._effects_of(step)
                    self._add(TaskNode("task", self._after(touched, effects), inside, step), touched, effects)
                case Fork(branches=branches):
                    touched = _joined(
                        [self.add_flow(branch, dict(touched), inside) for branch in branches] or [touched]
                    )
                case Loop():
                    self._add_loop(step, touched, inside)
                case _:
                    raise AssertionError(step)
        return touched

    def _add_loop(self, step: Loop, touched: _Touched, inside: int) -> None:
        """Add a loop after everything that its tasks come after."""
        effects: dict[str, bool] = {step.condition: False}
        for task in tasks_of(step.body):
            for name, writes in self._effects_of(task).items():
                effects[name] = effects.get(name, False) or writes
        begin: tuple[int, ...] = ()
        if inside >= 0:  # at a launch all conditions are set; that of a nested loop must be set again each time
            begin = (self._add(TaskNode("begin", (), inside, loop=len(self.nodes) + 1), touched, {}),)
        loop = self._add(TaskNode("loop", self._after(touched, effects, begin), inside), touched, effects)
        within = self.add_flow(step.body, {}, loop)
        asked = {step.condition: False, **dict.fromkeys(_ALL, False)}
        after = self._after(within, asked)
        self._add(TaskNode("again", after, loop, loop=loop, condition=step.condition), within, asked)

    def _effects_of(self, task: int) -> Effects:
        return _ALL if self._effects is None else self._effects[task]

    def _after(self, touched: _Touched, effects: Effects, others: tuple[int, ...] = ()) -> tuple[int, ...]:
        found = set(others)
        for name, writes in effects.items():
            history = touched.get(name, UNTOUCHED)
            found.update(history.writers, history.readers if writes else ())
        return self._ancestors.without_implied(found)

    def _add(self, node: TaskNode, touched: _Touched, effects: Effects) -> int:
        number = self._ancestors.add(node.after)
        self.nodes.append(node)
        for name, writes in effects.items():
            history = touched.get(name, UNTOUCHED)
            access = history.written_by if writes else history.read_by
            touched[name] = access(number, self._ancestors)
        return number


def _joined(branches: Sequence[_Touched]) -> _Touched:
    """The accesses after all branches of a fork."""
    joined: _Touched = {}
    for branch in branches:
        for name, history in branch.items():
            joined[name] = joined.get(name, UNTOUCHED).joined(history)
    return joined
