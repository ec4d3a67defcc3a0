"""Several observers at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from quadpy.runtime.device.life import Life
from quadpy.runtime.drivers.driver import EventHandle
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.host_access import HostMemory, ObservedAccess
from quadpy.runtime.launch.observing import ObservedCall, ObservedNode, ObservedStream, Observer, Submission
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.owned import OwnerRef

if TYPE_CHECKING:
    from quadpy.runtime.streams.timeline import Timeline

__all__ = ["Observers"]


class _Submissions:
    """One submission, of which several observers were told."""

    __slots__ = ("_told", "node_timer", "task_times")

    def __init__(self, told: Sequence[Submission]) -> None:
        self._told = told
        self.task_times = next((each.task_times for each in told if each.task_times is not None), None)
        self.node_timer = next((each.node_timer for each in told if each.node_timer is not None), None)

    def done(self) -> None:
        """As ``Submission.done``; the last one told is the first, as it may measure time."""
        for each in reversed(self._told):
            each.done()


class Observers(Observer):
    """Tells each of ``observers``, in their order."""

    checks: ClassVar[bool] = True

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._all: Final = tuple(observers)

    def launching(self, on: ObservedStream, call: ObservedCall) -> Submission:
        """As ``Observer.launching``."""
        return _Submissions([each.launching(on, call) for each in self._all])

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        """As ``Observer.reading``."""
        for each in self._all:
            each.reading(on, source)

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> Submission:
        """As ``Observer.writing``."""
        return _Submissions([each.writing(on, target, what) for each in self._all])

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> Submission:
        """As ``Observer.copying``."""
        return _Submissions([each.copying(on, source, target) for each in self._all])

    def recorded(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """As ``Observer.recorded``."""
        for each in self._all:
            each.recorded(event, stream, life)

    def waited(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """As ``Observer.waited``."""
        for each in self._all:
            each.waited(event, stream, life)

    def completed(self, event: OwnerRef[EventHandle]) -> None:
        """As ``Observer.completed``."""
        for each in self._all:
            each.completed(event)

    def synchronized(self, stream: Timeline, life: Life) -> None:
        """As ``Observer.synchronized``."""
        for each in self._all:
            each.synchronized(stream, life)

    def device_synchronized(self, life: Life) -> None:
        """As ``Observer.device_synchronized``."""
        for each in self._all:
            each.device_synchronized(life)

    def launching_graph(
        self, on: ObservedStream, graph: object, version: object, nodes: Callable[[], Sequence[ObservedNode]], *, overlap: bool
    ) -> Submission:  # fmt: skip
        """As ``Observer.launching_graph``."""
        return _Submissions([each.launching_graph(on, graph, version, nodes, overlap=overlap) for each in self._all])

    def graph_synchronized(self, graph: object) -> None:
        """As ``Observer.graph_synchronized``."""
        for each in self._all:
            each.graph_synchronized(graph)

    def report(self, hazards: Sequence[object]) -> None:
        """As ``Observer.report``."""
        for each in self._all:
            each.report(hazards)

    def allocated(self, stream: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool) -> None:
        """As ``Observer.allocated``."""
        for each in self._all:
            each.allocated(stream, life, pointer, nbytes, on_host=on_host)

    def freeing(
        self, stream: Timeline, home: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool
    ) -> None:
        """As ``Observer.freeing``."""
        for each in self._all:
            each.freeing(stream, home, life, pointer, nbytes, on_host=on_host)

    def host_reads(self, source: Numbers) -> None:
        """As ``Observer.host_reads``."""
        for each in self._all:
            each.host_reads(source)

    def followed(self, before: Timeline, stream: Timeline, life: Life) -> None:
        """As ``Observer.followed``."""
        for each in self._all:
            each.followed(before, stream, life)

    def exported(self, consumer: Timeline, life: Life, memory: Block | HostMemory) -> None:
        """As ``Observer.exported``."""
        for each in self._all:
            each.exported(consumer, life, memory)
