"""Queues that run when they are told to, and the order of their operations.

Each op carries a vector clock: how many ops of each queue are ordered before it, by its own queue, by events that its
queue waited for, and by what the host had seen complete when it was submitted.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Clock", "Queue", "Op", "Range", "Simulation", "merge", "ordered"]

Clock: TypeAlias = dict[int, int]
Range: TypeAlias = tuple[int, int]
"""Address of the first byte, and how many bytes."""


@dataclass(eq=False)
class Queue:
    """The work of one stream, in order; it outlives the stream's handle."""

    serial: int
    clock: Clock = field(default_factory=dict, repr=False)
    pending: deque[Op] = field(default_factory=deque, repr=False)
    units: int | None = None  # how many compute units it has, if it has a part of them


@dataclass(eq=False)
class Op:
    """One piece of work: op ``number`` of ``queue``.  ``moment`` is the time when it ran, counted in ops, or 0."""

    kind: str
    queue: Queue
    number: int
    clock: Clock = field(repr=False)
    reads: tuple[Range, ...] = ()
    writes: tuple[Range, ...] = ()
    action: Callable[[], None] | None = field(default=None, repr=False)
    awaits: Op | None = field(default=None, repr=False)
    moment: int = 0


def ordered(before: Op, after: Op) -> bool:
    """Whether ``after`` can only begin once ``before`` is complete, whatever the timing."""
    return before.number <= after.clock.get(before.queue.serial, 0)


class Simulation:
    """Queues of ops, none of which runs by itself.

    ``step`` runs one op, ``finish`` an op and all ops that it waits for; the rest stays pending, as on a slow device.
    """

    def __init__(self, *, history: bool = True) -> None:
        self.ops: list[Op] = []
        self._history = history  # without it there are no clocks, which grow with each queue ever created
        self._queues: dict[int, Queue] = {}
        self._serials, self._moments = itertools.count(1), itertools.count(1)
        self._seen: Clock = {}
        self._latest: Clock = {}  # the last op of every queue ever created

    def queue(self) -> Queue:
        return Queue(next(self._serials))

    def submit(
        self,
        kind: str,
        queue: Queue,
        *,
        reads: Iterable[Range] = (),
        writes: Iterable[Range] = (),
        action: Callable[[], None] | None = None,
        awaits: Op | None = None,
        after: Clock | None = None,
    ) -> Op:
        """Put an op on ``queue``; it also waits for ``awaits``, and comes after all ops that ``after`` counts."""
        if self._history:
            for clock in (self._seen, awaits.clock if awaits else {}, after or {}):
                merge(queue.clock, clock)
        number = queue.clock.get(queue.serial, 0) + 1
        queue.clock[queue.serial] = number
        op = Op(kind, queue, number, dict(queue.clock), tuple(reads), tuple(writes), action, awaits)
        queue.pending.append(op)
        self._queues[queue.serial] = queue
        if self._history:
            self.ops.append(op)
            self._latest[queue.serial] = number
        return op

    def observe(self, clock: Clock) -> None:
        """The host has seen the ops that ``clock`` counts complete: its later submissions come after them."""
        if self._history:
            merge(self._seen, clock)

    def ready(self) -> list[Queue]:
        """The queues whose next op could run now."""
        return [queue for queue in self._queues.values() if _waits_for(queue.pending[0]) is None]

    def step(self, queue: Queue) -> Op:
        """Run the next op of ``queue``, which is ready."""
        op = queue.pending.popleft()
        if not queue.pending:
            del self._queues[queue.serial]
        op.moment = next(self._moments)
        action, op.action, op.awaits = op.action, None, None
        if action:
            action()
        return op

    def finish(self, op: Op) -> None:
        """Run the ops that ``op`` needs and ``op`` itself, and nothing else."""
        goals = [op]
        while goals:
            if goals[-1].moment:
                goals.pop()
            elif (obstacle := _waits_for(goals[-1].queue.pending[0])) is not None:
                goals.append(obstacle)
            else:
                self.step(goals[-1].queue)

    def finish_queue(self, queue: Queue) -> None:
        """Run all of ``queue``; the host sees it complete."""
        if queue.pending:
            self.finish(queue.pending[-1])
        self.observe(queue.clock)

    def finish_all(self) -> None:
        """Run everything; the host sees it complete."""
        while queues := list(self._queues.values()):
            self.finish_queue(queues[0])
        self.observe(self._latest)  # also of queues that had run by themselves

    def races(self) -> Iterator[tuple[Op, Op]]:
        """All pairs of unordered ops in the history that access the same bytes, at least one of them writing."""
        found: dict[tuple[int, int], None] = {}
        open_ranges: list[tuple[int, int, int, bool]] = []
        for start, end, number, writes in sorted(self._accesses()):
            open_ranges = [each for each in open_ranges if each[1] > start]
            for _, _, other, wrote in open_ranges:
                if writes or wrote:
                    first, second = self.ops[min(number, other)], self.ops[max(number, other)]
                    if not (ordered(first, second) or ordered(second, first)):
                        found[min(number, other), max(number, other)] = None
            open_ranges.append((start, end, number, writes))
        return ((self.ops[first], self.ops[second]) for first, second in sorted(found))

    def _accesses(self) -> Iterator[tuple[int, int, int, bool]]:
        """Each range of bytes that an op accesses: start, end, the number of the op, whether it writes."""
        for number, op in enumerate(self.ops):
            for writes, ranges in ((False, op.reads), (True, op.writes)):
                for start, nbytes in ranges:
                    if nbytes:
                        yield start, start + nbytes, number, writes


def _waits_for(op: Op) -> Op | None:
    """The op that must run before ``op``, the next one of its queue; None if ``op`` is ready."""
    return op.awaits if op.awaits and not op.awaits.moment else None


def merge(clock: Clock, other: Clock) -> None:
    """Add the ops that ``other`` counts to ``clock``."""
    for serial, number in other.items():
        if clock.get(serial, 0) < number:
            clock[serial] = number
