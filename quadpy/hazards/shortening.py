"""Keeps an allocation's history short: accesses that later ones cover are dropped; old ones become one region."""

from __future__ import annotations

from typing import Final, TypeAlias

from quadpy.hazards.clocks import Clock, Lane
from quadpy.hazards.operations import Entry, Operation, covers, merged

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
