"""Waits of a rank for others: never longer than the time limit, and never for a rank that has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Final, NoReturn, Protocol

from quadpy.dist.transport.processes import Process
from quadpy.dist.transport.waiting import lost
from quadpy.errors import RanksDisagreeError

__all__ = ["Notices", "Waits", "different_calls"]

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
_KILLED: Final = "its process was killed, or has crashed"


class Notices(Protocol):
    """Notices that ranks send each other in addition to their data.

    ended         the ranks that end
    waiting       the ranks that have waited too long, each with the call in which it waits
    told_failure  whether this rank has told the others of a failure
    """

    ended: set[int]
    waiting: dict[int, str]
    told_failure: bool

    def tell_end(self, reason: str, failed: int) -> None:
        """Tell all ranks that this one ends: well, with an empty ``reason``, or because rank ``failed`` has failed.

        Only the first call counts.
        """

    def tell_wait(self, call: str) -> None:
        """Tell all ranks the call in which this one has waited too long."""

    def collect(self) -> None:
        """Read the notices that have arrived."""

    def failure(self) -> tuple[int, str] | None:
        """The first failure that is known: the rank and the reason."""

    def note_killed(self, rank: int, reason: str) -> None:
        """Remember that the process of ``rank`` has ended."""


class Waits:
    """Waits on one rank."""

    def __init__(self, notices: Notices, rank: int, size: int, timeout: float) -> None:
        self._notices, self._rank, self._size, self.timeout = notices, rank, size, timeout
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
            if now - start > self.timeout:
                self._give_up(peers, str(call))

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

    def _give_up(self, peers: Collection[int], call: str) -> NoReturn:
        """Tell the others what this rank waits for, and raise the error that fits what they tell."""
        self._notices.tell_wait(call)
        end = time.monotonic() + min(_DIAGNOSIS, self.timeout)
        others = self._size - 1
        for _ in _pauses():
            self._notices.collect()
            known = self._notices.waiting
            if len(known) >= others or time.monotonic() > end:
                break
        calls = {**known, self._rank: call}
        silent = [rank for rank in peers if rank != self._rank and rank not in known]
        kinds = {each.partition(" with ")[0] for each in calls.values()}
        if len(kinds) > 1 or (not silent and len(set(calls.values())) > 1):
            raise different_calls(calls)
        raise lost((silent or list(peers))[0], None, self._rank, self.timeout)


def different_calls(calls: dict[int, str]) -> RanksDisagreeError:
    """The error where ranks wait for each other in these calls."""
    told = "; ".join(f"rank {rank} in {calls[rank]}" for rank in sorted(calls))
    return RanksDisagreeError(
        f"ranks wait for each other in different calls: {told}",
        hint="all ranks must make the same calls in the same order; debug=True finds the first that differs",
    )


def _pauses() -> Iterator[None]:
    """An endless sequence of growing pauses."""
    seconds = _SHORTEST
    while True:
        yield
        time.sleep(seconds)
        seconds = min(_LONGEST, 1.5 * seconds)
