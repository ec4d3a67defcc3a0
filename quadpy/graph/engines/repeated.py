"""Loops that the host repeats where the driver's graphs have none: graphs of several passes, one after the other.

The code itself decides what comes next: memory holds the number of the segment to run, tasks of others do nothing, and a
latch after each segment chooses the next.  Therefore, passes that are launched after the end of the loop do nothing.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeAlias

from quadpy.core.artifact import LOOP_DONE
from quadpy.core.flow import Flow, Loop, Step, tasks_of
from quadpy.errors import DeviceError
from quadpy.graph.engines.driver import DriverEngine
from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.stats import Counts
from quadpy.graph.model.nodes import KernelNode, MemcpyNode, Node
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.resource_stack import ResourceStack
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Mark

MOST_NODES: Final = 192
"""Limit for a graph that the host repeats, unless a single pass has more: with 200 nodes, HIP has shown stale pointers."""
_CHUNKS: Final = (1, 4, 16, 64)
"""Passes over a loop's body in one graph; a longer chunk follows each one that has not ended the loop."""
_INNER: Final = 4
"""How often one pass over a loop's body repeats the body of a nested loop."""
_USUAL_PASSES: Final = 4
"""The first chunk of a loop that has never run."""
_STATE_BYTES: Final = 8
"""The device's state of a loop: which segment comes next, and how many iterations there were."""

_Piece: TypeAlias = "Flow | Loop"
"""What one graph does, or one loop."""


class RepeatedEngine(Engine):
    """A kernel whose loops the host repeats; ``node`` is predicated, and ``made`` gives the engine of a graph.

    Each graph copies the state of the loop to ``seen`` at its end.
    """

    overlaps = False

    def __init__(
        self, device: Device, node: KernelNode, made: Callable[[Sequence[Node]], DriverEngine], counts: Counts
    ) -> None:
        self._device, self._node, self._made, self._counts = device, node, made, counts
        self._pieces = tuple(_pieces(node.flow))
        self._scratch = _scratch_of(node)
        self._state = self._scratch.pointer + self._scratch.nbytes - _STATE_BYTES
        self._graphs: dict[tuple[int, int], tuple[KernelNode, DriverEngine]] = {}  # by the piece, and its passes
        self._on: Stream | None = None
        self._owned = ResourceStack(device.reaper)
        self._seen = self._owned.make(device.driver.free_pinned, device.driver.alloc_pinned, _STATE_BYTES)
        try:
            self._bind()
        except BaseException:
            self.give_back()
            raise

    def move(self, on: Stream) -> None:
        """See ``Engine.move``."""
        self._on = on
        if self._scratch.block is not None:
            self._device.memory.use((self._scratch.block,), on.timeline)

    def launch(self, stream: StreamHandle) -> None:
        """Like ``Engine.launch``; waits while it repeats a loop."""
        for number, piece in enumerate(self._pieces):
            if isinstance(piece, Loop):
                self._repeat(number, piece, stream)
            else:
                self._graph(number).launch(stream)

    def change(self, node: Node) -> bool:
        """See ``Engine.change``."""
        if not isinstance(node, KernelNode) or not node.predicated or node.flow != self._node.flow:
            return False
        if _scratch_of(node) is not self._scratch:
            return False
        self._node = node
        self._bind()
        return True

    def enable(self, node: Node, *, enabled: bool) -> bool:
        """Like ``Engine.enable``: it has other graphs without the loop."""
        return False

    def give_back(self) -> None:
        """See ``Engine.give_back``."""
        for _, engine in self._graphs.values():
            engine.give_back()
        self._graphs = {}
        self._owned.give_back()

    def _bind(self) -> None:
        """Bind all graphs that a launch begins with, before any of it runs."""
        for number, piece in enumerate(self._pieces):
            wanted = self._expected(number) or _USUAL_PASSES
            self._graph(number, _chunk_for(piece, wanted) if isinstance(piece, Loop) else 1)

    def _expected(self, number: int) -> int:
        """How many iterations of a loop were needed last time; 0 if that is unknown."""
        return self._counts.expected.get((self._node.name, number), 0)

    def _graph(self, number: int, passes: int = 1) -> DriverEngine:
        """The graph of a piece, or of so many passes over a loop, which does what ``node`` says now."""
        key = number, passes
        node, engine = self._graphs.get(key, (None, None))
        if node is self._node and engine is not None:
            return engine
        parts = list(self._parts(number, passes))
        if engine is None:
            engine = self._made(parts)
        else:
            del self._graphs[key]
            changed = False
            try:
                changed = engine.change(parts[0])
            finally:
                if not changed:  # after an exception, it may do anything
                    self._device.deferred.add(() if self._on is None else (self._on.timeline,), engine.give_back)
            if not changed:
                engine = self._made(parts)
                self._counts.rebuilds += 1
        self._graphs[key] = self._node, engine
        return engine

    def _parts(self, number: int, passes: int) -> Iterator[Node]:
        """The nodes of a graph: the passes, in order, as tasks that have nothing to do end sooner than branches could wait."""
        piece, node = self._pieces[number], replace(self._node, after=(), conditions={})
        if not isinstance(piece, Loop):
            yield replace(node, flow=piece)
            return
        yield replace(node, flow=_one_pass(piece.body) * passes, effects=None)
        yield MemcpyNode(
            name="seen", after=(node.name,), target=self._seen, source=self._state, nbytes=_STATE_BYTES, direction="out",
            pinned=True,
        )  # fmt: skip

    def _repeat(self, number: int, loop: Loop, stream: StreamHandle) -> None:
        """Launch chunk after chunk until the loop is over.

        The next chunk is launched before the host waits for the last.  When as many passes are under way as the loop
        needed last, the host looks first; when it needs more, chunks grow.
        """
        assert self._on is not None
        timeline, timelines = self._on.timeline, self._device.timelines
        chunks, expected = _chunks_of(loop), self._expected(number)
        under_way, chunk = 0, chunks[0]
        pending: deque[tuple[Mark, int]] = deque()
        self._device.driver.fill(self._state, 0, _STATE_BYTES, stream)
        try:
            while True:
                while len(pending) < 2 and not (pending and 0 < expected <= under_way):
                    if under_way < expected:
                        chunk = _chunk_for(loop, expected - under_way)
                    else:
                        chunk = next((larger for larger in chunks if larger > chunk), chunk)
                    chunk = self._launch(number, chunk, stream)
                    under_way += chunk
                    pending.append((timelines.mark(timeline), under_way))
                mark, done = pending.popleft()
                self._wait(mark)
                segment, iterations = (ctypes.c_int32 * 2).from_address(self._seen)
                if segment == LOOP_DONE:
                    nested = any(isinstance(step, Loop) for step in loop.body)
                    self._counts.expected[self._node.name, number] = done if nested else iterations
                    return
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

    def _launch(self, number: int, chunk: int, stream: StreamHandle) -> int:
        """Launch a graph of ``chunk`` passes, or fewer where such a large graph cannot be made; returns how many."""
        while True:
            try:
                graph = self._graph(number, chunk)
            except DeviceError:
                chunk = max((passes for piece, passes in self._graphs if piece == number and passes < chunk), default=0)
                if not chunk:
                    raise
                continue
            graph.launch(stream)
            return chunk


def _scratch_of(node: KernelNode) -> DeviceBuffer:
    """The scratch memory of a predicated call, whose last bytes are the state of a loop."""
    scratch = node.launches[0].keep[-1]
    assert isinstance(scratch, DeviceBuffer)
    return scratch


def _pieces(flow: Flow) -> Iterator[_Piece]:
    for loops, steps in groupby(flow, lambda step: isinstance(step, Loop)):
        if loops:
            yield from (step for step in steps if isinstance(step, Loop))
        else:
            yield tuple(steps)


def _one_pass(steps: Flow) -> Flow:
    """Steps that run a loop's body once, and the body of a nested loop a few times."""
    found: list[Step] = []
    for step in steps:
        found += _one_pass(step.body) * _INNER if isinstance(step, Loop) else (step,)
    return tuple(found)


def _chunks_of(loop: Loop) -> tuple[int, ...]:
    """The numbers of passes for which there may be graphs."""
    size = len(list(tasks_of(_one_pass(loop.body))))
    return tuple(count for count in _CHUNKS if count == 1 or count * size <= MOST_NODES)


def _chunk_for(loop: Loop, wanted: int) -> int:
    """A chunk of at least ``wanted`` passes, but at most twice as many; otherwise the largest smaller chunk."""
    chunks = _chunks_of(loop)
    enough = next((chunk for chunk in chunks if chunk >= wanted), None)
    if enough is not None and enough <= 2 * wanted:
        return enough
    return max((chunk for chunk in chunks if chunk <= wanted), default=chunks[0])
