"""Counters of replayed functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quadpy.runtime.device.locks import new_lock


@dataclass(frozen=True, slots=True)
class ReplayStats:
    """Counters of a replayed function.

    captures   how many graphs were made
    replays    how many calls launched a graph, first calls included
    updates    how many nodes were changed because arguments had changed
    rebuilds   how often a change rebuilt the driver's graph
    fallbacks  how many calls ran eagerly because the function or the device prevented a graph; ``reason`` is the last one's
    capture_s  how many seconds making the graphs took
    """

    captures: int = 0
    replays: int = 0
    updates: int = 0
    rebuilds: int = 0
    fallbacks: int = 0
    reason: str | None = None
    capture_s: float = 0.0


class Counters:
    """Counts for ``ReplayStats``.  What each call counts is an attribute, without a lock."""

    def __init__(self) -> None:
        self.replays = self.updates = self.fallbacks = 0
        self._rare = ReplayStats()
        self._lock = new_lock()  # only held while counting; a finalizer that runs in between may count too

    def add(self, *, captures: int = 0, rebuilds: int = 0, capture_s: float = 0.0) -> None:
        """Count what few calls do."""
        with self._lock:
            now = self._rare
            self._rare = replace(
                now,
                captures=now.captures + captures,
                rebuilds=now.rebuilds + rebuilds,
                capture_s=now.capture_s + capture_s,
            )

    def set_reason(self, reason: str) -> bool:
        """Remember why a call ran eagerly; whether it is the first reason."""
        with self._lock:
            first = self._rare.reason is None
            self._rare = replace(self._rare, reason=reason)
        return first

    def stats(self) -> ReplayStats:
        """All counts so far."""
        return replace(self._rare, replays=self.replays, updates=self.updates, fallbacks=self.fallbacks)
