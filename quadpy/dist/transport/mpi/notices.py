"""Notices that ranks send each other in addition to their data: how they end, and what they wait for if it takes too long."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import Numbers

_ENDED: Final = 1
_WAITING: Final = 2
_LONGEST: Final = 32000
"""Characters of a notice."""


class Notices:
    """One rank's notices over a separate communicator.

    ended         the ranks that end
    failures      the ranks that failed, each with the reason, by their own word or that of another rank
    told_failure  whether this rank has told the others of a failure
    waiting       as ``waits.Notices``
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self._sent: list[tuple[Any, Numbers]] = []  # the requests, and what they send
        self.ended: set[int] = set()
        self.failures: dict[int, str] = {}
        self.waiting: dict[int, str] = {}
        self._told_end = self.told_failure = False
        self._killed: set[int] = set()
        self._lock = new_lock()

    def tell_end(self, reason: str, failed: int) -> None:
        """Tell all ranks that this one ends: well, with an empty ``reason``, or because rank ``failed`` has failed.

        Only the first call counts.
        """
        if not self._told_end:
            self._told_end, self.told_failure = True, bool(reason)
            self._tell(_ENDED, f"{failed}:{reason}")

    def tell_wait(self, report: str) -> None:
        """Tell all ranks what this one waits for."""
        self._tell(_WAITING, report)

    def collect(self) -> None:
        """Read the notices that have arrived."""
        status = self._mpi.Status()
        with self._lock:  # of two threads, one receives what both see
            while self._comm.Iprobe(source=self._mpi.ANY_SOURCE, tag=self._mpi.ANY_TAG, status=status):
                text = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
                rank, tag = status.Get_source(), status.Get_tag()
                self._comm.Recv([text, self._mpi.BYTE], source=rank, tag=tag)
                self._note(rank, tag, text.tobytes().decode(errors="replace"))

    def failure(self) -> tuple[int, str] | None:
        """The first failure that is known: the rank and the reason."""
        return next(iter(self.failures.items()), None)

    def note_killed(self, rank: int, reason: str) -> None:
        """Remember that the process of ``rank`` has ended: nothing is sent to it any more."""
        self._killed.add(rank)
        self.ended.add(rank)
        self.failures.setdefault(rank, reason)

    def _note(self, rank: int, tag: int, text: str) -> None:
        if tag == _WAITING:
            self.waiting.setdefault(rank, text)
            return
        self.ended.add(rank)
        failed, _, reason = text.partition(":")
        if reason:
            self.failures.setdefault(int(failed), reason)

    def _tell(self, tag: int, text: str) -> None:
        data = np.frombuffer(text[:_LONGEST].encode(), np.uint8)
        for rank in range(self._comm.Get_size()):
            if rank != self._comm.Get_rank() and rank not in self._killed:
                self._sent.append((self._comm.Isend([data, self._mpi.BYTE], dest=rank, tag=tag), data))
