"""A sequence of steps on a tape, of which few states are kept, so that going back repeats as few steps as possible.

A. Griewank and A. Walther: Algorithm 799: revolve, ACM Transactions on Mathematical Software 26 (2000), 19-45: with s states and
each step repeated at most t times, one can go back through up to C(s + t, s) steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import comb

from quadpy.ad.copies import Copy, copy_of
from quadpy.ad.entries import ANY, Touch
from quadpy.ad.recorder import Noting
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.runtime.device.current import same_launches
from quadpy.runtime.launch.capturing import differentiating_here, quietly
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.streams.stream import Stream, use_stream


def kept_first(steps: int, slots: int) -> int:
    """After how many of ``steps`` steps, of which the first state is kept, to keep the next one; ``slots`` counts both."""
    times = 1
    while comb(slots + times, slots) < steps:
        times += 1
    before, others = comb(slots + times - 2, slots) if times > 1 else 0, comb(slots - 1 + times, slots - 1)
    return min(max(before, steps - others, 1), steps - 1)


def segments(steps: int, slots: int) -> list[tuple[int, int, int]]:
    """What the first run keeps: where each state is, up to which step it leads, and how many states that part may keep."""
    found, begin = [], 0
    while slots > 1 and steps - begin > 1:
        there = begin + kept_first(steps - begin, slots)
        found.append((begin, there, slots))
        begin, slots = there, slots - 1
    return [*found, (begin, steps, slots)]


class Steps:
    """The entry of all steps on the tape.

    ``copies`` has the arrays that steps change as they were before, ``states`` the copies of the first run by step.
    """

    touches: Sequence[Touch] = ANY

    def __init__(self, stream: Stream, step: Callable[[int], object], count: int, slots: int) -> None:
        self.stream, self._step, self._parts = stream, step, segments(count, slots)
        self._first: dict[Storage, Copy] = {}
        self._states: dict[int, list[Copy]] = {}
        self._drawn: dict[int, list[int]] = defaultdict(list)  # the launches that draw random numbers, by step

    @property
    def copies(self) -> tuple[Copy, ...]:
        return tuple(self._first.values())

    def forward(self, first: dict[Storage, Copy]) -> None:
        """The first run, in which arrays come into ``first``."""
        self._first = first
        for start, there, _ in self._parts:
            self._keep(start)
            for number in range(start, there):
                self._run(number)

    def _run(self, number: int) -> None:
        """Call the step; each time it draws the same random numbers."""
        with same_launches(self._drawn[number]):
            self._step(number)

    def back(self) -> None:
        if not self._parts:
            raise ArgumentError("the way back through qp.ad.checkpoint is taken again, and no state is left", call_site(),
                                hint="a residual of qp.ad.implicit has no checkpoints")  # fmt: skip
        with use_stream(self.stream):
            while self._parts:
                self._back(*self._parts.pop())

    def _back(self, start: int, there: int, slots: int) -> None:
        """Go back to ``start``, whose state is kept; ``slots`` counts it."""
        while there - start > 1 and slots > 1:
            middle = start + kept_first(there - start, slots)
            self._advance(start, middle)
            self._keep(middle)
            self._back(middle, there, slots - 1)
            there = middle
        for number in reversed(range(start, there)):
            self._advance(start, number)
            with Noting() as recorder:
                self._run(number)
            recorder.go_back()
        self._states.pop(start)

    def _keep(self, start: int) -> None:
        """Keep the state before this step; that before the first one is kept as arrays change."""
        with quietly(differentiating_here()):
            self._states[start] = [copy_of(storage, self.stream) for storage in self._first] if start else []

    def _advance(self, start: int, there: int) -> None:
        """Run from the state before the step ``start`` to that before the step ``there``."""
        known = {each.storage: each for each in self._states[start]}
        for storage, first in self._first.items():
            known.get(storage, first).restore(self.stream)
        for number in range(start, there):
            self._run(number)
