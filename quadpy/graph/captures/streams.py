"""The streams of a capture, and the nodes that later work on each of them comes after."""

from __future__ import annotations

from collections.abc import Iterable

from quadpy.core.public import call_site
from quadpy.core.source import Span
from quadpy.errors import CaptureError
from quadpy.graph.building.graph import Graph
from quadpy.runtime.launch.capturing import CapturedStream
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline


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
