"""Waits of a rank for others: never longer than the time limit, and never for a rank that is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NoReturn

from quadpy.dist.transport.mpi.notices import Notices
from quadpy.dist.transport.mpi.processes import Process
from quadpy.dist.transport.waiting import lost
from quadpy.errors import QuadpyError, RanksDisagreeError, TransportError

__all__ = ["Waits"]

_SPINS: Final = 100
"""Looks without a pause: most messages come within microseconds."""
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


class Waits:
    """Waits for requests of MPI on one rank."""

    def __init__(self, mpi: Any, notices: Notices, rank: int, size: int, timeout: float) -> None:
        self._mpi, self._notices = mpi, notices
        self._rank, self._size, self.timeout = rank, size, timeout
        self.processes: dict[int, Process] = {}

    def complete(self, requests: Sequence[Any], peers: Collection[int], call: str) -> list[Any]:
        """Wait until ``requests``, which need ``peers``, are complete; returns their statuses.

        Raises:
            RankLostError: a rank has failed, or a peer has ended or does not answer in time.
            RanksDisagreeError: ranks wait for each other in different calls.
            TransportError: MPI reports an error.
        """
        statuses = [self._mpi.Status() for _ in requests]
        self.until(lambda: self._test(requests, statuses, call), peers, call)
        return statuses

    def until(self, done: Callable[[], bool], peers: Collection[int], call: str) -> None:
        """Wait until ``done``; raises as ``complete``."""
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
                self._give_up(peers, call)

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

    def _test(self, requests: Sequence[Any], statuses: list[Any], call: str) -> bool:
        try:
            return bool(self._mpi.Request.Testall(requests, statuses))
        except self._mpi.Exception as error:
            raise self.failed(error, call) from error

    def failed(self, error: Any, call: str) -> QuadpyError:
        """The error for an exception of MPI."""
        codes = {status.Get_error() for status in getattr(error, "statuses", ())} | {error.Get_error_class()}
        if self._mpi.ERR_TRUNCATE in codes:
            hint = "the ranks must agree on the shape of the grid, the halos and the dtype"
            return TransportError(f"in {call}, a rank sent more than this rank receives", hint=hint)
        return TransportError(f"MPI failed in {call}: {error.Get_error_string()}")

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
        if known and set(known.values()) != {call}:
            calls = {**known, self._rank: call}
            told = "; ".join(f"rank {rank} in {calls[rank]}" for rank in sorted(calls))
            raise RanksDisagreeError(
                f"ranks wait for each other in different calls: {told}",
                hint="all ranks must make the same calls in the same order; debug=True finds the first that differs",
            )
        silent = [rank for rank in peers if rank != self._rank and rank not in known]
        raise lost((silent or list(peers))[0], None, self._rank, self.timeout)


def _pauses() -> Iterator[None]:
    """Pauses that grow, without an end."""
    seconds = _SHORTEST
    while True:
        yield
        time.sleep(seconds)
        seconds = min(_LONGEST, 1.5 * seconds)
