"""The lines of a timeline: one for each stream and each thread, more where works overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quadpy.profiler.records import Record

_TOLERANCE = 1e-3
"""Milliseconds by which neighbours on one stream may seem to overlap, as their events are read separately."""


@dataclass(slots=True)
class Track:
    """Works of one stream or thread of which no two overlap, unless one is within the other."""

    device: str
    name: str
    records: list[Record] = field(default_factory=list)
    _open: list[float] = field(default_factory=list)

    def takes(self, record: Record) -> bool:
        """Whether ``record``, which begins after those before it, fits; then it is added."""
        start, end = record.start, record.start + (record.duration or 0)
        while self._open and self._open[-1] <= start + _TOLERANCE:
            self._open.pop()
        if self._open and end > self._open[-1] + _TOLERANCE:
            return False
        self._open.append(end)
        self.records.append(record)
        return True


def tracks_of(records: Iterable[Record]) -> list[Track]:
    """The tracks of all records that have a duration; those of the host first, each device's in the order of their use."""
    found: dict[tuple[str, str], list[Track]] = {}
    shown = [each for each in records if each.duration is not None and each.kind != "memory"]
    for record in sorted(shown, key=lambda each: (each.start, -(each.duration or 0))):
        name = f"stream {record.stream}" if record.on_device else f"thread {record.thread}"
        lanes = found.setdefault((record.device, name.replace("stream stream", "stream")), [])
        if not any(lane.takes(record) for lane in lanes):
            lanes.append(_lane(record, name.replace("stream stream", "stream"), lanes))
    return sorted((lane for lanes in found.values() for lane in lanes), key=lambda track: track.device != "host")


def _lane(record: Record, name: str, lanes: Sequence[Track]) -> Track:
    made = Track(record.device, name if not lanes else f"{name} ({len(lanes) + 1})")
    made.takes(record)
    return made
