"""What the calls of kernels touch, as slots of ledgers; calls that do the same find them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from quadpy.hazards.ledger import READ, Ledger, Slot
from quadpy.hazards.memory import Allocations, Handle, Leaf, leaves_of
from quadpy.hazards.regions import Grid, Region, region_in
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.observing import KernelAccess, ObservedCall, RawAccess

__all__ = ["CallSlots", "CallTouches", "node_slots"]

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
        memory, accesses, arrays = self._memory, call.accesses(), call.arrays
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
        touches = _touches(arrays, accesses, handles)
        if not touches.of_host:  # whose memory may become quadpy's
            self._known[key] = _Known(version, accesses, handles, ledgers, touches)
        return touches


def _touches(
    arrays: Sequence[ArrayMemory], accesses: Sequence[KernelAccess], handles: Sequence[Handle | None]
) -> CallTouches:
    touched: list[tuple[Ledger, Slot]] = []
    of_host: list[Slot] = []
    leaves = [leaves_of(array) for array in arrays]
    for access in accesses:
        array, handle = arrays[access.array], handles[access.array]
        for slot in _slots(access, array, leaves[access.array]):
            if handle is not None:
                touched.append((handle.ledger, handle.ledger.adopt(slot, handle)))
            elif isinstance(array, HostView):
                of_host.append(slot)
    waits = any(slot.kind != READ for slot in of_host)
    lent = any(
        handle is not None and isinstance(array, (HostView, DeviceView))
        for array, handle in zip(arrays, handles, strict=True)
    )
    return CallTouches(tuple(touched), tuple(of_host), waits, lent)


def node_slots(access: RawAccess | tuple[ArrayMemory, KernelAccess]) -> list[Slot]:
    """The slots of what a node of a graph does, which belong to no ledger yet; none where it touches nothing."""
    if isinstance(access, RawAccess):
        if not access.nbytes or not access.rows:
            return []
        region = Region(access.low, access.low + access.nbytes, True)
        if access.rows > 1:
            rows = Grid(access.low, (access.rows, access.nbytes), (access.pitch, 1), 1)
            region = region_in(rows, ()) or region
        return [Slot(access.kind, region, access.reason, access.name)]
    array, touched = access
    return _slots(touched, array, leaves_of(array))


def _slots(access: KernelAccess, array: ArrayMemory, leaves: Sequence[Leaf]) -> list[Slot]:
    """The slots of ``access``: none where it covers nothing."""
    if access.axes is None or not leaves or any(len(access.axes) > len(leaf.grid.shape) for leaf in leaves):
        whole = region_in(leaves[0].grid, ()) if len(leaves) == 1 else None
        region = whole or Region(array.pointer, array.pointer + array.nbytes, False)
        return [Slot(access.kind, region, access.reason or _UNKNOWN_LAYOUT, access.name, access.span)]
    found = [region_in(grid, axes) for grid, axes in _parts(access.axes, access.components, leaves)]
    return [
        Slot(access.kind, region, access.reason, access.name, access.span) for region in found if region is not None
    ]


_UNKNOWN_LAYOUT: Final = "how its elements lie in memory is not known"


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
