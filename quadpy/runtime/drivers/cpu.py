"""The driver of the CPU, whose handles are all 0.

Work runs at once, in call order, so nothing ever has to wait: a program that is correct with streams is also correct
without them.  The layers above check streams and events in the same way for every driver.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence
from typing import Final, NoReturn

from quadpy.errors import DriverError
from quadpy.runtime.drivers.driver import (
    DEFAULT_STREAM,
    Address,
    AllocatorName,
    DeviceInfo,
    EventHandle,
    Feature,
    NativeLaunch,
    PinnedPointer,
    PlainPointer,
    PoolPointer,
    StreamHandle,
)
from quadpy.runtime.memory.host_memory import HOST, Buffer

_EVENT: Final = EventHandle(0)


class CpuDriver:
    """A ``Driver`` whose memory is that of the process, and whose only stream is the program's order."""

    def __init__(self) -> None:
        self.name, self.ordinal = "cpu", 0
        self.default_allocator: AllocatorName = "pool"
        self.features: frozenset[Feature] = frozenset(("host", "pool", "stream-device"))
        self.info = DeviceInfo(platform.machine() or "CPU", platform.machine(), _memory("SC_PHYS_PAGES"))
        self._blocks: dict[int, Buffer] = {}

    # streams and events

    def stream_create(self, priority: int) -> StreamHandle:
        return DEFAULT_STREAM

    def unit_groups(self) -> Sequence[range]:
        return ()

    def stream_create_on(self, priority: int, groups: Sequence[int]) -> StreamHandle:
        return DEFAULT_STREAM

    def stream_destroy(self, stream: StreamHandle) -> None:
        _require_zero(stream)

    def stream_synchronize(self, stream: StreamHandle) -> None:
        _require_zero(stream)

    def stream_query(self, stream: StreamHandle) -> bool:
        return _require_zero(stream)

    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        _require_zero(stream, event)

    def stream_device(self, stream: StreamHandle) -> int:
        _require_zero(stream)
        return self.ordinal

    def synchronize(self) -> None:
        """Does nothing: all submitted work has run."""

    def event_create(self, *, timing: bool) -> EventHandle:
        return _EVENT

    def event_destroy(self, event: EventHandle) -> None:
        _require_zero(event)

    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        _require_zero(event, stream)

    def event_synchronize(self, event: EventHandle) -> None:
        _require_zero(event)

    def event_query(self, event: EventHandle) -> bool:
        return _require_zero(event)

    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        """0: the driver has no ``timing``; Event measures the time itself."""
        _require_zero(start, end)
        return 0.0

    # memory

    def _allocate(self, nbytes: int) -> int:
        if not nbytes:
            return 0
        block = HOST.allocate(nbytes)
        self._blocks[block.pointer] = block
        return block.pointer

    def _free(self, pointer: int) -> None:
        block = self._blocks.pop(pointer, None)  # of two threads one gets it
        if pointer and block is None:
            raise DriverError(f"{pointer:#x} was not allocated here", hint="was it freed before?")

    def alloc(self, nbytes: int) -> PlainPointer:
        return PlainPointer(self._allocate(nbytes))

    def free(self, pointer: PlainPointer) -> None:
        self._free(pointer)

    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer:
        _require_zero(stream)
        return PoolPointer(self._allocate(nbytes))

    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        _require_zero(stream)
        self._free(pointer)

    def trim_pool(self) -> None:
        """Does nothing: no memory is kept."""

    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        return PinnedPointer(self._allocate(nbytes))

    def free_pinned(self, pointer: PinnedPointer) -> None:
        self._free(pointer)

    def memory_info(self) -> tuple[int, int]:
        return _memory("SC_AVPHYS_PAGES"), self.info.total_memory

    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        _require_zero(stream)
        ctypes.memmove(target, source, nbytes)

    copy_out = copy_within = copy_in

    def fill(self, target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
        _require_zero(stream)
        ctypes.memset(target, value, nbytes)

    # code: CPU kernels are functions of the process

    def _refuse_code(self, *_: object) -> NoReturn:
        raise DriverError("the CPU cannot load code objects", hint="a kernel compiled for 'cpu' runs there")

    module_load = module_function = module_unload = launch_arguments = cooperative_arguments = _refuse_code
    launch = launch_cooperative = max_blocks = _refuse_code

    def native_launch(self) -> NativeLaunch | None:
        return None


def _require_zero(*handles: int) -> bool:
    for handle in handles:
        if handle:
            raise DriverError(f"{handle:#x} is not a stream or event of the CPU", hint="every handle on the CPU is 0")
    return True


def _memory(pages: str) -> int:
    """The bytes in the pages that the system variable counts; 0 if it is unknown."""
    try:
        return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
