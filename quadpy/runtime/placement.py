"""Where new arrays live.  Owns: Memory, allocate, storage_in.  Imports: the configuration, devices, both storages."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from quadpy.runtime.current import current_config
from quadpy.runtime.device_storage import DeviceStorage, Region, zero_bytes
from quadpy.runtime.devices import current_device
from quadpy.runtime.host_storage import HostStorage, Storage, check_stream
from quadpy.runtime.memory import HOST, Buffer
from quadpy.runtime.window import Window

__all__ = ["Memory", "allocate", "storage_in"]

Memory: TypeAlias = Buffer | Region
"""Bytes for one array, or for several that share them."""


def allocate(nbytes: int, stream: object = None) -> Memory:
    """``nbytes`` zero bytes on the device that ``qp.init`` chose; ``stream`` is their home, the thread's for None.

    Raises:
        OutOfDeviceMemory: they are not there.
        StreamError: ``stream`` is none of this device.
    """
    if current_config().arch != "cpu":
        return zero_bytes(current_device(), nbytes, stream)
    if stream is not None:
        check_stream(stream)
    return HOST.allocate(nbytes)


def storage_in(
    memory: Memory, start: int, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Storage:
    """Numbers of ``dtype``, the first ``start`` bytes into ``memory``, with ``strides`` in bytes."""
    if isinstance(memory, Region):
        return DeviceStorage(memory, Window(start, dtype, shape, strides))
    return HostStorage(np.ndarray(shape, dtype, memory.bytes, start, strides), memory.pointer + start)
