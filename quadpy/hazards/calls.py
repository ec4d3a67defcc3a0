"""What the calls of kernels touch, as slots of ledgers; calls that do the same find them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from quadpy.hazards.ledger import READ, Ledger, Slot
from quadpy.hazards.memory import Allocations, Handle, grid_of
from quadpy.hazards.regions import Grid, Region, region_in
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.observing import KernelAccess, ObservedCall, RawAccess

__all__ = ["CallSlots", "CallTouches", "node_slot"]

Touched = tuple[tuple[Ledger, Slot], ...]

_MOST: Final = 256
"""Different calls that are kept."""


class CallTouches(NamedTuple):
    """What a call touches.

    touched  the slots of its arrays
    of_host  those of arrays of the host, which only the call has
    waits    whether the host waits for the call, as it writes one of those
    lent     whether some arrays come as another library's: the call waits for the thread's current stream then
    """

    touched: Touched
    of_host: tuple[Slot, ...]
    waits: bool
    lent: bool


@dataclass(slots=True)
class _Known:
    """A call as it was, by the objects that must be the same; with the same ``version`` of the memory all others are."""

    version: object
    accesses: tuple[KernelAccess, ...]
    handles: tuple[Handle | None, ...]
    ledgers: tuple[Ledger | None, ...]
    touches: CallTouches


class CallSlots:
    """Finds the slots of calls."""

    def __init__(self, memory: Allocations) -> None:
        self._memory = memory
        self._known: dict[tuple[int, ...], _Known] = {}

    def touched(self, call: ObservedCall) -> CallTouches:
        """What ``call`` touches."""
        memory, accesses, arrays = self._memory, call.accesses, call.arrays
        key = (id(accesses), *[array.pointer for array in arrays])
        found = self._known.get(key)
        if found is not None and found.version is memory.version and found.accesses is accesses:
            return found.touches
        version = memory.version
        handles = tuple([memory.of_array(array) for array in arrays])
        ledgers = tuple([None if handle is None else handle.ledger for handle in handles])
        if found is not None and (found.accesses, found.handles, found.ledgers) == (accesses, handles, ledgers):
            found.version = version
            return found.touches
        if len(self._known) >= _MOST:
            self._known.clear()
        touches = _touches(call, handles)
        if not touches.of_host:  # whose memory may become quadpy's
            self._known[key] = _Known(version, accesses, handles, ledgers, touches)
        return touches


def _touches(call: ObservedCall, handles: Sequence[Handle | None]) -> CallTouches:
    touched: list[tuple[Ledger, Slot]] = []
    of_host: list[Slot] = []
    grids = [grid_of(array) for array in call.arrays]
    for access in call.accesses:
        array, handle = call.arrays[access.array], handles[access.array]
        slot = _slot(access, array, grids[access.array])
        if slot is not None and handle is not None:
            touched.append((handle.ledger, handle.ledger.adopt(slot, handle)))
        elif slot is not None and isinstance(array, HostView):
            of_host.append(slot)
    waits = any(slot.kind != READ for slot in of_host)
    lent = any(
        handle is not None and isinstance(array, (HostView, DeviceView))
        for array, handle in zip(call.arrays, handles, strict=True)
    )
    return CallTouches(tuple(touched), tuple(of_host), waits, lent)


def _slot(access: KernelAccess, array: ArrayMemory, grid: Grid | None) -> Slot | None:
    """The slot of ``access``; None where it covers nothing."""
    region, reason = _region(access, array, grid)
    return None if region is None else Slot(access.kind, region, reason, access.name, access.span)


def node_slot(access: RawAccess | tuple[ArrayMemory, KernelAccess]) -> Slot | None:
    """The slot of what a node of a graph does, which belongs to no ledger yet; None where it touches nothing."""
    if isinstance(access, RawAccess):
        if not access.nbytes or not access.rows:
            return None
        region = Region(access.low, access.low + access.nbytes, True)
        if access.rows > 1:
            rows = Grid(access.low, (access.rows, access.nbytes), (access.pitch, 1), 1)
            region = region_in(rows, ()) or region
        return Slot(access.kind, region, access.reason, access.name)
    array, touched = access
    return _slot(touched, array, grid_of(array))


def _region(access: KernelAccess, array: ArrayMemory, grid: Grid | None) -> tuple[Region | None, str]:
    """The memory that ``access`` covers, and why it may not be touched."""
    everything = Region(array.pointer, array.pointer + array.nbytes, False)
    if grid is None or access.axes is None:
        whole = region_in(grid, ()) if grid is not None else everything
        return whole, access.reason or "how its elements lie in memory is not known"
    if len(access.axes) > len(grid.shape):
        return everything, "how its elements lie in memory is not known"
    return region_in(grid, (*access.axes, *_component_axes(access, grid))), access.reason


def _component_axes(access: KernelAccess, grid: Grid) -> Sequence[range]:
    """The axes of an element, where the kernel touches only some of its numbers: a range that contains them."""
    return ()
