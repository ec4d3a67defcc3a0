"""A capture in progress: what one thread puts on its streams becomes nodes of a graph.

Each stream of a capture has the nodes that later work on it comes after.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from quadpy.core.public import call_site
from quadpy.errors import ArgumentError, CaptureError, GraphError
from quadpy.graph.building.graph import Graph
from quadpy.graph.captures.arena import Arena
from quadpy.graph.captures.new_nodes import NewNode, node_for
from quadpy.graph.model.kernels import node_of_launches
from quadpy.graph.model.nodes import Call, KernelNode
from quadpy.runtime.device.current import launches_so_far, take_back_launches
from quadpy.runtime.launch.capturing import (
    CAPTURES,
    CapturedEvent,
    CapturedRecord,
    CapturedStream,
    take_launching_kernel,
    thread_captures,
)
from quadpy.runtime.memory.allocators.block import Block, DeviceBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quadpy.core.source import Span
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.launch.captured_work import CapturedWork
    from quadpy.runtime.memory.host_memory import Buffer
    from quadpy.runtime.streams.stream import Stream
    from quadpy.runtime.streams.timeline import Timeline


class CaptureSession:
    """Records the work of one thread on ``origin``, and on streams that wait for it, as nodes of ``graph``.

    strict   whether this thread's work on any other stream of the device is refused
    failed   the first error; the capture then gives no graph
    """

    def __init__(self, device: Device, origin: Stream, *, strict: bool = False, arena: Arena | None = None) -> None:
        self.device, self.origin, self.strict = device, origin, strict
        self.host = "host" in device.driver.features
        self.graph, self.arena = Graph(device), arena or Arena()
        self.active = self._over = False
        self.failed: CaptureError | None = None
        self._streams = CapturedStreams(origin)
        self._events: list[tuple[CapturedEvent, CapturedRecord | None]] = []
        self._launches = launches_so_far()
        self._captures = thread_captures()

    # begin and end

    def begin(self) -> None:
        """Record from here on."""
        taken = self._captures.streams.get(self.origin.timeline)
        if taken is not None or self.origin.timeline.captured is not None:
            raise CaptureError(f"{self.origin!r} is already being captured", call_site(), hint="end that capture first")
        self.graph.withhold("a graph that is being captured is not complete")
        CAPTURES.begin(self)
        self.active = True
        self._captures.sessions.append(self)
        self._add_stream(self.origin)

    def end(self) -> Graph:
        """The graph; CaptureError if a call was refused or a fork was not joined."""
        try:
            self._require_complete()
            self._leave()
            self.graph.owned = self.arena.ranges()
            self.graph.withhold("")
            self._over = True
        except BaseException:
            self.abort()
            raise
        return self.graph

    def abort(self) -> None:
        """Forget what was recorded, unless the capture has ended; if interrupted, call it again."""
        if self._over:
            return
        self._leave()
        for event, before in reversed(self._events):
            if event.captured is not None and event.captured.recorder() is self:
                event.captured = before
        take_back_launches(self._launches, launches_so_far())
        self.graph.drop("the capture of this graph was aborted")
        self._over = True

    def _require_complete(self) -> None:
        if self.failed is not None:
            raise self.failed
        self._streams.require_joined(self.graph)

    def _leave(self) -> None:
        for timeline in self._streams.after:
            if self._captures.streams.get(timeline) is self:
                del self._captures.streams[timeline]
            if timeline.captured is self:
                timeline.captured = None
        with suppress(ValueError):  # if it never began
            self._captures.sessions.remove(self)
        self.active = False
        CAPTURES.end(self)

    # streams and events

    def record_event(self, stream: CapturedStream, event: CapturedEvent) -> None:
        """Let ``event`` stand for the work recorded on ``stream`` so far."""
        self._set_event(event, self._streams.after[stream.timeline])

    def wait_event(self, stream: CapturedStream, event: CapturedEvent) -> None:
        """Let later work on ``stream`` come after ``event``."""
        assert event.captured is not None
        try:
            self._fork_into(stream)
            after = self._streams.after
            after[stream.timeline] = self.graph.without_implied((*after[stream.timeline], *event.captured.after))
        except BaseException:
            self._fail_incomplete()
            raise

    def _set_event(self, event: CapturedEvent, after: tuple[str, ...]) -> None:
        self._events.append((event, event.captured))
        event.captured = CapturedRecord(weakref.ref(self), after)

    def _fork_into(self, stream: CapturedStream) -> None:
        if stream.timeline not in self._streams.after:
            if stream.timeline.captured is not None:
                self.refuse(f"a fork into {stream!r}, which another thread captures", "use another stream")
            self._add_stream(stream)

    def _add_stream(self, stream: CapturedStream) -> None:
        timeline = stream.timeline
        self._streams.add(stream)
        self._captures.streams[timeline] = self
        if not self.strict and timeline is not self.device.timelines.default:
            timeline.captured = self

    # calls

    def record_launch(self, stream: CapturedStream, prepared: Any, *, draws: bool) -> None:
        """The launches of one call; ``draws`` says whether it uses random numbers."""
        if prepared.result is not None:
            self.refuse("a kernel that returns a number", "let it write an array instead")
        try:
            kernel, args = take_launching_kernel()
            node = node_of_launches(
                self.device, prepared, kernel, call=Call.of(kernel, args) if kernel is not None else None
            )
        except GraphError as error:
            self._fail(error.message, error.hint)
        self._append(stream, NewNode(node, _title(node)), self._streams.after_homes(stream, node.keep))

    def record(self, stream: CapturedStream, work: CapturedWork, keep: Sequence[object] = ()) -> None:
        """Record work that is not a launch of a kernel; the graph keeps ``keep`` alive."""
        self._append(stream, node_for(work, self.device, self.arena, stream, tuple(keep)))

    def device_memory(self, stream: CapturedStream, nbytes: int) -> DeviceBuffer:
        """Device memory that belongs to the graph."""
        return self.arena.device(self.device, nbytes, stream)

    def host_memory(self, nbytes: int) -> Buffer:
        """Host memory that belongs to the graph."""
        return self.arena.host(nbytes)

    def refuse(self, what: str, hint: str = "") -> NoReturn:
        """Raise a CaptureError: ``what`` cannot be captured, and the capture gives no graph."""
        self._fail(f"a capture cannot record {what}", hint)

    def _fail(self, message: str, hint: str) -> NoReturn:
        error = CaptureError(message, call_site(), hint=hint)
        self.failed = self.failed or error
        raise error

    def _fail_incomplete(self) -> None:
        """Let the capture give no graph, even if the user catches the exception that interrupted it."""
        hint = "let the exception end the block of the capture"
        self.failed = self.failed or CaptureError("an interrupt left a call half recorded", call_site(), hint=hint)

    def _append(self, stream: CapturedStream, new: NewNode, homes: Iterable[str] = ()) -> None:
        """Add a node at the end of ``stream``, which also comes after ``homes``, without being asked to."""
        if self.device.life.ended is not None:
            self.device.life.check()
        after = self._streams.after
        derived = self.graph.derive(new.node.reads, new.node.writes) if new.ordered else ()
        try:
            asked = self.graph.without_implied((*after[stream.timeline], *derived))
            known = self.graph.without_implied((*asked, *homes))
            node = replace(new.node, asked=None if set(known) == set(asked) else asked)
            after[stream.timeline] = (self.graph.insert(node, known, None, new.name).name,)
        except (ArgumentError, GraphError) as error:
            self._fail(error.message, error.hint)
        except BaseException:
            self._fail_incomplete()
            raise


def _title(node: KernelNode) -> str:
    """The kernel's name; its launches are named by kernel and task."""
    return node.launches[0].name.partition(",")[0] if node.launches else "kernel"


class CapturedStreams:
    """The streams that a capture of ``origin`` has reached.

    after  the names of the nodes that the next node on each stream comes after
    """

    def __init__(self, origin: Stream) -> None:
        self.origin = origin
        self.after: dict[Timeline, tuple[str, ...]] = {}
        self._forks: dict[Timeline, tuple[CapturedStream, Span | None]] = {}  # with the line that forked
        self._used: dict[Block, set[Timeline]] = {}  # the other streams that use it

    def add(self, stream: CapturedStream) -> None:
        """``stream`` is captured from here on."""
        self.after[stream.timeline] = ()
        self._forks[stream.timeline] = stream, None if stream is self.origin else call_site()

    def require_joined(self, graph: Graph) -> None:
        """CaptureError if a node of ``graph`` is not followed by the last ones of the origin."""
        names, joined = list(self.after[self.origin.timeline]), set[str]()
        while names:
            if (name := names.pop()) not in joined:
                joined.add(name)
                names += graph[name].after
        for timeline, after in self.after.items():
            if (loose := [name for name in after if name not in joined]) and timeline is not self.origin.timeline:
                stream, span = self._forks[timeline]
                last = graph[loose[-1]]
                where = f" ({last.span.file}:{last.span.line})" if last.span else ""
                raise CaptureError(
                    f"{stream!r} was forked into the capture and not joined: nothing waits for {last.name!r}{where}",
                    span,
                    hint="record an event on it, and let the captured stream wait for that before the capture ends",
                )

    def after_homes(self, stream: CapturedStream, keep: Iterable[object]) -> list[str]:
        """The nodes that the first use of memory on ``stream`` comes after: the work so far on its home stream."""
        found: list[str] = []
        for thing in keep:
            block = getattr(thing, "block", None)
            if isinstance(block, Block) and block.home in self.after and block.home is not stream.timeline:
                users = self._used.setdefault(block, set())
                if stream.timeline not in users:
                    users.add(stream.timeline)
                    found += self.after[block.home]
        return found
