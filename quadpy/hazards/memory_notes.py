"""The checker's notes of memory by address, and of memory that other libraries get."""

from __future__ import annotations

from quadpy.hazards.clocks import Lane
from quadpy.hazards.ledger import Named
from quadpy.hazards.notes import Notes
from quadpy.hazards.operations import ALLOCATION, FREE
from quadpy.hazards.regions import Region
from quadpy.runtime.device.life import Life
from quadpy.runtime.launch.host_access import HostMemory
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.timeline import Timeline

__all__ = ["MemoryNotes"]


class MemoryNotes(Notes):
    """Where memory begins and ends for the user, and where it changes hands."""

    def allocated(self, stream: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool) -> None:
        """Like ``Observer.allocated``."""
        with self._lock:
            handle = self._memory.allocated(pointer, nbytes, on_host=on_host)
            self._whole(self._lane(stream, life), handle, ALLOCATION, "malloc_async", pointer, nbytes)

    def freeing(
        self, stream: Timeline, home: Timeline, life: Life, pointer: int, nbytes: int, *, on_host: bool
    ) -> None:
        """Like ``Observer.freeing``: after the work on both streams."""
        with self._lock:
            lane = self._lane(stream, life)
            self._clocks.follow(lane, self._clocks.snapshot(self._lane(home, life)))
            for ledger in self._memory.at(pointer, pointer + nbytes, on_host=on_host):
                for handle in ledger.handles[:1]:
                    self._whole(lane, handle, FREE, "free_async", pointer, nbytes)

    def _whole(self, lane: Lane, handle: Named, kind: str, what: str, pointer: int, nbytes: int) -> None:
        """Note that ``lane`` begins or ends the memory of ``handle``."""
        ledger = handle.ledger
        entry = ledger.entry(None, kind, Region(pointer, pointer + nbytes, True), "", "memory")
        operation = self._operation(lane, what)
        self._submit(operation, [(ledger, entry)])
        operation.doubt = ""

    def followed(self, before: Timeline, stream: Timeline, life: Life) -> None:
        """Like ``Observer.followed``."""
        with self._lock:
            self._clocks.follow(self._lane(stream, life), self._clocks.snapshot(self._lane(before, life)))

    def exported(self, consumer: Timeline, life: Life, memory: Block | HostMemory) -> None:
        """Like ``Observer.exported``."""
        with self._lock:
            lane, handle = self._lane(consumer, life), self._name(memory)
            for user in handle.ledger.users(handle):
                self._clocks.follow(lane, user.point())
