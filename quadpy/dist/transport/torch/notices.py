"""Notices that ranks send each other in addition to their data, in the store of torch."""

from __future__ import annotations

from typing import Any, Final

from quadpy.runtime.device.locks import new_lock

_LONGEST: Final = 32000
"""Characters of a notice."""


class StoreNotices:
    """One rank's ``Notices``: all of them are in the store, numbered in the order in which they were told."""

    def __init__(self, store: Any, rank: int) -> None:
        self._store, self._rank = store, rank
        self.ended: set[int] = set()
        self.waiting: dict[int, str] = {}
        self.told_failure = self._told_end = False
        self._failures: dict[int, str] = {}
        self._read = 0
        self._lock = new_lock()

    def tell_end(self, reason: str, failed: int) -> None:
        if not self._told_end:
            self._told_end, self.told_failure = True, bool(reason)
            self._tell("end", failed, reason)

    def tell_wait(self, report: str) -> None:
        self._tell("wait", self._rank, report)

    def collect(self) -> None:
        with self._lock:
            try:
                while self._store.check([_name(self._read + 1)]):
                    self._read += 1
                    self._note(self._store.get(_name(self._read)).decode())
            except RuntimeError as error:  # torch's, of a connection that is broken
                self._failures.setdefault(0, f"the store at MASTER_ADDR does not answer: {str(error).splitlines()[0]}")

    def failure(self) -> tuple[int, str] | None:
        return next(iter(self._failures.items()), None)

    def note_killed(self, rank: int, reason: str) -> None:
        self.ended.add(rank)
        self._failures.setdefault(rank, reason)

    def _tell(self, kind: str, about: int, text: str) -> None:
        try:
            self._store.set(_name(self._store.add("notices", 1)), f"{kind} {self._rank} {about} {text[:_LONGEST]}")
        except RuntimeError:  # the store has ended, and so have the others
            return

    def _note(self, notice: str) -> None:
        kind, rank, about, text = notice.split(" ", 3)
        if int(rank) == self._rank:
            return
        if kind == "wait":
            self.waiting.setdefault(int(rank), text)
            return
        self.ended.add(int(rank))
        if text:
            self._failures.setdefault(int(about), text)


def _name(number: int) -> str:
    return f"notice {number}"
