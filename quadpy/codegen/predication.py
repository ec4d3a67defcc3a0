"""The segment of a loop that each task belongs to, for loops whose end the host cannot decide.

A loop over tasks is cut into segments at its decision points.  Memory holds the number of the segment whose turn it is;
tasks of other segments do nothing, and a latch after each segment chooses the next.  Therefore, any sequence that repeats the
body, nested loops included, has the effect of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from quadpy.core.artifact import LOOP_DONE
from quadpy.core.flow import Flow, Loop, Step, map_tasks, tasks_of
from quadpy.core.light import dataclass


@dataclass(slots=True)
class Latch:
    """After ``segment``: the first nonzero condition leads to its segment; if all are 0, ``otherwise`` is next."""

    segment: int
    otherwise: int
    decisions: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Predication:
    """The segments of a kernel's loops, numbered from 0 in each that stands at the top.

    segments  task -> its segment; tasks outside of loops have none
    latches   in the order of the program
    ends      latch -> the last task of its segment
    """

    segments: dict[int, int]
    latches: tuple[Latch, ...]
    ends: tuple[int, ...]


def predication_of(flow: Flow) -> Predication | None:
    """The segments of a kernel's ``flow``; None if it has no loop at the top."""
    if not any(isinstance(part, Loop) for part in flow):
        return None
    cut = _Cut()
    for part in flow:
        if isinstance(part, Loop):
            cut.segment = 0
            cut.loop(part)
            cut.latches[-1].otherwise = LOOP_DONE
    return Predication(cut.segments, tuple(cut.latches), tuple(cut.ends))


class _Cut:
    """Cuts one loop after the other."""

    def __init__(self) -> None:
        self.segments: dict[int, int] = {}
        self.latches: list[Latch] = []
        self.ends: list[int] = []
        self.segment = 0
        self._last: int | None = None  # the last task of the segment so far

    def loop(self, loop: Loop) -> None:
        self._close()
        first = self.segment
        for part in loop.body:
            if isinstance(part, Loop):
                self.loop(part)
                continue
            for task in tasks_of((part,)):
                self.segments[task] = self.segment
                self._last = task
        self._close()
        self.latches[-1].decisions.append((loop.condition, first))

    def _close(self) -> None:
        """Put a latch after the tasks since the last one."""
        if self._last is not None:
            self.latches.append(Latch(self.segment, self.segment + 1))
            self.ends.append(self._last)
            self.segment, self._last = self.segment + 1, None


def predicated_flow(flow: Flow, launches: Sequence[range], first_latch: int, found: Predication) -> Flow:
    """``flow`` over launches instead of tasks, with latches, which are numbered from ``first_latch`` on."""
    latches = {task: first_latch + number for number, task in enumerate(found.ends)}

    def walk(steps: Flow) -> Iterator[Step]:
        for step in steps:
            if isinstance(step, Loop):
                yield Loop(step.condition, tuple(walk(step.body)))
                continue
            yield from map_tasks((step,), launches.__getitem__)
            *_, last = tasks_of((step,))
            if last in latches:
                yield latches[last]

    return tuple(walk(flow))
