"""Graphs whose nodes are timed one by one, for profiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from quadpy.graph.engines.engine import Engine
from quadpy.graph.engines.host import HostEngine
from quadpy.graph.model.nodes import (
    ChildNode,
    EventRecordNode,
    HostNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    Node,
)
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.launch.launch import KernelLaunch
from quadpy.runtime.launch.observing import NodeTimer, TaskTimes, TimedNode
from quadpy.runtime.streams.event import Event

_WORKING: Final = (KernelNode, MemcpyNode, MemsetNode, HostNode, ChildNode)


class TimedHost:
    """Launches ``engine`` and reports each node to ``times`` by its number; at the end, -1 for the whole."""

    def __init__(self, engine: HostEngine, times: TaskTimes) -> None:
        self._engine, self._times = engine, times

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        start = time.perf_counter_ns()
        for number, step in self._engine.steps():
            begin = time.perf_counter_ns()
            step()
            self._times(number, begin, time.perf_counter_ns())
        self._times(-1, start, time.perf_counter_ns())


class TimedGraph:
    """A driver graph with an event before and after each of ``nodes``; ``made`` gives its engine.

    All launches share the events: before each launch, those of the previous one are read.
    """

    def __init__(
        self, device: Device, nodes: Iterable[Node], made: Callable[[Sequence[Node]], Engine], version: object
    ) -> None:
        self.version = version
        self._device, self._nodes = device, list[TimedNode]()
        self._engine = made(list(self._with_events(nodes)))
        self._timer: NodeTimer | None = None

    def measured_by(self, timer: NodeTimer) -> TimedGraph:
        """Itself; ``timer`` reads the events of the next launch."""
        self._timer = timer
        return self

    def launch(self, stream: StreamHandle) -> None:
        """See ``Engine.launch``."""
        timer = self._timer
        assert timer is not None
        timer.settle()
        self._engine.launch(stream)
        timer.launched(self._nodes, stream)

    def give_back(self) -> None:
        """See ``Engine.give_back``."""
        self._engine.give_back()

    def _with_events(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """The same work in the same order; the calls of kernels are taken apart into tasks where they run in order."""
        ends: dict[str, str] = {}
        for node in nodes:
            after = tuple(ends.get(name, name) for name in node.after)
            if not isinstance(node, _WORKING):
                yield replace(node, after=after)
                continue
            for part in _parts(node):
                begin, end = self._event(), self._event()
                first, last = f"{part.name}\0begin", f"{part.name}\0end"
                yield EventRecordNode(name=first, after=after, event=begin)
                yield replace(part, after=(first,))
                yield EventRecordNode(name=last, after=(part.name,), event=end)
                self._nodes.append(_timed(part, begin, end))
                after, ends[node.name] = (last,), last

    def _event(self) -> Event:
        return self._device.create_event(timing=True)


def _parts(node: Node) -> Iterator[Node]:
    if not isinstance(node, KernelNode) or node.flow or node.conditions or len(node.launches) < 2:
        yield node
        return
    for number, launch in enumerate(node.launches):
        yield replace(node, name=f"{node.name}\0{number}", launches=(launch,))


def _timed(node: Node, begin: Event, end: Event) -> TimedNode:
    launches = node.launches if isinstance(node, KernelNode) else ()
    function = launches[0].function if len(launches) == 1 and isinstance(launches[0], KernelLaunch) else None
    nbytes = node.nbytes if isinstance(node, MemcpyNode) else 0
    if isinstance(node, MemsetNode):
        nbytes = node.element * node.width * node.height
    name = launches[0].name.partition(",")[0] if launches else _NAMES.get(node.kind, node.kind)
    return TimedNode(name, function, node.span, nbytes, begin, end)


_NAMES: Final = {"memcpy": "copy", "memset": "fill", "host": "host function", "child": "child graph"}
