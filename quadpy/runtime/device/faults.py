"""Records that failed checks of kernels leave, and the exceptions made of them.

Only kernels compiled with ``debug=True`` have a record: one for each GPU, one for the CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Final

from quadpy.core.faults import CLAIMED, SITE, WORDS, Site
from quadpy.errors import KernelFault
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, Driver, StreamHandle
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.device_memory import DeviceMemory
from quadpy.runtime.memory.staging import Staging
from quadpy.runtime.streams.timeline import Timelines

_BYTES: Final = 8 * WORDS
_Record: Final = ctypes.c_uint64 * WORDS

_sites: Final[list[Site]] = []
_lock: Final = new_lock()


def number_of_first(sites: Sequence[Site]) -> int:
    """Numbers ``sites`` for this process; the number of the first, from which the others go on."""
    with _lock:
        _sites.extend(sites)
        return len(_sites) - len(sites)


def _fault_of(words: Sequence[int]) -> KernelFault:
    return _sites[words[SITE]].fault(words)


_host: Final = _Record()
_host_lock: Final = new_lock()


def host_record() -> int:
    """The address of the CPU's record."""
    return ctypes.addressof(_host)


class CheckedEntry:
    """The entry of a kernel on the CPU that raises the fault that it left; one thread at a time runs such a kernel."""

    __slots__ = ("_entry",)

    def __init__(self, entry: Callable[..., int]) -> None:
        self._entry = entry

    def __call__(self, *arguments: object) -> int:
        with _host_lock:
            try:
                task = self._entry(*arguments)
            finally:
                words = list(_host) if _host[CLAIMED] else None
                if words is not None:
                    ctypes.memset(_host, 0, _BYTES)
        if words is not None:
            raise _fault_of(words)
        return task


class Faults:
    """The record of a GPU, which is allocated for the first kernel with checks."""

    def __init__(self, driver: Driver, memory: DeviceMemory, timelines: Timelines, staging: Staging) -> None:
        self._driver, self._memory, self._timelines, self._staging = driver, memory, timelines, staging
        self._lock = new_lock()
        self._buffer: DeviceBuffer | None = None
        self.armed = False
        """Whether there may be a record, which ``raise_first`` reads."""

    def record(self) -> int:
        """The address of the record."""
        with self._lock:
            if self._buffer is None:
                buffer = self._memory.buffer(_BYTES, self._timelines.default)
                self._driver.fill(buffer.pointer, 0, _BYTES, DEFAULT_STREAM)
                self._driver.stream_synchronize(DEFAULT_STREAM)  # other streams are not ordered after it
                self.armed = True
                self._buffer = buffer
            return self._buffer.pointer

    def raise_first(self, stream: StreamHandle = DEFAULT_STREAM) -> None:
        """Raise the fault that a kernel left, if there is one; ``stream`` was just synchronized."""
        if self._buffer is not None:
            self._raise_from(self._buffer, stream)

    def _raise_from(self, buffer: DeviceBuffer, stream: StreamHandle) -> None:
        with self._lock:
            if not self._words(buffer, stream)[CLAIMED]:
                return
            self._timelines.synchronize()  # the kernel may still be running, on another stream
            words = self._words(buffer, stream)
            self._driver.fill(buffer.pointer, 0, _BYTES, stream)
            self._driver.stream_synchronize(stream)
        if words[CLAIMED]:
            raise _fault_of(words)

    def _words(self, buffer: DeviceBuffer, stream: StreamHandle) -> Sequence[int]:
        return list(_Record.from_buffer_copy(self._staging.fetch(buffer.pointer, _BYTES, stream)))
