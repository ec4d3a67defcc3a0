"""A capture that goes on: calls become nodes.  Owns: CaptureSession.  Imports: errors, graphs and nodes, captures.

Each captured stream has a front: the nodes that the next one on it comes after.  An event remembers a front, and a
stream that waits for it adds it to its own.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from quadpy.errors import ArgumentError, CaptureError, GraphError
from quadpy.graph.capture.arena import Arena
from quadpy.graph.model.graph import Graph
from quadpy.graph.model.kernels import kernel_node
from quadpy.graph.model.makers import host_node
from quadpy.graph.model.nodes import ChildNode, KernelNode, MemcpyNode, MemsetNode, Node
from quadpy.runtime.device.current import launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.launch.capturing import CAPTURES, Captured, table, take_launching_kernel
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.host_memory import HOST, Buffer
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline
from quadpy.source import Span

__all__ = ["CaptureSession"]


class CaptureSession:
    """Notes what one thread puts on ``origin``, and on streams that wait for it, as nodes of ``graph``.

    strict   work of this thread on any other stream is refused
    draws    how many of the launches draw random numbers
    reads_host  whether the graph reads or writes memory of the host when it runs
    failed   what was refused: then the capture comes to nothing
    """

    def __init__(self, device: Device, origin: Stream, *, strict: bool = False, arena: Arena | None = None) -> None:
        self.device, self.origin, self.strict = device, origin, strict
        self.host = "host" in device.driver.features
        self.graph, self.arena = Graph(device), arena or Arena()
        self.active = self._over = False
        self.draws, self.reads_host = 0, False
        self.failed: CaptureError | None = None
        self._fronts: dict[Timeline, tuple[str, ...]] = {}
        self._streams: dict[Timeline, tuple[Stream, Span | None]] = {}  # and where each joined
        self._used: dict[int, set[Timeline]] = {}  # of blocks that were allocated on a captured stream
        self._events: list[tuple[Event, Captured | None]] = []
        self._launches = launches_so_far()
        self._table = table()

    # its beginning and end

    def begin(self) -> None:
        """Note what comes, from here on."""
        taken = self._table.streams.get(self.origin.timeline)
        if taken is not None or self.origin.timeline.captured is not None:
            raise CaptureError(f"{self.origin!r} is being captured already", call_site(), hint="end that capture first")
        self.graph.withhold("a graph that is being captured is not complete")
        CAPTURES.begin(self)
        self.active = True
        self._table.sessions.append(self)
        self._add(self.origin)

    def end(self) -> Graph:
        """The graph; CaptureError where something was refused meanwhile, or a fork was not joined."""
        try:
            self._require_whole()
            self._leave()
            self.graph.withhold("")
            self._over = True
        except BaseException:
            self.abort()
            raise
        return self.graph

    def abort(self) -> None:
        """Nothing has run, and nothing will, unless it has ended; an interrupt leaves the rest to the next ``abort``."""
        if self._over:
            return
        self._leave()
        for event, before in reversed(self._events):
            if event.captured is not None and event.captured.recorder() is self:
                event.captured = before
        take_back_launches(self._launches, launches_so_far())
        self.graph.drop("the capture of this graph was aborted")
        self._over = True

    def _leave(self) -> None:
        for timeline in self._streams:
            if self._table.streams.get(timeline) is self:
                del self._table.streams[timeline]
            if timeline.captured is self:
                timeline.captured = None
        with suppress(ValueError):  # it never began
            self._table.sessions.remove(self)
        self.active = False
        CAPTURES.end(self)

    def _require_whole(self) -> None:
        """Nothing was refused; and every node is one that the origin's front is, or comes after."""
        if self.failed is not None:
            raise self.failed
        known, names = {node.name: node for node in self.graph}, list(self._fronts[self.origin.timeline])
        joined: set[str] = set()
        while names:
            if (name := names.pop()) not in joined:
                joined.add(name)
                names += known[name].after
        for timeline, front in self._fronts.items():
            if (loose := [name for name in front if name not in joined]) and timeline is not self.origin.timeline:
                stream, span = self._streams[timeline]
                last = known[loose[-1]]
                raise CaptureError(
                    f"{stream!r} was forked into the capture and not joined: {last.name!r}"
                    + (f" ({last.span.file}:{last.span.line})" if last.span else "")
                    + " is not waited for",
                    span,
                    hint="record an event on it, and let the captured stream wait for that before the capture ends",
                )

    # streams and events

    def record_event(self, stream: Stream, event: Event) -> None:
        """``event`` stands behind what was noted on ``stream``."""
        self._events.append((event, event.captured))
        event.captured = Captured(weakref.ref(self), self._fronts[stream.timeline])

    def wait_event(self, stream: Stream, event: Event) -> None:
        """What comes on ``stream`` comes behind ``event``."""
        assert event.captured is not None
        try:
            if stream.timeline not in self._streams:
                if stream.timeline.captured is not None:
                    self.refuse(f"a fork into {stream!r}, which another thread captures", "use another stream")
                self._add(stream)
            front = self.graph.without_implied((*self._fronts[stream.timeline], *event.captured.after))
            self._fronts[stream.timeline] = front
        except BaseException:
            self._break_off()
            raise

    def _add(self, stream: Stream) -> None:
        timeline = stream.timeline
        self._fronts[timeline] = ()
        self._streams[timeline] = stream, None if stream is self.origin else call_site()
        self._table.streams[timeline] = self
        if not self.strict and timeline is not self.device.timelines.default:
            timeline.captured = self

    # what is noted

    def record_launch(self, stream: Stream, prepared: Any, *, draws: bool) -> None:
        """The launches of one call; ``draws`` says that random numbers depend on its number."""
        if prepared.result is not None:
            self.refuse("a kernel that returns a number", "let it write an array instead")
        self.draws += draws
        try:
            node = replace(kernel_node(self.device, prepared), kernel=take_launching_kernel())
        except GraphError as error:
            self._fail(error.message, error.hint)
        self._note(stream, node, _title(node), also=self._after_homes(stream, node.keep))

    def record_fill(self, stream: Stream, target: int, pattern: bytes, nbytes: int, keep: Sequence[object]) -> None:
        """``pattern``, of 1, 2 or 4 bytes, over ``nbytes`` bytes."""
        size = len(pattern)
        node = MemsetNode(
            target=target, value=int.from_bytes(pattern, "little"), element=size, width=nbytes // size,
            writes=((target, nbytes),), keep=tuple(keep),
        )  # fmt: skip
        self._note_ordered(stream, node, "memset")

    def record_copy(self, stream: Stream, target: int, source: int, nbytes: int, keep: Sequence[object]) -> None:
        """A copy within the device's memory."""
        self._note_ordered(stream, _copy(target, source, nbytes, keep, "within"), "memcpy")

    def record_transfer(
        self, stream: Stream, target: int, source: int, nbytes: int, keep: Sequence[object], *, out: bool
    ) -> None:
        """A copy from or to memory of the host, done each time that the graph runs."""
        self.reads_host = True
        self._note_ordered(stream, _copy(target, source, nbytes, keep, "out" if out else "in"), "memcpy")

    def record_constant(self, stream: Stream, target: int, data: Any, keep: Sequence[object]) -> None:
        """Bytes as they are now, put at ``target`` each time that the graph runs."""
        held = data.tobytes()

        def make() -> DeviceBuffer | Buffer:
            if self.host:
                there = HOST.allocate(len(held))
                ctypes.memmove(there.pointer, held, len(held))
                return there
            buffer = self.device.allocate_lasting(len(held), stream)
            address = data.__array_interface__["data"][0]
            stream._call(lambda on: self.device.staging.upload(buffer.pointer, address, len(held), on))  # noqa: SLF001
            if buffer.block is not None:
                self.device.memory.use([buffer.block], stream.timeline)
            return buffer

        kept = self.arena.constant(held, make)
        self.record_copy(stream, target, kept.pointer, len(held), (*keep, kept))

    def record_host(self, stream: Stream, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        """A call on the host."""
        node = replace(host_node(self.device, function, *arguments), barrier=False)
        self._note(stream, node, getattr(function, "__name__", "host"))

    def record_graph(self, stream: Stream, nodes: Sequence[Any]) -> None:
        """All nodes of a graph that is launched."""
        node = ChildNode(
            nodes=tuple(nodes),
            reads=tuple(dict.fromkeys(part for node in nodes for part in node.reads)),
            writes=tuple(dict.fromkeys(part for node in nodes for part in node.writes)),
            keep=tuple(kept for node in nodes for kept in node.keep),
        )
        self._note(stream, node, "child")

    def device_memory(self, stream: Stream, nbytes: int) -> DeviceBuffer:
        """Memory that belongs to the graph."""
        return self.arena.device(self.device, nbytes, stream)

    def host_memory(self, nbytes: int) -> Buffer:
        """Memory of the host that belongs to the graph."""
        return self.arena.host(nbytes)

    def refuse(self, what: str, hint: str = "") -> NoReturn:
        """CaptureError: ``what`` cannot be captured; the capture comes to nothing."""
        self._fail(f"a capture cannot note {what}", hint)

    def _fail(self, message: str, hint: str) -> NoReturn:
        error = CaptureError(message, call_site(), hint=hint)
        self.failed = self.failed or error
        raise error

    # how

    def _note_ordered(self, stream: Stream, node: Node, kind: str) -> None:
        """A copy or fill, which comes after all that uses its memory, on whatever stream: as it does when it runs."""
        self._note(stream, node, kind, also=self.graph.derive(node.reads, node.writes))

    def _note(self, stream: Stream, node: Node, kind: str, also: Iterable[str] = ()) -> None:
        if self.device.life.ended is not None:
            self.device.life.check()
        timeline = stream.timeline
        try:
            after = self.graph.without_implied((*self._fronts[timeline], *also))
            placed = self.graph.insert(node, after, None, kind)
            self._fronts[timeline] = (placed.name,)
        except (ArgumentError, GraphError) as error:
            self._fail(error.message, error.hint)
        except BaseException:
            self._break_off()
            raise

    def _break_off(self) -> None:
        """A call was noted in part, as by Ctrl-C: whoever catches that, the capture comes to nothing."""
        hint = "let the exception end the block of the capture"
        self.failed = self.failed or CaptureError("a call was interrupted while it was noted", call_site(), hint=hint)

    def _after_homes(self, stream: Stream, keep: Iterable[object]) -> list[str]:
        """What a kernel comes after because its memory was allocated on another captured stream: the work there so far."""
        found: list[str] = []
        for thing in keep:
            block = getattr(thing, "block", None)
            if isinstance(block, Block) and block.home in self._fronts and block.home is not stream.timeline:
                guests = self._used.setdefault(id(block), set())
                if stream.timeline not in guests:
                    guests.add(stream.timeline)
                    found += self._fronts[block.home]
        return found


def _copy(target: int, source: int, nbytes: int, keep: Sequence[object], direction: Any) -> MemcpyNode:
    return MemcpyNode(
        target=target, source=source, nbytes=nbytes, direction=direction,
        reads=((source, nbytes),), writes=((target, nbytes),), keep=tuple(keep),
    )  # fmt: skip


def _title(node: KernelNode) -> str:
    """The kernel's name, of launches that are named by kernel and task."""
    return node.launches[0].name.partition(",")[0] if node.launches else "kernel"
