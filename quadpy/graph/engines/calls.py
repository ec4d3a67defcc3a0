"""The graphs of a graph kernel's calls: one for each call that may be pending at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from quadpy.graph.engines.choose import EngineChoice
from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.indirect import IndirectEngine
from quadpy.graph.model.nodes import KernelNode
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.launch import KernelLaunch, Prepared
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline

MOST_GRAPHS: Final = 4
"""The most graphs of one kernel; further streams wait for each other, on the device."""

Changed: TypeAlias = Callable[[bytes, bytes], frozenset[int]]
"""The launches that read what differs between two argument blocks."""


class _Bound(NamedTuple):
    """A ``BoundStep``."""

    name: str
    block: bytes
    binder: None = None


class CallGraph:
    """A graph with one kernel as its node, for one call at a time.

    name      that of its node
    timeline  the stream of the last call, which comes after all work so far
    scratch   the kernel's scratch memory
    packed    the values of the last call
    grids     the blocks of each of its launches
    in_memory whether the code reads its arguments from memory
    """

    name: Final = "kernel"

    def __init__(self, device: Device, choice: EngineChoice, slots: int, on: Stream) -> None:
        self._device, self._choice = device, choice
        self.timeline: Timeline = on.timeline
        self.scratch: DeviceBuffer | None = device.allocate(8 * slots, on) if slots else None
        self.packed = b""
        self.grids: tuple[int, ...] | None = None
        self._node: KernelNode | None = None
        self._engine: Engine | None = None
        self.in_memory = False

    def move(self, on: Stream) -> None:
        """Let the next work come on ``on``."""
        if self.timeline is not on.timeline:
            self._device.timelines.order(self.timeline, on.timeline)
        self.timeline = on.timeline
        if self.scratch is not None and self.scratch.block is not None:
            self._device.memory.use((self.scratch.block,), on.timeline)
        if self._engine is not None:
            self._engine.move(on)

    def bind(self, packed: bytes, grids: tuple[int, ...], call: Prepared, changed: Changed, on: Stream) -> None:
        """Let launches do ``call``, before any of it runs; its launches that are not ``changed`` stay as they are.

        A later call with the same ``packed`` values, or ``grids``, need not be bound again.
        """
        choice = self._choice
        if choice.part != on.timeline.part and choice.moves_to(on.timeline):
            self.retire()
            self.grids, self.in_memory = None, False
        engine, before, launches, moves = self._engine, self._node, call.launches, False
        if self.in_memory and grids == self.grids:
            self.rebind(packed)
            return
        if before is not None and self.grids is not None and not self.in_memory:
            differing = set(changed(before.arguments, call.arguments))
            differing.update(k for k, (one, other) in enumerate(zip(self.grids, grids, strict=True)) if one != other)
            pairs = enumerate(zip(before.launches, launches, strict=True))
            launches = tuple([new if k in differing else old for k, (old, new) in pairs if type(old) is KernelLaunch])
            moves = choice.policy.note_changes(len(differing))
        node = KernelNode.of(call, name=self.name, launches=launches)
        if engine is None or moves or not engine.change(choice.formed(node)):
            self.retire()
            choice.on, choice.counts.rebuilds = on, choice.counts.rebuilds + (engine is not None and not moves)
            node = KernelNode.of(call, name=self.name)
            self._engine = choice.choose_engine({self.name: node}, ())
            self._engine.move(on)
            self.in_memory = isinstance(self._engine, IndirectEngine)
        self._node, self.packed, self.grids = node, packed, grids

    def rebind(self, packed: bytes) -> None:
        """Bind another call with the same grids, for code that reads its arguments from memory."""
        assert self._engine is not None
        self._engine.bind((_Bound(self.name, packed),))
        self.packed = packed

    def launch(self, on: Stream) -> None:
        """Put the work of the call on ``on``; waits while the host repeats a loop."""
        assert self._engine is not None
        self._engine.launch(on.handle)

    def retire(self) -> None:
        """Give everything back when pending launches are complete."""
        engine, self._engine = self._engine, None
        if engine is not None:
            self._device.deferred.add((self.timeline,), engine.give_back)


class CallGraphs:
    """The graphs of one plan, each with a ``choice`` of its own; the free ones in the order of their last calls.

    It does not refer to the plan, whose end gives it back.
    """

    def __init__(self, device: Device, choice: Callable[[], EngineChoice], slots: int) -> None:
        self._device, self._choice, self._slots = device, choice, slots
        self._free: list[CallGraph] = []
        self._all: set[CallGraph] = set()
        device.deferred.register(self)

    def take(self, on: Stream) -> CallGraph:
        """A graph for a call on ``on``: that of the stream's last call, a new one, or one of another stream, after its work."""
        free = self._free.copy()
        known = [graph for graph in reversed(free) if graph.timeline is on.timeline]
        others = free if len(self._all) >= MOST_GRAPHS else []  # none if all are in calls that wait for a loop
        graph = next(filter(self._claim, [*known, *others]), None)
        if graph is None:
            graph = CallGraph(self._device, self._choice(), self._slots, on)
            self._all.add(graph)
        try:
            graph.move(on)
        except BaseException:
            self.discard(graph)
            raise
        return graph

    def take_bound(self, packed: bytes, on: Stream) -> CallGraph | None:
        """The graph whose last call was on ``on``, with these values; None if there is none."""
        for graph in reversed(self._free.copy()):
            if graph.timeline is on.timeline and graph.packed == packed and self._claim(graph):
                graph.move(on)
                return graph
        return None

    def take_rebound(self, packed: bytes, grids: tuple[int, ...], on: Stream) -> CallGraph | None:
        """The graph whose last call was on ``on`` and had these grids, rebound to ``packed``; None if it is not in memory."""
        for graph in reversed(self._free.copy()):
            alike = graph.in_memory and graph.timeline is on.timeline and graph.grids == grids
            if alike and self._claim(graph):
                graph.move(on)
                graph.rebind(packed)
                return graph
        return None

    def give(self, graph: CallGraph) -> None:
        """The call is submitted."""
        self._free.append(graph)

    def discard(self, graph: CallGraph) -> None:
        """Give back ``graph``: a call of it failed, and it may be bound to anything."""
        graph.retire()
        self._all.discard(graph)

    def release(self) -> None:
        """Give everything back; what is pending completes."""
        if self._device.life.ended is None:
            for graph in self._all.copy():
                graph.retire()
        self._all, self._free = set(), []
        self._device.deferred.unregister(self)

    def _claim(self, graph: CallGraph) -> bool:
        """Whether no other thread was quicker."""
        try:
            self._free.remove(graph)
        except ValueError:
            return False
        return True
