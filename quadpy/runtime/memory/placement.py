"""Where new arrays live.  Owns: Memory, allocate, allocate_lasting, storage_at, storage_in.

Imports: the configuration, devices, both storages.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.device.devices import current_device, device_of
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.memory.device_storage import DeviceStorage, Region, lasting_zero_bytes, zero_bytes
from quadpy.runtime.memory.host_memory import HOST, Buffer
from quadpy.runtime.memory.host_storage import HostStorage, Storage, check_stream
from quadpy.runtime.memory.strided_layout import StridedLayout

__all__ = ["Memory", "allocate", "allocate_lasting", "storage_at", "storage_in"]

Memory: TypeAlias = Buffer | Region
"""Bytes for one array, or for several that share them."""


def allocate(nbytes: int, stream: object = None) -> Memory:
    """``nbytes`` zero bytes on the device that ``qp.init`` chose; ``stream`` is their home, the thread's for None.

    In a capture they belong to the graph, and are zero each time that it begins.

    Raises:
        OutOfDeviceMemory: they are not there.
        StreamError: ``stream`` is none of this device.
    """
    config = State.config
    if config.arch != "cpu":
        return zero_bytes(device_of(config), nbytes, stream)
    if stream is not None or CAPTURES.count:
        on = check_stream(stream)
        if (session := session_of(on)) is not None:
            buffer = session.host_memory(nbytes)
            if nbytes:
                session.record_fill(on, buffer.pointer, b"\0", nbytes, (buffer,))
            return buffer
    return HOST.allocate(nbytes)


def allocate_lasting(nbytes: int) -> Memory:
    """As ``allocate`` outside of any capture: for fields, whose numbers stay from one launch of a graph to the next."""
    if current_config().arch != "cpu":
        return lasting_zero_bytes(current_device(), nbytes)
    return HOST.allocate(nbytes)


def storage_in(
    memory: Memory, start: int, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Storage:
    """Numbers of ``dtype``, the first ``start`` bytes into ``memory``, with ``strides`` in bytes."""
    return storage_at(memory, StridedLayout(start, dtype, shape, strides))


def storage_at(memory: Memory, window: StridedLayout) -> Storage:
    """The numbers in the ``window`` of ``memory``."""
    if isinstance(memory, Region):
        return DeviceStorage(memory, window)
    start, dtype, shape, strides = window
    return HostStorage(np.ndarray(shape, dtype, memory.bytes, start, strides), memory.pointer + start)
