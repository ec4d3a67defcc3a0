"""The steps in which one launch runs all tasks of a kernel, and the points where its blocks must meet in between.

A task is one phase; a task with reductions is two: its chunks, then their merge.  A phase touches arrays, slots of
scratch memory and rows of partial results.  Blocks meet before a phase that touches what an earlier one wrote, or
writes what one touched, unless the grid's first thread alone runs both: it sees its own writes.  Branches of a fork
touch nothing of each other, so their phases may run between the same two meetings: each then begins on a share of the
blocks of its own (``segments_of``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from quadpy.codegen.reduction import reduction_rows
from quadpy.core.flow import Flow, Fork, Loop
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Access
from quadpy.ir.touches import touched_in
from quadpy.ir.walk import walk

Part = Literal["all", "chunks", "merge"]


@dataclass(frozen=True, slots=True)
class Phase:
    """Task ``task``, or a part of one with reductions."""

    task: int
    part: Part = "all"


@dataclass(frozen=True, slots=True)
class Meet:
    """All blocks meet, and see what each of them wrote before."""


@dataclass(frozen=True, slots=True)
class Again:
    """``body`` and a meeting, repeated while element 0 of the array ``condition`` is not 0.

    The grid's first thread reads the condition before the meeting, and all threads take its answer after it: so the
    condition may be written before the next meeting.  ``number`` identifies the loop.
    """

    condition: str
    body: tuple[Step, ...]
    number: int


Step: TypeAlias = "Phase | Meet | Again"

_ANY_ARRAY: Final = ("array", "")
"""Stands for every array if any two may overlap."""


@dataclass(frozen=True, slots=True)
class _Access:
    """A resource that a phase accesses; ``alone`` says that only the grid's first thread accesses it.

    ``path`` names the forks around the phase, each with the number of its branch.
    """

    resource: tuple[str, str | int]
    writes: bool
    alone: bool
    path: tuple[tuple[int, int], ...]

    def disturbs(self, other: _Access) -> bool:
        if self.resource != other.resource or not (self.writes or other.writes) or (self.alone and other.alone):
            return False
        return not any(a == b and m != n for a, m in self.path for b, n in other.path)


_Path: TypeAlias = "tuple[tuple[int, int], ...]"
_Item: TypeAlias = "tuple[Phase | Fork | Loop, _Path]"


def steps_of(kernel: ir.Kernel) -> tuple[Step, ...]:
    """The steps of ``kernel``, in order."""
    planner = _Planner(kernel)
    planner.parts(planner.items(kernel.flow or tuple(range(len(kernel.tasks))), ()))
    return tuple(planner.steps)


def meetings_of(steps: Iterable[Step]) -> int:
    """How often the blocks meet, with one pass through each loop."""
    return sum(1 + meetings_of(step.body) if isinstance(step, Again) else isinstance(step, Meet) for step in steps)


def segments_of(steps: Iterable[Step]) -> Iterator[list[Phase]]:
    """The phases that run between two meetings, for each pair of meetings."""
    found: list[Phase] = []
    for step in steps:
        if isinstance(step, Phase):
            found.append(step)
            continue
        yield found
        found = []
        if isinstance(step, Again):
            yield from segments_of(step.body)
    yield found


class _Planner:
    """``pending`` holds the accesses since the blocks last met."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        self.steps: list[Step] = []
        self.pending: list[_Access] = []
        self.rows = reduction_rows(kernel)[0]
        self.forks = self.loops = 0

    def items(self, flow: Flow, path: _Path) -> Iterator[_Item]:
        for part in flow:
            if not isinstance(part, int):
                yield part, path
            elif _reductions(self.kernel.tasks[part]):
                yield Phase(part, "chunks"), path
                yield Phase(part, "merge"), path
            else:
                yield Phase(part), path

    def parts(self, items: Iterable[_Item]) -> None:
        for part, path in items:
            match part:
                case Fork():
                    self.fork(part, path)
                case Loop():
                    self.loop(part, path)
                case _:
                    self.phase(part, path)

    def phase(self, phase: Phase, path: _Path) -> None:
        touches = self.touches(phase, path)
        if self.disturbed(touches):
            self.meet()
        self.pending += touches
        self.steps.append(phase)

    def meet(self) -> None:
        self.steps.append(Meet())
        self.pending = []

    def disturbed(self, touches: Iterable[_Access]) -> bool:
        return any(touch.disturbs(earlier) for touch in touches for earlier in self.pending)

    def fork(self, fork: Fork, path: _Path) -> None:
        """All phases that are ready, of any branch, run before the next meeting."""
        self.forks += 1
        branches = [deque(self.items(b, (*path, (self.forks, n)))) for n, b in enumerate(fork.branches)]
        while branches := [branch for branch in branches if branch]:
            ready = [branch for branch in branches if self.is_ready(branch[0])]
            if ready:
                self.parts([ready[0].popleft()])
            elif holding := [branch for branch in branches if not isinstance(branch[0][0], Phase)]:
                self.parts([holding[0].popleft()])
            else:
                self.meet()

    def is_ready(self, item: _Item) -> bool:
        return isinstance(item[0], Phase) and not self.disturbed(self.touches(item[0], item[1]))

    def loop(self, loop: Loop, path: _Path) -> None:
        """Nothing is pending after an iteration, so the first iteration decides where the blocks meet."""
        if self.disturbed(self.inside((loop,), path)):
            self.meet()  # once, and not in each iteration
        number, self.loops = self.loops, self.loops + 1
        outer, self.steps = self.steps, []
        self.parts(self.items(loop.body, path))
        if self.disturbed([self.asked(loop, path)]):
            self.meet()
        outer.append(Again(loop.condition, tuple(self.steps), number))
        self.steps, self.pending = outer, []

    def asked(self, loop: Loop, path: _Path) -> _Access:
        return _Access(self.array(loop.condition), writes=False, alone=True, path=path)

    def inside(self, flow: Flow, path: _Path) -> Iterator[_Access]:
        """The accesses of the phases in ``flow``."""
        for part, _ in self.items(flow, path):
            match part:
                case Fork(branches=branches):
                    for branch in branches:
                        yield from self.inside(branch, path)
                case Loop():
                    yield self.asked(part, path)
                    yield from self.inside(part.body, path)
                case _:
                    yield from self.touches(part, path)

    def touches(self, phase: Phase, path: _Path) -> list[_Access]:
        """All blocks see whether a task's gate is open."""
        gate = self.kernel.tasks[phase.task].gate
        seen = [] if gate is None else [_Access(self.array(gate.state), writes=False, alone=False, path=path)]
        return [*seen, *self.touched(phase, path)]

    def touched(self, phase: Phase, path: _Path) -> list[_Access]:
        task = self.kernel.tasks[phase.task]
        if isinstance(task, ir.SerialTask):
            return [*self.arrays(task, path, alone=True), *_slots(task, path, alone=True)]
        axes = [touch for axis in task.axes for touch in _slots(axis, path, alone=False)]
        if phase.part == "all":
            return [*self.arrays(task, path, alone=False), *_slots(task, path, alone=False)]
        rows = range(self.rows[phase.task], self.rows[phase.task] + len(task.reductions))
        partial = [_Access(("row", row), phase.part == "chunks", alone=False, path=path) for row in rows]
        if phase.part == "chunks":
            body = task.body
            return [*self.arrays(body, path, alone=False), *_slots(body, path, alone=False), *axes, *partial]
        totals = [touch for r in task.reductions for touch in self.total(r, path)]
        return [*totals, *axes, *partial]

    def arrays(self, node: ir.Node, path: _Path, *, alone: bool) -> Iterator[_Access]:
        """The arrays that ``node`` touches, and the rings of its prints, which keep their order."""
        for name, access in effects_of(node):
            if name in self.parameters():
                yield _Access(self.array(name), access != Access.READ, alone, path)
        for name in {n.ring.name for n in walk(node) if isinstance(n, ir.Print)}:
            yield _Access(("ring", name), writes=True, alone=alone, path=path)

    def parameters(self) -> set[str]:
        return set(self.kernel.arrays)

    def total(self, r: ir.Reduction, path: _Path) -> Iterator[_Access]:
        """The first thread updates the destination with the block's result."""
        yield from _slots(r, path, alone=True)
        yield from self.arrays(r, path, alone=True)

    def array(self, name: str) -> tuple[str, str | int]:
        return ("array", name) if self.kernel.noalias else _ANY_ARRAY


def _reductions(task: ir.Task) -> bool:
    return isinstance(task, ir.ParallelTask) and bool(task.reductions)


def _slots(node: ir.Node, path: _Path, *, alone: bool) -> Iterator[_Access]:
    for _, place, access in touched_in(node):
        if isinstance(place, ir.Slot):
            yield _Access(("slot", place.number), access is not Access.READ, alone, path)
