"""The latest accesses to an allocation: later ones may have to be ordered after these.

The history is kept short: accesses that later ones cover are dropped; old ones become one region.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from quadpy.hazards.clocks import Clock, Lane
from quadpy.hazards.operations import ENDS, FREE, READ, Entry, Operation, conflict, covers, merged
from quadpy.hazards.regions import Overlap, Region, overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quadpy.core.source import Span

Conflict = tuple[Operation, Entry, Overlap]
"""An earlier access that nothing orders before the new one."""


class Named(Protocol):
    """A name of memory; see ``Handle``."""

    alive: Callable[[], object]

    @property
    def ledger(self) -> Ledger: ...


class Unsettled(Protocol):
    """Calls whose accesses are found on demand; see ``Run``."""

    is_latest: bool

    @property
    def lane(self) -> Lane: ...
    @property
    def latest(self) -> int: ...
    def since(self, ledger: Ledger, time: int) -> Iterator[tuple[Operation, Entry]]: ...


class Ledger:
    """The history of the memory from ``start`` to ``end``; all entries are from ``low`` to ``high``.

    ``handles`` are the names of the memory; it is ``shared`` if an array of quadpy's is one of them.
    ``into`` is the ledger of more memory that took it over, if any.
    ``runs`` are calls of kernels whose accesses after a time are not in ``settled`` yet.  Each of them comes after all
    accesses before it; the latest is on the lane ``running``.
    ``free`` is the operation that gave the memory back, if the user did so.  ``touched`` has the accesses that still
    matter: for each lane the last operation of each entry.  Accesses that another one covers are dropped; a long
    history is shortened to regions that contain it, which then count as possible accesses only.
    """

    __slots__ = (
        "end",
        "entries",
        "free",
        "handles",
        "high",
        "into",
        "low",
        "running",
        "runs",
        "settled",
        "shared",
        "start",
    )  # fmt: skip

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end, self.low, self.high = start, end, sys.maxsize, 0
        self.handles: list[Named] = []
        self.into: Ledger | None = None
        self.shared = False
        self.settled: Accesses = {}
        self.runs: dict[Unsettled, int] = {}
        self.running: Lane | None = None
        self.entries: dict[tuple[object, ...], Entry] = {}
        """Slots of accesses by the host, to be used again."""
        self.free: tuple[Operation, Entry] | None = None

    @property
    def touched(self) -> Accesses:
        """The accesses that still matter, including those of ``runs``."""
        if self.runs:
            self._settle()
        return self.settled

    def begin(self, run: Unsettled, time: int) -> None:
        """Note that calls of ``run`` after ``time`` are the latest accesses; they are found on demand.

        ``runs`` comes before ``running``, for interrupts: the latter has a run at any time.
        """
        if len(self.runs) >= MANY:
            self._settle()
        self.runs.setdefault(run, time)
        if self.running is not run.lane:
            for other in self.runs:
                other.is_latest = False
            self.running = run.lane

    def is_before(self, lane: Lane, clock: Clock) -> bool:
        """Whether an operation of ``lane`` with ``clock`` comes after all accesses of other lanes, and may be kept as a run."""
        if self.free is not None:
            return False
        running = self.running
        if running is None:
            return all(other is lane or clock.get(other.number, 0) >= other.time for other in self.settled)
        if running is lane:
            return True
        return clock.get(running.number, 0) >= max([run.latest for run in self.runs if run.lane is running])

    def _settle(self) -> None:
        """Interrupted, it does the same again."""
        for run in self.runs:
            run.is_latest = False
        calls = [call for run, time in self.runs.items() for call in run.since(self, time)]
        calls.sort(key=lambda call: call[0].order)
        for operation, entry in calls:
            self._note(operation, entry, operation.lane.clocks.host)
        self.running = None  # first, for interrupts, as in ``begin``
        self.runs = {}

    def alive(self) -> bool:
        """Whether the memory exists, or was given back by the user, who may still use it."""
        return self.free is not None or any(handle.alive() is not None for handle in self.handles)

    def absorb(self, other: Ledger) -> None:
        """Take over what ``other`` knows about its memory, which is a part of this memory."""
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        for lane, records in other.touched.items():
            self.settled.setdefault(lane, {}).update(records)
        self.shared = self.shared or other.shared
        self.handles, other.into = [*self.handles, *other.handles], self

    def entry(
        self, handle: object, kind: str, region: Region, reason: str, array: str, span: Span | None = None
    ) -> Entry:  # fmt: skip
        """A new entry, of an access by the name ``handle``."""
        return self.adopt(Entry(kind, region, reason, array, span), handle)

    def adopt(self, entry: Entry, handle: object) -> Entry:
        """``entry``, which belongs here from now on, and is an access by the name ``handle``."""
        entry.handle = handle
        self.low, self.high = min(self.low, entry.region.low), max(self.high, entry.region.high)
        return entry

    def conflicts(self, lane: Lane, clock: Clock, entry: Entry) -> Iterator[Conflict]:
        """Earlier accesses that conflict with an access of ``lane`` and do not come before it."""
        kind, region = entry.kind, entry.region
        for other, records in self.touched.items():
            if other is lane:
                continue
            known = clock.get(other.number, 0)
            for before, operation in records.items():
                if operation.time > known and conflict(before.kind, kind):
                    how = overlap(before.region, region)
                    if how is not Overlap.NONE:
                        yield operation, before, how

    def note(self, operation: Operation, entry: Entry, host: Clock) -> None:
        """Note that ``operation`` touches the memory like this; the ``host`` knows what is complete.

        Each change is one assignment, so that an interrupt leaves a history that is correct, if perhaps too short by
        this access.
        """
        if self.runs:
            self._settle()
        self._note(operation, entry, host)

    def _note(self, operation: Operation, entry: Entry, host: Clock) -> None:
        lane, touched = operation.lane, self.settled
        if entry.kind in ENDS:
            self.free = (operation, entry) if entry.kind == FREE else None
        records = touched.get(lane)
        if records is not None and len(touched) == 1 and len(records) < MANY:
            records[entry] = operation
            return
        if entry.fills and entry.region.low <= self.low and entry.region.high >= self.high:
            self.settled = {lane: {entry: operation}, **self._uncovered(operation, entry)}
            return
        if records is None:
            if len(touched) > MANY:
                touched = self.settled = in_few_lanes(without_history(touched, operation, entry, host), operation)
            touched[lane] = {**touched.get(lane, {}), entry: operation}
            return
        records[entry] = operation
        if len(records) > MANY:
            touched[lane] = shortened(records, host.get(lane.number, 0))

    def users(self, handle: object, *, writers: bool = False) -> list[Operation]:
        """The operations by the name ``handle``, or those of them that wrote."""
        return [
            operation
            for records in self.touched.values()
            for entry, operation in records.items()
            if entry.handle in (handle, None) and not (writers and entry.kind == READ)
        ]

    def _uncovered(self, operation: Operation, entry: Entry) -> Accesses:
        """The accesses that stay although ``operation`` wrote all of the memory.

        They are those that nothing orders before it, for which reads and writes of Python still wait; and those through
        other names of the memory, which such reads and writes do not know.
        """
        found: Accesses = {}
        for lane, records in self.settled.items():
            known = operation.clock.get(lane.number, 0)
            kept = {old: op for old, op in records.items() if old.handle is not entry.handle or op.time > known}
            if kept and lane is not operation.lane:
                found[lane] = kept
        return found


MANY: Final = 32
"""The numbers of accesses of one stream, of streams, and of runs above which an allocation's history is shortened."""

Accesses: TypeAlias = dict[Lane, dict[Entry, Operation]]
"""For each lane the last operation of each entry."""


def without_history(settled: Accesses, operation: Operation, entry: Entry, host: Clock) -> Accesses:
    """The accesses that the host does not know to be complete, without those that ``operation`` comes after and covers.

    Work that comes after ``operation`` comes after the dropped ones, too, as with streams that are made for one read
    each.
    """
    found: Accesses = {}
    for lane, records in settled.items():
        known, before = host.get(lane.number, 0), operation.clock.get(lane.number, 0)
        pending = {
            old: op for old, op in records.items() if op.time > known and not (op.time <= before and covers(entry, old))
        }
        if pending:
            found[lane] = pending
    return found


def shortened(records: dict[Entry, Operation], complete: int) -> dict[Entry, Operation]:
    """``records`` of one lane without complete or covered ones; if many are left, the older half as one region each."""
    recent: list[tuple[Entry, Operation]] = []
    for entry, operation in sorted(records.items(), key=lambda record: -record[1].time):
        if operation.time > complete and not any(covers(later, entry) for later, _ in recent):
            recent.append((entry, operation))
    if len(recent) > MANY // 2:
        recent, old = recent[: MANY // 4], recent[MANY // 4 :]
        for kind in {entry.kind for entry, _ in old}:
            recent.append(merged([record for record in old if record[0].kind == kind]))
    return dict(reversed(recent))


def in_few_lanes(settled: Accesses, operation: Operation) -> Accesses:
    """``settled``; if it has many lanes, the older half, as far as ``operation`` comes after it, becomes one region of
    each kind. Those then count as accesses of ``operation``.
    """
    if len(settled) <= MANY:
        return settled
    by_age = sorted(settled, key=lambda lane: max(op.order for op in settled[lane].values()))
    old: dict[str, list[tuple[Entry, Operation]]] = {}
    found: Accesses = {}
    for number, lane in enumerate(by_age):
        before = operation.clock.get(lane.number, 0)
        if number < len(by_age) // 2 and all(op.time <= before for op in settled[lane].values()):
            for entry in settled[lane]:
                old.setdefault(entry.kind, []).append((entry, operation))
        else:
            found[lane] = settled[lane]
    regions = dict(merged(records) for records in old.values())
    return {**found, operation.lane: regions} if regions else found
