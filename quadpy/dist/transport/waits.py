"""Waits of a rank for others: never longer than the time limit, and never for a rank that has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from quadpy.dist.calls import Calls
from quadpy.dist.transport.processes import Process, this_process
from quadpy.dist.transport.verdict import Report, verdict
from quadpy.dist.transport.waiting import closed, lost
from quadpy.errors import DistributedError, RanksDisagreeError, TransportError
from quadpy.runtime.device.locks import new_lock

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
_KILLED: Final = "its process was killed, or has crashed"


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


class Waits:
    """Waits on one rank."""

    def __init__(self, notices: Notices, rank: int, size: int, timeout: float, calls: Calls) -> None:
        """``calls`` are those of the rank with distributed arrays."""
        self._notices, self._rank, self._size, self.timeout, self.calls = notices, rank, size, timeout, calls
        self._told = False
        self.processes: dict[int, Process] = {}

    def until(self, done: Callable[[], bool], peers: Collection[int], call: object) -> None:
        """Wait until ``done``, which needs ``peers``, in ``call``, which is text only if an error says so.

        Raises:
            RankLostError: a rank has failed, or a peer has ended or does not answer in time.
            RanksDisagreeError: ranks wait for each other in different calls.
        """
        for _ in range(_SPINS):
            if done():
                return
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
                    raise lost(*gone, self._rank, self.timeout)
                self.answer(call)
            if now - start > self.timeout:
                raise self.diagnosis(call)

    def gone(self, peers: Collection[int]) -> tuple[int, str] | None:
        """A rank without which the program cannot go on, and why it failed: any that failed, or a peer that ended."""
        notices = self._notices
        ended = [rank for rank, process in self.processes.items() if process.has_ended()]
        notices.collect()  # the last words of those that ended are read before they count as killed
        for rank in ended:
            if rank not in notices.ended:
                notices.note_killed(rank, _KILLED)
        if (failure := notices.failure()) is not None:
            return failure
        return next(((rank, "") for rank in peers if rank in notices.ended), None)

    def diagnosis(self, call: object) -> DistributedError:
        """The error for a wait in ``call`` that lasts too long, from what the others report: they are asked first."""
        mine = Report.of(call, self.calls.told())
        self._tell(mine)
        end = time.monotonic() + min(_DIAGNOSIS, self.timeout)
        for _ in _pauses():
            if (gone := self.gone(())) is not None:  # another rank has found out first
                return lost(*gone, self._rank, self.timeout)
            others = set(range(self._size)) - self._notices.ended - {self._rank}
            if self._notices.waiting.keys() >= others or time.monotonic() > end:
                break
        reports = {rank: Report.from_text(text) for rank, text in self._notices.waiting.items()}
        return verdict({**reports, self._rank: mine}, others, self._rank, self.timeout)

    def misfit(self, call: object, error: TransportError) -> DistributedError:
        """The error where messages of ``call`` do not fit: ``error``, if it is not because ranks disagree about them."""
        found = self.diagnosis(call)
        return found if isinstance(found, RanksDisagreeError) else error

    def answer(self, call: object) -> None:
        """Report the wait in ``call`` if another rank has waited too long, and asks."""
        if self._notices.waiting and not self._told:
            self._tell(Report.of(call, self.calls.told()))

    def _tell(self, report: Report) -> None:
        self._told = True
        self._notices.tell_wait(report.to_text())


class ProcessEngine:
    """What engines of ranks that are processes share."""

    notices: Notices
    waits: Waits
    processes: list[Process]
    """Those of all ranks."""

    def __init__(self, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout, self.calls = rank, size, timeout, Calls()
        self.everyone: Final = [other for other in range(size) if other != rank]
        self._closed, self._process = False, os.getpid()

    def share(self, value: bytes) -> list[bytes]:
        """The values of all ranks."""
        raise NotImplementedError

    def begin(self, notices: Notices) -> None:
        """From now on, ranks send ``notices``."""
        self.notices, self.waits = notices, Waits(notices, self.rank, self.size, self.timeout, self.calls)

    def meet(self) -> None:
        """Learn of the processes of all ranks."""
        self.processes = [Process.from_text(text.decode()) for text in self.share(this_process().to_text().encode())]
        self.waits.processes = {other: self.processes[other] for other in self.everyone}

    def wait_for(self, done: Callable[[], bool], call: str) -> None:
        self.waits.until(done, self.everyone, call)

    def lost(self) -> DistributedError | None:
        gone = self.waits.gone(())
        return None if gone is None else lost(*gone, self.rank, self.timeout)

    def diagnosis(self, call: str) -> DistributedError:
        return self.waits.diagnosis(call)

    def answer(self, call: str) -> None:
        self.waits.answer(call)

    def close(self) -> None:
        """Refuse later calls.  The library's connections end with the process: other libraries may use them."""
        self._closed = True

    def require_open(self) -> None:
        if self._closed:
            raise closed(self.rank, self._process)


def _pauses() -> Iterator[None]:
    """An endless sequence of growing pauses."""
    seconds = _SHORTEST
    while True:
        yield
        time.sleep(seconds)
        seconds = min(_LONGEST, 1.5 * seconds)
