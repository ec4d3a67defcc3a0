"""Pinned memory through which numbers of a GPU go to an engine of the host, kept for the next exchange."""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import Any, Final

import numpy as np

from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.streams.stream import Stream

_LEAST: Final = 4096
_kept: Final[weakref.WeakKeyDictionary[Device, list[_Memory]]] = weakref.WeakKeyDictionary()


class _Memory:
    """Pinned memory of ``nbytes`` bytes, and the event after the last copy that uses it."""

    def __init__(self, device: Device, nbytes: int) -> None:
        driver, reaper = device.driver, device.reaper
        self._event = reaper.own(driver.event_destroy, functools.partial(driver.event_create, timing=False))
        self._memory = reaper.own(driver.free_pinned, driver.alloc_pinned, nbytes)
        self.nbytes, self.event, self.pointer = nbytes, self._event.handle, self._memory.handle
        self.pending = False


class PinnedBuffer:
    """Pinned memory for one message; when this object dies, another message may have it after the last copy."""

    __slots__ = ("__weakref__", "_device", "_memory")

    def __init__(self, device: Device, memory: _Memory) -> None:
        self._device, self._memory = device, memory
        weakref.finalize(self, _kept.setdefault(device, []).append, memory)

    def copy_from(self, address: int, nbytes: int, stream: Stream) -> None:
        """Copy from the device, after the work so far on ``stream``."""
        stream._call(functools.partial(self._copy, self._device.driver.copy_out), self._memory.pointer, address, nbytes)  # noqa: SLF001 - keeps the stream alive for the call

    def copy_to(self, address: int, nbytes: int, stream: Stream) -> None:
        """Copy to the device; later work on ``stream`` comes after it."""
        stream._call(functools.partial(self._copy, self._device.driver.copy_in), address, self._memory.pointer, nbytes)  # noqa: SLF001 - as above

    def _copy(self, copy: Any, target: int, source: int, nbytes: int, stream: StreamHandle) -> None:
        self._memory.pending = True
        if nbytes:
            copy(target, source, nbytes, stream)
        self._device.driver.event_record(self._memory.event, stream)

    def wait(self) -> None:
        """Wait on the host for the last copy, and raise what checks of kernels before it found."""
        _settle(self._device, self._memory)
        self._device.faults.raise_first()

    def numbers(self, dtype: np.dtype[Any], count: int) -> Numbers:
        """The first ``count`` numbers of the memory, which live as long as this object."""
        raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(self._memory.pointer)
        numbers: Numbers = np.frombuffer(memoryview(raw), dtype)
        return numbers


def pinned_buffer(device: Device, nbytes: int) -> PinnedBuffer:
    """Pinned memory of at least ``nbytes`` bytes that no copy uses any more."""
    kept = _kept.setdefault(device, [])
    for memory in tuple(kept):
        if nbytes <= memory.nbytes <= max(_LEAST, 2 * nbytes):
            try:
                kept.remove(memory)
            except ValueError:  # another thread took it
                continue
            _settle(device, memory)
            return PinnedBuffer(device, memory)
    return PinnedBuffer(device, _Memory(device, max(_LEAST, nbytes)))


def _settle(device: Device, memory: _Memory) -> None:
    if memory.pending:
        device.driver.event_synchronize(memory.event)
        memory.pending = False
