"""The engine of ranks on the host: messages by a library, waits that end, and errors that name the rank.

A library of messages, such as MPI, only starts messages and says whether they are complete.  The engine waits, never
longer than the time limit and never for a rank that has ended, and finds out what is wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from quadpy.dist.calls import Call, Calls, exchange_of
from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.processes import Process, this_process
from quadpy.dist.transport.verdict import SILENT, Report, closed, different_calls, lost, verdict
from quadpy.errors import DistributedError, RankLostError, TransportError
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import Numbers

_SPINS: Final = 100
"""How many times to look without a pause: most messages arrive within microseconds."""
_SHORTEST: Final = 20e-6
_LONGEST: Final = 1e-3
"""Seconds of a pause between two looks, which leaves the core to other ranks."""
_LOOK_AROUND: Final = 0.05
"""Seconds between two looks at the processes of the other ranks."""
_GRACE: Final = 1.0
"""Seconds that the last messages of a rank that has ended may still take."""
_DIAGNOSIS: Final = 2.0
"""Seconds in which the others also find that they have waited too long."""
_LONGEST_NOTICE: Final = 32000
"""Characters of a notice."""
_FIRST: Final = 248
"""Bytes of what a rank shares that travel with the length."""
_KILLED: Final = "its process was killed, or has crashed"


@dataclass(frozen=True, slots=True)
class Message:
    """Contiguous numbers that go to, or come from, rank ``peer`` under ``tag``."""

    peer: int
    tag: int
    numbers: Numbers | DeviceNumbers


class Works(Protocol):
    """Messages under way; keeps the memory alive that the library reads and writes."""

    def done(self) -> bool:
        """Whether they are complete; TransportError if the library reports a failure, or a size is wrong."""


class Library(Protocol):
    """What an engine needs of a library of messages.  All calls start without waiting.

    rooms      messages may have tags below ``2 * TAGS * rooms``
    has_ended  whether the library can no longer be called
    """

    name: str
    rooms: int

    @property
    def has_ended(self) -> bool: ...

    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> Works:
        """Start messages between pairs of ranks, which pair by their tags."""

    def gather(self, mine: Numbers, counts: Sequence[int], every: Numbers) -> Works:
        """Start to gather bytes: the ``counts[rank]`` bytes of each rank, in the order of ranks."""


class Notices:
    """Notices that ranks send each other in addition to their data: how they end, and what they wait for if it takes too long.

    ended         the ranks that end
    failures      the ranks that failed, each with the reason, by their own word or that of another rank
    waiting       the ranks that have waited too long, or were asked by one that has, each with its ``Report`` as text
    told_failure  whether this rank has told the others of a failure
    """

    def __init__(self, rank: int) -> None:
        self.rank: Final = rank
        self.ended: set[int] = set()
        self.failures: dict[int, str] = {}
        self.waiting: dict[int, str] = {}
        self.told_failure = self._told_end = False
        self._lock = new_lock()

    def tell_end(self, reason: str, failed: int) -> None:
        """Tell all ranks that this one ends: well, with an empty ``reason``, or because rank ``failed`` has failed.

        Only the first call counts.
        """
        if not self._told_end:
            self._told_end, self.told_failure = True, bool(reason)
            self.send(f"end {failed} {reason}"[:_LONGEST_NOTICE])

    def tell_wait(self, report: str) -> None:
        """Tell all ranks what this one waits for."""
        self.send(f"wait {self.rank} {report}"[:_LONGEST_NOTICE])

    def collect(self) -> None:
        """Read the notices that have arrived."""
        with self._lock:  # of two threads, one receives what both see
            for rank, notice in self.received():
                kind, about, text = notice.split(" ", 2)
                if kind == "wait":
                    self.waiting.setdefault(rank, text)
                    continue
                self.ended.add(rank)
                if text:
                    self.failures.setdefault(int(about), text)

    def failure(self) -> tuple[int, str] | None:
        """The first failure that is known: the rank and the reason."""
        return next(iter(self.failures.items()), None)

    def note_killed(self, rank: int, reason: str) -> None:
        """Remember that the process of ``rank`` has ended."""
        self.ended.add(rank)
        self.failures.setdefault(rank, reason)

    def send(self, notice: str) -> None:
        """Send ``notice`` to all ranks."""
        raise NotImplementedError

    def received(self) -> Iterator[tuple[int, str]]:
        """What other ranks have sent, and which rank it was."""
        raise NotImplementedError


class Exchanged(NamedTuple):
    """The exchange in which a rank waits; it becomes text only in an error."""

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


class HostEngine:
    """One rank's connection to the others, on the host.

    calls      the rank's calls with distributed arrays
    processes  those of the other ranks, for which ``meet`` asks
    """

    def __init__(self, library: Library, notices: Notices, rank: int, size: int, timeout: float) -> None:
        self.library, self.notices, self.name, self.rooms = library, notices, library.name, library.rooms
        self.rank, self.size, self.timeout, self.calls = rank, size, timeout, Calls()
        self.processes: dict[int, Process] = {}
        self._everyone: Final = [other for other in range(size) if other != rank]
        self._closed, self._process, self._told = False, os.getpid(), False

    def meet(self) -> list[Process]:
        """Learn of the processes of all ranks, which call it together."""
        found = [Process.from_text(text.decode()) for text in self.share(this_process().to_text().encode())]
        self.processes = {other: found[other] for other in self._everyone}
        return found

    def start(self, call: Call, sends: Sequence[Message], receives: Sequence[Message]) -> Callable[[], None]:
        """Start messages; the result waits until the sent numbers may change and the received ones are there."""
        self._require_open()
        works, exchanged = self.library.start(sends, receives), Exchanged(call, sends, receives)
        return lambda: self._complete(works, exchanged.peers, exchanged)

    def share(self, value: bytes, call: str = "share or barrier") -> list[bytes]:
        """The ``value`` of every rank, in the order of ranks.

        Raises:
            RanksDisagreeError: other ranks share for another ``call``.
        """
        self._require_open()
        mine = b"%s\0%s" % (call.encode(), value)
        first = len(mine).to_bytes(8, "little") + mine[:_FIRST].ljust(_FIRST, b"\0")
        firsts = self._gathered(first, [len(first)] * self.size, call)
        lengths = [int.from_bytes(part[:8], "little") for part in firsts]
        rests = [max(0, length - _FIRST) for length in lengths]
        lasts = self._gathered(mine[_FIRST:], rests, call) if any(rests) else [b""] * self.size
        parts = [(first[8:] + last)[:n] for first, last, n in zip(firsts, lasts, lengths, strict=True)]
        calls, _, values = zip(*(part.partition(b"\0") for part in parts), strict=True)
        if len(set(calls)) > 1:
            raise different_calls(dict(enumerate(map(bytes.decode, calls))))
        return list(values)

    def wait_for(self, done: Callable[[], bool], call: object, peers: Collection[int] | None = None) -> None:
        """Wait until ``done``, which needs ``peers``, or else all ranks, in ``call``, which is text only in an error.

        Raises:
            RankLostError: a rank has failed, or a peer has ended or does not answer in time.
            RanksDisagreeError: ranks wait for each other in different calls.
        """
        for _ in range(_SPINS):
            if done():
                return
        peers = self._everyone if peers is None else peers
        start = looked = time.monotonic()
        ended: float | None = None  # when a peer was first seen to have ended
        for _ in _pauses():
            if done():
                return
            now = time.monotonic()
            if now - looked > _LOOK_AROUND:
                looked, gone = now, self.gone(peers)
                if gone is not None and ended is None:
                    ended = now
                if gone is not None and ended is not None and (gone[1] or now - ended > _GRACE):
                    raise lost(*gone, self.rank, self.timeout)
                self.answer(call)
            if now - start > self.timeout:
                raise self.diagnosis(call, peers)

    def gone(self, peers: Collection[int] = ()) -> tuple[int, str] | None:
        """A rank without which the program cannot go on, and why it failed: any that failed, or a peer that ended."""
        notices = self.notices
        ended = [rank for rank, process in self.processes.items() if process.has_ended()]
        notices.collect()  # the last words of those that ended are read before they count as killed
        for rank in ended:
            if rank not in notices.ended:
                notices.note_killed(rank, _KILLED)
        if (failure := notices.failure()) is not None:
            return failure
        return next(((rank, "") for rank in peers if rank in notices.ended), None)

    def lost(self) -> DistributedError | None:
        """The error for a rank that is known to have failed; looked up from any thread."""
        gone = self.gone()
        return None if gone is None else lost(*gone, self.rank, self.timeout)

    def diagnosis(self, call: object, peers: Collection[int] = ()) -> DistributedError:
        """The error for a wait in ``call`` that lasts too long, from what the others report: they are asked first."""
        mine = Report.of(call, self.calls.told())
        self._tell(mine)
        end = time.monotonic() + min(_DIAGNOSIS, self.timeout)
        for _ in _pauses():
            if (gone := self.gone(peers)) is not None:  # another rank has found out first
                return lost(*gone, self.rank, self.timeout)
            others = set(self._everyone) - self.notices.ended
            if self.notices.waiting.keys() >= others or time.monotonic() > end:
                break
        reports = {rank: Report.from_text(text) for rank, text in self.notices.waiting.items()}
        return verdict({**reports, self.rank: mine}, others, self.rank, self.timeout)

    def answer(self, call: object) -> None:
        """Report the wait in ``call`` if another rank has waited too long, and asks."""
        if self.notices.waiting and not self._told:
            self._tell(Report.of(call, self.calls.told()))

    def close(self) -> None:
        """Refuse later calls.  The library's connections end with the process: other libraries may use them."""
        self._closed = True

    def _gathered(self, mine: bytes, counts: Sequence[int], call: str) -> list[bytes]:
        every = np.empty(sum(counts), np.uint8)
        self._complete(self.library.gather(np.frombuffer(mine, np.uint8), counts, every), self._everyone, call)
        ends = np.cumsum(counts).tolist()
        return [every[end - count : end].tobytes() for count, end in zip(counts, ends, strict=True)]

    def _complete(self, works: Works, peers: Collection[int], call: object) -> None:
        """Wait for ``works``; a failure of the library is that of a rank, if one explains it."""
        try:
            self.wait_for(works.done, call, peers)
        except TransportError as error:
            found = self.diagnosis(call, peers)
            unexplained = isinstance(found, RankLostError) and found.reason.startswith(SILENT)
            raise (type(error)(f"in {call}, {error.message}", hint=error.hint) if unexplained else found) from None

    def _tell(self, report: Report) -> None:
        self._told = True
        self.notices.tell_wait(report.to_text())

    def _require_open(self) -> None:
        if self._closed:
            raise closed(self.rank, self._process)


def _pauses() -> Iterator[None]:
    """An endless sequence of growing pauses."""
    seconds = _SHORTEST
    while True:
        yield
        time.sleep(seconds)
        seconds = min(_LONGEST, 1.5 * seconds)
