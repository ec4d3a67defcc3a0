"""The checker's notes of copies, fills, and the host's reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quadpy.hazards.clocks import Lane
from quadpy.hazards.ledger import Ledger
from quadpy.hazards.memory import Handle, bounds_of
from quadpy.hazards.notes import Notes, Touched
from quadpy.hazards.operations import READ, WRITE, Entry
from quadpy.hazards.regions import ByteGrid, Region, region_in
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.launch.observing import NOT_NOTED, ObservedStream, Submission


class HostNotes(Notes):
    """Copies and fills, which wait for earlier work themselves, and work that other libraries declare."""

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        """Like ``Observer.reading``: the host knows that the array's writers and the stream's work are complete."""
        with self._lock:
            if (handle := self._handle(source)) is None:
                return
            for writer in handle.ledger.users(handle, writers=True):
                self._clocks.complete(writer.point())
            lane = self._lane(on.timeline, on.device.life)
            self._clocks.complete(self._clocks.snapshot(lane))
            if (entry := _entry(handle, READ, source)) is not None:
                self._check(self._operation(lane, "the host"), handle.ledger, entry)

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> Submission:
        """Like ``Observer.writing``: the write comes after all users of the array."""
        with self._lock:
            self._write(self._lane(on.timeline, on.device.life), target, what, ())
        return NOT_NOTED

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> Submission:
        """Like ``Observer.copying``: the copy comes after the writers of the source and the users of the target."""
        with self._lock:
            lane, handle = self._lane(on.timeline, on.device.life), self._handle(source)
            if handle is not None:
                for writer in handle.ledger.users(handle, writers=True):
                    self._clocks.follow(lane, writer.point())
                entry = _entry(handle, READ, source)
                self._write(lane, target, "copy_from", [] if entry is None else [(handle.ledger, entry)])
        return NOT_NOTED

    def _write(self, lane: Lane, target: ObservedAccess, what: str, more: Touched) -> None:
        handle = self._handle(target)
        if handle is None or (entry := _entry(handle, WRITE, target)) is None:
            return
        for user in handle.ledger.users(handle):
            self._clocks.follow(lane, user.point())
        operation = self._operation(lane, what)
        self._submit(operation, [*more, (handle.ledger, entry)])
        operation.doubt = ""

    def declared(self, on: ObservedStream, what: str, accesses: Sequence[tuple[str, ObservedAccess]]) -> None:
        """Another library's work on a stream: ``accesses`` that "reads" or "writes" arrays."""
        with self._lock:
            lane = self._lane(on.timeline, on.device.life)
            operation = self._operation(lane, what)
            self._submit(operation, self._declared(accesses))
            operation.doubt = ""

    def declared_on_host(self, what: str, accesses: Sequence[tuple[str, ObservedAccess]]) -> None:
        """The same for the host, whose work is complete when it makes its next call."""
        with self._lock:
            operation = self._operation(self._host, what)
            for ledger, entry in self._declared(accesses):
                self._check(operation, ledger, entry)

    def _declared(self, accesses: Sequence[tuple[str, ObservedAccess]]) -> list[tuple[Ledger, Entry]]:
        found: list[tuple[Ledger, Entry]] = []
        for kind, access in accesses:
            handle = self._handle(access)
            if handle is not None and (entry := _entry(handle, READ if kind == "reads" else WRITE, access)) is not None:
                found.append((handle.ledger, entry))
        return found

    def host_reads(self, source: Numbers) -> None:
        """Like ``Observer.host_reads``."""
        if not source.size:
            return
        with self._lock:
            low, high = bounds_of(source)
            entry = Entry(READ, Region(low, high, source.flags.c_contiguous), "", "an array of NumPy")
            operation = self._operation(self._host, "the host")
            for ledger in self._memory.at(low, high, on_host=True):
                self._check(operation, ledger, entry)


def _entry(handle: Handle, kind: str, access: ObservedAccess) -> Entry | None:
    """The memory that the host touches; None for no bytes."""
    ledger = handle.ledger
    layout, where = access.layout, access.where
    where_key = None if where is None else tuple(w if isinstance(w, int) else (w.start, w.stop, w.step) for w in where)
    key = id(handle), kind, layout, where_key, access.name
    found = ledger.entries.get(key)
    if found is None:
        grid = ByteGrid(layout.start, layout.shape, layout.strides, layout.dtype.itemsize)
        region = region_in(grid, [_positions(w, n) for w, n in zip(where or (), layout.shape, strict=False)])
        if region is None:
            return None
        if len(ledger.entries) >= _MOST:
            ledger.entries = {}
        found = ledger.entries[key] = ledger.entry(handle, kind, region, "", access.name)
    return found


_MOST: Final = 64
"""Accesses of the host to one allocation that are kept to be used again."""


def _positions(where: int | slice, extent: int) -> range:
    if isinstance(where, slice):
        return range(*where.indices(extent))
    at = where % extent
    return range(at, at + 1)
