"""The transport over an engine of the host: arrays of the host are sent from where they are, those of a GPU through pinned memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from quadpy.dist.calls import Call
from quadpy.dist.transport.arrivals import DeviceNumbers, arrival, departure
from quadpy.dist.transport.engine import HostEngine, Message
from quadpy.dist.transport.protocol import NO_CALL, TAGS, FlatPart, Receive, Send
from quadpy.dist.transport.verdict import Report, verdict
from quadpy.runtime.streams.stream import Stream


class HostTransport:
    """A Transport over an engine."""

    capturable = False

    def __init__(self, engine: HostEngine, *, in_place: bool = False) -> None:
        """``in_place`` if the engine reads and writes the memory of GPUs."""
        self._engine: Final = engine
        self._in_place = in_place
        self.name, self.rank, self.size, self.timeout = engine.name, engine.rank, engine.size, engine.timeout

    def start_exchange(
        self, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, call: Call = NO_CALL
    ) -> _Exchange:
        return _Exchange(self._engine, call, sends, receives, stream, in_place=self._in_place)

    def all_gather(self, send: FlatPart, receive: FlatPart, stream: Stream, call: Call = NO_CALL) -> None:
        leaving, arriving = departure(send, stream), arrival(receive, stream)
        mine, end = leaving.wait(), np.array([call.number, call.digest]).tobytes()
        assert not isinstance(mine, DeviceNumbers)  # only exchanges ask for numbers in place
        told = self._engine.share(mine.tobytes() + end, f"all_gather of {send.nbytes} bytes")
        if any(part[send.nbytes :] != end for part in told):
            report = Report(f"all_gather for {call}", (), self._engine.calls.told()).to_text()
            reports = map(bytes.decode, self._engine.share(report.encode()))
            raise verdict(dict(enumerate(map(Report.from_text, reports))), (), self.rank, self.timeout)
        room = arriving.wait()
        assert not isinstance(room, DeviceNumbers)  # as above
        room.view(np.uint8)[...] = np.frombuffer(b"".join(part[: send.nbytes] for part in told), np.uint8)
        arriving.deliver()

    def share(self, value: bytes = b"") -> list[bytes]:
        return self._engine.share(value)

    def close(self) -> None:
        self._engine.close()


class _Exchange:
    """Messages that start at once if their data is on the host, and otherwise after the host has waited for it."""

    def __init__(
        self, engine: HostEngine, call: Call, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, *,
        in_place: bool,
    ) -> None:  # fmt: skip
        self._engine, self._call = engine, call
        self._arrivals = [(item, arrival(item.part, stream, in_place=in_place)) for item in receives]
        self._departures = [(item, departure(item.part, stream, in_place=in_place)) for item in sends]
        ready = all(data.ready for _, data in (*self._arrivals, *self._departures))
        self._wait = self._start() if ready else None

    def finish(self) -> None:
        wait = self._wait or self._start()
        wait()
        for _, arriving in self._arrivals:
            arriving.deliver()

    def _start(self) -> Callable[[], None]:
        first = TAGS * (self._call.digest % self._engine.rooms)
        return self._engine.start(
            self._call,
            [Message(send.peer, first + send.tag, leaving.wait()) for send, leaving in self._departures],
            [Message(receive.peer, first + receive.tag, arriving.wait()) for receive, arriving in self._arrivals],
        )
