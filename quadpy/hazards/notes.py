"""What all notes of the checker need: clocks, memory, and the comparison of an access with earlier ones."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Final

from quadpy.core.conflicts import Hazard
from quadpy.hazards.clocks import Clocks, Lane, Snapshot
from quadpy.hazards.ledger import Conflict, Ledger
from quadpy.hazards.memory import Allocations, Handle
from quadpy.hazards.operations import ALLOCATION, Entry, Operation, covers
from quadpy.hazards.regions import Overlap
from quadpy.hazards.reports import allowed_in_both, hazard_of
from quadpy.hazards.sinks import Sinks
from quadpy.hazards.sites import call_place
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, EventHandle
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.host_access import HostMemory, ObservedAccess
from quadpy.runtime.launch.observing import Observer
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.timeline import Timeline

Touched = Sequence[tuple[Ledger, Entry]]


class Notes(Observer):
    """Notes work, and reports hazards to ``sinks``.

    Its lock makes each call's checks and notes a single step, so that of two threads one comes first.
    """

    def __init__(self, sinks: Sinks) -> None:
        self._sinks = sinks
        self._lock: Final = new_lock()
        self._clocks = Clocks()
        self._memory = Allocations()
        self._host = self._clocks.lane(_nothing, None, default=False)
        """The host's own accesses, which are complete when the call returns."""

    def _operation(self, lane: Lane, what: str) -> Operation:
        """Work that is about to be submitted to ``lane``, or that the host does."""
        before = self._clocks.host if lane is self._host else self._clocks.before(lane)
        return Operation(lane, before, what, None, call_place())

    def _lane(self, timeline: Timeline, life: Life) -> Lane:
        if not self._sinks.blocks and self._sinks.process is None:
            CAPTURES.observe("checker", None)  # an interrupt came before the end of a block could do so
        found = timeline.observed
        if isinstance(found, Lane) and found.clocks is self._clocks:
            return found
        default = type(timeline) is Timeline and timeline.stream is None and timeline.handle == DEFAULT_STREAM
        made = timeline.observed = self._clocks.lane(weakref.ref(timeline), life, default=default)
        return made

    def _point(self, event: OwnerRef[EventHandle]) -> Snapshot | None:
        """The point that an event stands for; None if it was never recorded while the checker was on."""
        found = event.observed
        return found if isinstance(found, Snapshot) and found.lane.clocks is self._clocks else None

    def _handle(self, access: ObservedAccess) -> Handle | None:
        return None if access.memory is None else self._name(access.memory)

    def _name(self, memory: Block | HostMemory) -> Handle:
        return self._memory.of_block(memory) if isinstance(memory, Block) else self._memory.of_storage(memory)

    def _submit(self, operation: Operation, touched: Touched) -> None:
        """Check ``operation`` and note it; HazardError if a hazard is certain and not collected: then nothing is noted."""
        lane, known = operation.lane, operation.clock.get
        begun = None
        for ledger, entry in touched:
            if ledger.free is None:
                for other in ledger.touched:
                    if other is not lane and known(other.number, 0) < other.time:
                        break
                else:  # after all work of all streams that used it: the common case
                    continue
            if entry.kind == ALLOCATION:
                begun = ledger
            if ledger.free is not None and begun is not ledger:
                self._sinks.report([hazard_of(ledger.free, (operation, entry), Overlap.CERTAIN)])
            else:
                self._check(operation, ledger, entry)
        lane.time = operation.time
        for ledger, entry in touched:
            ledger.note(operation, entry, self._clocks.host)

    def _check(self, operation: Operation, ledger: Ledger, entry: Entry) -> None:
        found = list(ledger.conflicts(operation.lane, operation.clock, entry))
        if found:
            self._sinks.report(_hazards(found, operation, entry))


def _nothing() -> None:
    """The host has no stream."""


def _hides(later: Conflict, earlier: Conflict) -> bool:
    """Whether the access ``later``, on the same stream, stands for ``earlier``, too."""
    same = later[0].lane is earlier[0].lane and later[0].time > earlier[0].time
    return same and later[2] is earlier[2] and covers(later[1], earlier[1])


def _hazards(conflicts: list[Conflict], operation: Operation, entry: Entry) -> list[Hazard]:
    """The hazards of one access, those that are certain and those of the latest operations first."""
    conflicts = [one for one in conflicts if not any(_hides(other, one) for other in conflicts)]
    conflicts.sort(key=lambda found: (found[2] is not Overlap.CERTAIN, bool(found[1].reason), -found[0].time))
    alike: dict[tuple[object, ...], Conflict] = {}
    for one in conflicts:
        alike.setdefault(_shown(one, entry), one)
    return [hazard_of((before, earlier), (operation, entry), how) for before, earlier, how in alike.values()]


def _shown(conflict: Conflict, entry: Entry) -> tuple[object, ...]:
    """The key by which a reader can tell the hazards of one access apart; a report takes long to make."""
    before, earlier, how = conflict
    return before.place, earlier.array, how, earlier.reason, before.doubt, allowed_in_both(earlier.region, entry.region)
