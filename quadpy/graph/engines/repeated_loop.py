"""Loops that the host repeats where the driver's graphs have no loops: graphs of several passes, one after the other.

The code itself decides what comes next: memory holds the number of the segment to run, tasks of others do nothing, and a
latch after each segment chooses the next.  Therefore, passes that are launched after the end of the loop do nothing.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from quadpy.artifact import LOOP_DONE
from quadpy.errors import DeviceError
from quadpy.graph.engines.bound_graph import BoundGraph
from quadpy.graph.engines.kernel_program import RepeatedBody
from quadpy.graph.engines.stats import Counts
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import Address, PinnedPointer
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Mark

__all__ = ["STATE_BYTES", "RepeatedLoop"]

STATE_BYTES: Final = 8
"""The device's state of a loop: which segment comes next, and how many iterations there were."""
_USUAL_PASSES: Final = 4
"""The first chunk of a loop that has never run."""

GraphOf: TypeAlias = Callable[[int], BoundGraph]
"""Gives the graph of a number of passes, bound to the arguments of the call."""


class RepeatedLoop:
    """One loop of a call.

    ``state`` is its state on the device, which each graph copies to ``seen`` at its end.
    """

    def __init__(self, device: Device, body: RepeatedBody, counts: Counts, state: Address, seen: PinnedPointer) -> None:
        self._device, self._body, self._counts, self._state, self._seen = device, body, counts, state, seen

    def first_chunk(self, expected: int) -> int:
        """The passes of the first graph; ``expected`` iterations were needed last time, 0 if unknown."""
        return self._chunk_for(expected or _USUAL_PASSES)

    def _chunk_for(self, wanted: int) -> int:
        """A chunk of at least ``wanted`` passes, but at most twice as many; otherwise the largest smaller chunk."""
        chunks = self._body.chunks
        enough = next((chunk for chunk in chunks if chunk >= wanted), None)
        if enough is not None and enough <= 2 * wanted:
            return enough
        return max((chunk for chunk in chunks if chunk <= wanted), default=chunks[0])

    def run(self, expected: int, graph_of: GraphOf, made: Callable[[], Collection[int]], on: Stream) -> int:
        """Launch chunk after chunk until the loop is over; returns how many iterations it needed, or for nested loops an estimate.

        The next chunk is launched before the host waits for the last.  When as many passes are under way as the loop
        needed last, the host looks first; when it needs more, chunks grow.  ``made`` are the chunks whose graphs exist.
        """
        under_way, chunk = 0, self._body.chunks[0]
        pending: deque[tuple[Mark, int]] = deque()
        timelines = self._device.timelines
        self._device.driver.fill(self._state, 0, STATE_BYTES, on.handle)
        try:
            while True:
                while len(pending) < 2 and not (pending and 0 < expected <= under_way):
                    if under_way < expected:
                        chunk = self._chunk_for(expected - under_way)
                    else:
                        chunk = next((larger for larger in self._body.chunks if larger > chunk), chunk)
                    chunk = self._launch(chunk, graph_of, made, on)
                    under_way += chunk
                    pending.append((timelines.mark(on.timeline), under_way))
                mark, done = pending.popleft()
                self._wait(mark)
                segment, iterations = (ctypes.c_int32 * 2).from_address(self._seen)
                if segment == LOOP_DONE:
                    return done if self._body.nested else iterations
                if done >= expected:
                    expected = 0
        finally:
            for mark, _ in pending:
                timelines.unmark(mark)

    def _wait(self, mark: Mark) -> None:
        try:
            self._device.timelines.wait(mark)
        finally:
            self._device.timelines.unmark(mark)
        self._counts.waits += 1

    def _launch(self, chunk: int, graph_of: GraphOf, made: Callable[[], Collection[int]], on: Stream) -> int:
        """Launch a graph of ``chunk`` passes, or fewer where such a large graph cannot be made; returns how many."""
        while True:
            try:
                graph = graph_of(chunk)
            except DeviceError:
                smaller = [known for known in made() if known < chunk]
                if not smaller:
                    raise
                chunk = max(smaller)
                continue
            graph.launch(on.handle)
            return chunk
