"""The checker's notes of what orders work: events, waits and synchronisation."""

from __future__ import annotations

from quadpy.hazards.clocks import Lane
from quadpy.hazards.notes import Notes
from quadpy.runtime.device.life import Life
from quadpy.runtime.drivers.driver import EventHandle
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["OrderNotes"]


class OrderNotes(Notes):
    """Notes of the order that the program asks for."""

    def recorded(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """Like ``Observer.recorded``."""
        with self._lock:
            event.observed = self._clocks.snapshot(self._lane(stream, life))

    def waited(self, event: OwnerRef[EventHandle], stream: Timeline, life: Life) -> None:
        """Like ``Observer.waited``."""
        with self._lock:
            if (point := self._point(event)) is not None:
                self._clocks.follow(self._lane(stream, life), point)

    def completed(self, event: OwnerRef[EventHandle]) -> None:
        """Like ``Observer.completed``."""
        with self._lock:
            if (point := self._point(event)) is not None:
                self._clocks.complete(point)

    def synchronized(self, stream: Timeline, life: Life) -> None:
        """Like ``Observer.synchronized``."""
        self.complete(self._lane(stream, life))

    def device_synchronized(self, life: Life) -> None:
        """Like ``Observer.device_synchronized``."""
        with self._lock:
            for lane in tuple(self._clocks.lanes.values()):
                if lane.life is life:
                    self._clocks.complete(self._clocks.snapshot(lane))

    def complete(self, lane: Lane) -> None:
        """Note that the host knows that all of ``lane`` is complete."""
        with self._lock:
            self._clocks.complete(self._clocks.snapshot(lane))
