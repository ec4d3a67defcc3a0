"""What the calls of kernels touch, as slots of ledgers; calls that do the same find them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quadpy.hazards.ledger import Ledger, Slot
from quadpy.hazards.memory import Allocations, grid_of
from quadpy.hazards.regions import Grid, Region, region_in
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.observing import KernelAccess, ObservedCall, RawAccess

__all__ = ["CallSlots", "node_slot"]

Touched = tuple[tuple[Ledger, Slot], ...]

_MOST: Final = 256
"""Different calls that are kept."""


class CallSlots:
    """Finds the slots of calls."""

    def __init__(self, memory: Allocations) -> None:
        self._memory = memory
        self._known: dict[
            tuple[int, ...], tuple[tuple[KernelAccess, ...], tuple[Ledger | None, ...], Touched, bool]
        ] = {}

    def touched(self, call: ObservedCall) -> tuple[Touched, bool]:
        """What ``call`` touches of which ledgers, and whether the host waits for it as it writes an array of the host."""
        of_array, accesses, arrays = self._memory.of_array, call.accesses, call.arrays
        ledgers = tuple([of_array(array) for array in arrays])
        key = (id(accesses), *[array.pointer for array in arrays])
        found = self._known.get(key)
        if found is not None and found[0] is accesses and found[1] == ledgers:
            return found[2], found[3]
        grids = [grid_of(array) for array in arrays]
        touched = tuple(
            (ledger, slot)
            for access in accesses
            if (ledger := ledgers[access.array]) is not None
            and (slot := _slot(access, arrays[access.array], grids[access.array], ledger)) is not None
        )
        waits = any(isinstance(arrays[access.array], HostView) and access.kind != "read" for access in accesses)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = accesses, ledgers, touched, waits
        return touched, waits


def _slot(access: KernelAccess, array: ArrayMemory, grid: Grid | None, ledger: Ledger) -> Slot | None:
    """The slot of ``access``; None where it covers nothing."""
    region, reason = _region(access, array, grid)
    if region is None:
        return None
    return ledger.slot(access.kind, region, reason, access.name, access.span)


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
    found, reason = _region(touched, array, grid_of(array))
    return None if found is None else Slot(touched.kind, found, reason, touched.name, touched.span)


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
