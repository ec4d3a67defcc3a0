"""Transports that move data in host memory: what all of them do, above an engine that moves bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from quadpy.core.dtypes import bf16, f16
from quadpy.dist.calls import Call, Calls, exchange_of
from quadpy.dist.transport.arrivals import DeviceNumbers, arrival, departure
from quadpy.dist.transport.protocol import NO_CALL, TAGS, FlatPart, Operator, Receive, Send
from quadpy.dist.transport.verdict import Report, verdict
from quadpy.errors import DistributedError
from quadpy.runtime.elements.numpy_types import Numbers, cast, decode, encode
from quadpy.runtime.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class Message:
    """Contiguous numbers that go to, or come from, rank ``peer`` under ``tag``."""

    peer: int
    tag: int
    numbers: Numbers | DeviceNumbers


class Exchanged(NamedTuple):
    """The call in which a rank waits; it becomes text only in an error."""

    call: Call
    sends: Sequence[Message]
    receives: Sequence[Message]

    @property
    def peers(self) -> list[int]:
        return sorted({message.peer for message in (*self.sends, *self.receives)})

    def __str__(self) -> str:
        peers = self.peers
        leaving, arriving = (sum(message.numbers.nbytes for message in each) for each in (self.sends, self.receives))
        ranks = f"rank{'s' * (len(peers) > 1)} {', '.join(map(str, peers))}"
        return f"{exchange_of(self.call)} with {ranks} ({leaving} bytes to send, {arriving} to receive)"


class Pending(Protocol):
    """Messages under way."""

    def wait(self) -> None:
        """Wait until the sent numbers may change and the received ones are there; raises as ``StartedExchange.finish``."""


class RankEngine(Protocol):
    """Moves numbers between ranks, from the host.  Every wait lasts at most ``timeout`` seconds.

    Messages may have tags below ``2 * TAGS * rooms``.
    """

    name: str
    rank: int
    size: int
    timeout: float
    rooms: int
    calls: Calls

    def start(self, call: Call, sends: Sequence[Message], receives: Sequence[Message]) -> Pending: ...

    def gather(self, mine: Numbers, all_ranks: Numbers) -> None: ...

    def reduce(self, numbers: Numbers, operator: Operator) -> None:
        """Replace ``numbers``, of a type that NumPy computes with, by the result over all ranks."""

    def broadcast(self, numbers: Numbers, root: int) -> None: ...

    def share(self, value: bytes) -> list[bytes]: ...

    def wait_for(self, done: Callable[[], bool], call: str) -> None:
        """Wait until ``done``, which needs all ranks; raises as ``Pending.wait``."""

    def lost(self) -> DistributedError | None:
        """The error for a rank that is known to have failed; looked up from any thread."""

    def diagnosis(self, call: str) -> DistributedError:
        """The error for work in ``call`` that takes too long; the other ranks are asked what they wait for."""

    def answer(self, call: str) -> None:
        """Tell a rank that asks that this one waits in ``call``."""

    def close(self) -> None: ...


class HostTransport:
    """A Transport over an engine.  Arrays of the host are sent from where they are, those of a GPU through pinned memory."""

    capturable = False

    def __init__(self, engine: RankEngine, *, in_place: bool = False) -> None:
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
        mine, end = _on_host(leaving.wait()).view(np.uint8), np.array([call.number, call.digest]).view(np.uint8)
        every = np.empty((self.size, mine.size + end.size), np.uint8)
        self._engine.gather(np.concatenate([mine, end]), every.reshape(-1))
        if (every[:, mine.size :] != end).any():
            report = Report(f"all_gather for {call}", (), self._engine.calls.told()).to_text()
            told = map(bytes.decode, self._engine.share(report.encode()))
            raise verdict(dict(enumerate(map(Report.from_text, told))), (), self.rank, self.timeout)
        _on_host(arriving.wait()).view(np.uint8)[...] = every[:, : mine.size].reshape(-1)
        arriving.deliver()

    def all_reduce(self, part: FlatPart, operator: Operator, stream: Stream) -> None:
        dtype = part.array.dtype
        numbers = decode(_on_host(departure(part, stream).wait()), dtype)
        numbers = numbers.astype(np.float32) if dtype in (f16, bf16) else numbers.copy()
        self._engine.reduce(numbers, operator)
        arriving = arrival(part, stream)
        _on_host(arriving.wait())[...] = encode(cast(numbers, dtype), dtype)
        arriving.deliver()

    def broadcast(self, part: FlatPart, root: int, stream: Stream) -> None:
        if root == self.rank:
            self._engine.broadcast(_on_host(departure(part, stream).wait()), root)
            return
        arriving = arrival(part, stream)
        self._engine.broadcast(_on_host(arriving.wait()), root)
        arriving.deliver()

    def share(self, value: bytes) -> list[bytes]:
        return self._engine.share(value)

    def barrier(self) -> None:
        self._engine.share(b"")

    def close(self) -> None:
        self._engine.close()


class _Exchange:
    """Messages that start at once if their data is on the host, and otherwise after the host has waited for it."""

    def __init__(
        self, engine: RankEngine, call: Call, sends: Sequence[Send], receives: Sequence[Receive], stream: Stream, *,
        in_place: bool,
    ) -> None:  # fmt: skip
        self._engine, self._call = engine, call
        self._arrivals = [(item, arrival(item.part, stream, in_place=in_place)) for item in receives]
        self._departures = [(item, departure(item.part, stream, in_place=in_place)) for item in sends]
        ready = all(data.ready for _, data in (*self._arrivals, *self._departures))
        self._pending = self._start() if ready else None

    def finish(self) -> None:
        pending = self._pending or self._start()
        pending.wait()
        for _, arriving in self._arrivals:
            arriving.deliver()

    def _start(self) -> Pending:
        first = TAGS * (self._call.digest % self._engine.rooms)
        return self._engine.start(
            self._call,
            [Message(send.peer, first + send.tag, leaving.wait()) for send, leaving in self._departures],
            [Message(receive.peer, first + receive.tag, arriving.wait()) for receive, arriving in self._arrivals],
        )


def _on_host(numbers: Numbers | DeviceNumbers) -> Numbers:
    assert not isinstance(numbers, DeviceNumbers)  # only exchanges ask for numbers in place
    return numbers
