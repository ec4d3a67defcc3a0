"""The accesses of calls of kernels, as entries of ledgers; calls that do the same reuse them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from quadpy.hazards.clocks import Lane
from quadpy.hazards.leaves import Leaf, leaves_of
from quadpy.hazards.ledger import Ledger
from quadpy.hazards.memory import Allocations, Handle
from quadpy.hazards.operations import READ, Entry
from quadpy.hazards.regions import Grid, Region, region_in
from quadpy.hazards.runs import Run, Touched
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.observing import KernelAccess, ObservedCall, RawAccess

__all__ = ["CallTouches", "Calls", "node_entries"]

_MOST: Final = 256
"""Runs that are kept."""


class CallTouches(NamedTuple):
    """The memory that a call touches.

    touched  the entries of its arrays
    of_host  the entries of arrays of the host that only the call refers to
    waits    whether the host waits for the call, as it writes one of those
    lent     whether some arrays come from another library: then the call waits for the thread's current stream
    """

    touched: Touched
    of_host: tuple[Entry, ...]
    waits: bool
    lent: bool


class _Place(NamedTuple):
    """Where an array of a call is, even after the array has died."""

    pointer: int
    nbytes: int
    leaves: tuple[Leaf, ...]
    handle: Handle | None
    is_view: bool
    """For memory of the host that is not quadpy's."""


@dataclass(slots=True)
class _Known:
    """A run, by the objects that must be the same; if the memory's ``version`` is the same, so are all others."""

    version: object
    handles: tuple[Handle | None, ...]
    ledgers: tuple[Ledger | None, ...]
    run: Run


class Calls:
    """Finds the runs that calls belong to, and the entries of those that belong to none."""

    def __init__(self, memory: Allocations) -> None:
        self._memory = memory
        self._known: dict[tuple[object, ...], _Known] = {}

    def run(self, call: ObservedCall, lane: Lane) -> Run | None:
        """The run of ``call``; None if it has arrays that only it refers to: their memory may become quadpy's."""
        memory, code = self._memory, call.code()
        key = code, lane, code.place(call.values), *map(type, call.arrays)
        found = self._known.get(key)
        if found is not None and found.version is memory.version:
            return found.run
        version = memory.version
        handles = tuple([memory.of_array(array) for array in call.arrays])
        ledgers = tuple([None if handle is None else handle.ledger for handle in handles])
        if found is not None and (found.handles, found.ledgers) == (handles, ledgers):
            found.version = version
            return found.run
        places = _places(call, handles)
        if any(place.handle is None and place.is_view for place in places):
            return None
        if len(self._known) >= _MOST:
            self._known.clear()
        some = [ledger for ledger in ledgers if ledger is not None]
        made = Run(lane, code, some, lambda accesses: _touches(accesses, places)[0], lent=_is_lent(call, handles))
        self._known[key] = _Known(version, handles, ledgers, made)
        return made

    def touches(self, call: ObservedCall) -> CallTouches:
        """The memory that a call touches if it belongs to no run."""
        handles = [self._memory.of_array(array) for array in call.arrays]
        touched, of_host = _touches(call.code().accesses(call.values), _places(call, handles))
        waits = any(entry.kind != READ for entry in of_host)
        return CallTouches(touched, of_host, waits, _is_lent(call, handles))


def _is_lent(call: ObservedCall, handles: Sequence[Handle | None]) -> bool:
    return any(
        handle is not None and isinstance(array, (HostView, DeviceView))
        for array, handle in zip(call.arrays, handles, strict=True)
    )


def _places(call: ObservedCall, handles: Sequence[Handle | None]) -> tuple[_Place, ...]:
    return tuple(
        _place_of(array, handle, is_view=isinstance(array, HostView))
        for array, handle in zip(call.arrays, handles, strict=True)
    )


def _place_of(array: ArrayMemory, handle: Handle | None = None, *, is_view: bool = False) -> _Place:
    return _Place(array.pointer, array.nbytes, leaves_of(array), handle, is_view)


def _touches(accesses: Sequence[KernelAccess], places: Sequence[_Place]) -> tuple[Touched, tuple[Entry, ...]]:
    """The entries of arrays that the checker knows, and of those that only the call refers to."""
    touched: list[tuple[Ledger, Entry]] = []
    of_host: list[Entry] = []
    for access in accesses:
        if access.array >= len(places):  # a distributed field, whose parts the ranks order
            continue
        place = places[access.array]
        handle = place.handle
        for entry in _entries(access, place):
            if handle is not None:
                touched.append((handle.ledger, handle.ledger.adopt(entry, handle)))
            elif place.is_view:
                of_host.append(entry)
    return tuple(touched), tuple(of_host)


def node_entries(access: RawAccess | tuple[ArrayMemory, KernelAccess]) -> list[Entry]:
    """The entries of a graph node's accesses, which belong to no ledger yet; none if it touches nothing."""
    if isinstance(access, RawAccess):
        if not access.nbytes or not access.rows:
            return []
        region = Region(access.low, access.low + access.nbytes, True)
        if access.rows > 1:
            rows = Grid(access.low, (access.rows, access.nbytes), (access.pitch, 1), 1)
            region = region_in(rows, ()) or region
        return [Entry(access.kind, region, access.reason, access.name)]
    array, touched = access
    return _entries(touched, _place_of(array))


def _entries(access: KernelAccess, place: _Place) -> list[Entry]:
    """The entries of ``access``: none if it covers nothing."""
    leaves = place.leaves
    if access.axes is None or not leaves or any(len(access.axes) > len(leaf.grid.shape) for leaf in leaves):
        whole = region_in(leaves[0].grid, ()) if len(leaves) == 1 else None
        region = whole or Region(place.pointer, place.pointer + place.nbytes, False)
        return [Entry(access.kind, region, access.reason or _UNKNOWN_LAYOUT, access.name, access.span)]
    found = [region_in(grid, axes) for grid, axes in _parts(access.axes, access.components, leaves)]
    return [
        Entry(access.kind, region, access.reason, access.name, access.span) for region in found if region is not None
    ]


_UNKNOWN_LAYOUT: Final = "the memory layout of its elements is not known"


def _parts(
    axes: tuple[range, ...], components: tuple[int, ...] | None, leaves: Sequence[Leaf]
) -> Iterator[tuple[Grid, tuple[range, ...]]]:
    """``axes`` in the grids of the scalars that are touched: ``components``, or all."""
    ndim, first = len(axes), 0
    for leaf in leaves:
        count = leaf.components(ndim)
        theirs = [k for k in range(count) if components is None or first + k in components]
        if len(theirs) == count:
            yield leaf.grid, axes
        else:
            for component in theirs:
                yield leaf.grid, (*axes, *leaf.axes(ndim, component))
        first += count
