"""The driver of a GPU, over a vendor's name table.

Nothing here depends on the vendor: the differences between HIP and CUDA are in the table.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Sequence
from typing import Final

from quadpy.errors import DeviceError, NoDeviceError
from quadpy.runtime.drivers.direct_calls import DirectCalls
from quadpy.runtime.drivers.driver import (
    Address,
    AllocatorName,
    EventHandle,
    PinnedPointer,
    PlainPointer,
    PoolPointer,
    StreamHandle,
)
from quadpy.runtime.drivers.gpu_api import GpuApi
from quadpy.runtime.drivers.gpu_graphs import GpuGraphs
from quadpy.runtime.drivers.gpu_launches import GpuLaunches
from quadpy.runtime.drivers.graph_driver import GraphDriver
from quadpy.runtime.drivers.vendor_calls import Call

_NON_BLOCKING: Final = 1  # a stream without implicit order against the null stream
_DISABLE_TIMING: Final = 2


class GpuDriver(GpuLaunches):
    """A ``Driver`` for device ``ordinal`` of ``api``; NoDeviceError if there is no such device."""

    def __init__(self, api: GpuApi, ordinal: int = 0) -> None:
        super().__init__(api, ordinal)
        self.info, self.features = api.describe(ordinal)
        self.default_allocator: AllocatorName = api.default_allocator if "pool" in self.features else "cache"
        try:  # the first calls that the device itself must answer
            least, greatest = self.call(api.priority_range)
            if "pool" in self.features:
                self.call(api.keep_pool, ordinal)
        except DeviceError as error:
            raise NoDeviceError(f"{self.info.name} cannot be used: {error.message}", hint=error.hint) from error
        self._priorities = range(min(least, greatest), max(least, greatest) + 1)
        self._direct = DirectCalls(api, ordinal, ctypes.addressof(self._lost), self.call, self._done)

    @functools.cached_property
    def graphs(self) -> GraphDriver:
        """Graphs on this device."""
        return GpuGraphs(self, self._api.graphs())

    # streams

    def stream_create(self, priority: int) -> StreamHandle:
        return StreamHandle(int(self.call(self._api.stream_create, _NON_BLOCKING, self._clamped(priority))))

    @functools.cached_property
    def _groups(self) -> tuple[range, ...]:
        ends = list(itertools.accumulate(self.call(self._api.unit_groups, self.ordinal), initial=0))
        return tuple(itertools.starmap(range, itertools.pairwise(ends)))

    def unit_groups(self) -> Sequence[range]:
        return self._groups

    def stream_create_on(self, priority: int, groups: Sequence[int]) -> StreamHandle:
        call, units = self._api.stream_create_on, [self.unit_groups()[number] for number in groups]
        return StreamHandle(int(self.call(call, self.ordinal, _NON_BLOCKING, self._clamped(priority), groups, units)))

    def _clamped(self, priority: int) -> int:
        return min(max(priority, self._priorities[0]), self._priorities[-1])

    def stream_destroy(self, stream: StreamHandle) -> None:
        self.call(self._api.stream_destroy, stream)

    def stream_synchronize(self, stream: StreamHandle) -> None:
        if status := self._direct.stream_synchronize(stream):
            self._again_by_binding(status, self._api.stream_synchronize, stream)

    def stream_query(self, stream: StreamHandle) -> bool:
        if not (status := self._direct.stream_query(stream)):
            return True
        return self._not_ready(status, self._api.stream_query, stream)

    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        if status := self._direct.stream_wait(stream, event, 0):
            self._again_by_binding(status, self._api.stream_wait, stream, event, 0)

    def stream_device(self, stream: StreamHandle) -> int:
        return int(self.call(self._api.stream_device, stream))

    def synchronize(self) -> None:
        self.call(self._api.synchronize)

    # events

    def event_create(self, *, timing: bool) -> EventHandle:
        return EventHandle(int(self.call(self._api.event_create, 0 if timing else _DISABLE_TIMING)))

    def event_destroy(self, event: EventHandle) -> None:
        self.call(self._api.event_destroy, event)

    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        if status := self._direct.event_record(event, stream):
            self._again_by_binding(status, self._api.event_record, event, stream)

    def event_synchronize(self, event: EventHandle) -> None:
        if status := self._direct.event_synchronize(event):
            self._again_by_binding(status, self._api.event_synchronize, event)

    def event_query(self, event: EventHandle) -> bool:
        if not (status := self._direct.event_query(event)):
            return True
        return self._not_ready(status, self._api.event_query, event)

    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        return float(self.call(self._api.event_elapsed, start, end))

    # memory: a size of 0 never reaches the driver, which would refuse it

    def alloc(self, nbytes: int) -> PlainPointer:
        return PlainPointer(int(self.call(self._api.alloc, nbytes)) if nbytes else 0)

    def free(self, pointer: PlainPointer) -> None:
        if pointer:
            self.call(self._api.free, pointer)

    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer:
        if not nbytes:
            return PoolPointer(0)
        if (found := self._direct.alloc_async(nbytes, stream)) > 0:
            return PoolPointer(found)
        return PoolPointer(int(self._again_by_binding(-found, self._api.alloc_async, nbytes, stream)))

    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        if not pointer:
            return
        if status := self._direct.free_async(pointer, stream):
            self._again_by_binding(status, self._api.free_async, pointer, stream)

    def trim_pool(self) -> None:
        self.call(self._api.trim_pool, self.ordinal)

    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        return PinnedPointer(int(self.call(self._api.alloc_pinned, nbytes, 0)) if nbytes else 0)

    def free_pinned(self, pointer: PinnedPointer) -> None:
        if pointer:
            self.call(self._api.free_pinned, pointer)

    def memory_info(self) -> tuple[int, int]:
        free, total = self.call(self._api.memory_info)
        return free, total

    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if status := self._direct.copy_in(target, source, nbytes, stream):
            self._again_by_binding(status, self._api.copy_in, target, source, nbytes, stream)

    def copy_out(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if status := self._direct.copy_out(target, source, nbytes, stream):
            self._again_by_binding(status, self._api.copy_out, target, source, nbytes, stream)

    def copy_within(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if nbytes:
            self.call(self._api.copy_within, target, source, nbytes, stream)

    def fill(self, target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if status := self._direct.fill(target, value, nbytes, stream):
            self._again_by_binding(status, self._api.fill, target, value, nbytes, stream)

    def _not_ready(self, number: int, call: Call, handle: int) -> bool:
        """The result of a query whose status ``number`` is not success."""
        if number == self._direct.not_ready:
            return False
        self._refuse(number, call)
        return self._done(call, handle)
