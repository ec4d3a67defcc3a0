"""Memory that nodes copy and fill.  Owns: Extent, extent_of, fill_pattern.  Imports: errors, the runtime's arrays, NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from quadpy.errors import ArgumentError, DeviceError
from quadpy.graph.nodes import AllocNode
from quadpy.runtime.dense import DenseArray
from quadpy.runtime.device import Device
from quadpy.runtime.device_interop import describe_device_array
from quadpy.runtime.device_memory import DeviceBuffer
from quadpy.runtime.device_storage import DeviceStorage
from quadpy.runtime.host_storage import HostStorage
from quadpy.runtime.interop import describe_host_array
from quadpy.runtime.storage import STORAGE, admit, encode

__all__ = ["Extent", "extent_of", "fill_pattern"]

_FILLED_AT_ONCE: Final = (4, 2, 1)
"""Bytes of an element that a fill can have."""


@dataclass(frozen=True, slots=True)
class Extent:
    """``nbytes`` bytes at ``address``; ``pageable`` where the device does not copy from there by itself."""

    address: int
    nbytes: int
    pageable: bool
    keep: tuple[object, ...] = field(default=(), repr=False)


def extent_of(memory: Any, device: Device, nbytes: int | None = None) -> Extent:
    """All of an array's memory, of an alloc node's, or ``nbytes`` bytes at an address of ``device``.

    Raises:
        ArgumentError: there is no such memory, its numbers do not lie together, or it has fewer bytes.
        DeviceError: it is on another device.
    """
    found = _extent(memory, device, nbytes)
    if nbytes is not None and nbytes > found.nbytes:
        raise ArgumentError(f"{nbytes} bytes of {memory!r}, which has {found.nbytes}")
    return found if nbytes is None else Extent(found.address, nbytes, found.pageable, found.keep)


def _extent(memory: Any, device: Device, nbytes: int | None) -> Extent:
    host = "host" in device.driver.features
    if isinstance(memory, AllocNode):
        return Extent(memory.allocation.pointer, memory.allocation.nbytes, pageable=False, keep=memory.keep)
    if isinstance(memory, int) and not isinstance(memory, bool):
        if nbytes is None or nbytes < 0 or memory <= 0:
            raise ArgumentError(f"{memory:#x} is an address: say how many bytes", hint="pass nbytes=")
        return Extent(memory, nbytes, pageable=False)
    if isinstance(memory, DeviceBuffer):
        return Extent(memory.pointer, memory.nbytes, pageable=False, keep=(memory,))
    if isinstance(memory, DenseArray):
        return _of_array(memory, device)
    if not host and hasattr(memory, "__cuda_array_interface__"):
        there = describe_device_array(memory, device)
        _require_together(there.type_key[0] != "strided", memory)
        return Extent(there.pointer, there.nbytes, pageable=False, keep=(there,))
    view = describe_host_array(memory)
    _require_together(view.type_key[0] != "strided", memory)
    return Extent(view.pointer, view.nbytes, pageable=not host, keep=(view.owner,))


def _of_array(array: DenseArray, device: Device) -> Extent:
    storage = array._memory()  # noqa: SLF001 - quadpy's own
    host = "host" in device.driver.features
    if isinstance(storage, DeviceStorage):
        if storage.device is not device:
            raise DeviceError(f"{array!r} is on {storage.device}, and the graph on {device}", hint="copy it there")
        _require_together(storage.window.dense, array)
        return Extent(storage.pointer, storage.window.reach, pageable=False, keep=(array, storage.region))
    assert isinstance(storage, HostStorage)
    _require_together(storage.view.flags.c_contiguous, array)
    return Extent(storage.pointer, storage.view.nbytes, pageable=not host, keep=(array,))


def _require_together(together: bool, memory: object) -> None:
    if not together:
        raise ArgumentError(f"the numbers of {memory!r} do not lie together", hint="copy them with a kernel")


def fill_pattern(memory: Any, value: object, element: int | None) -> tuple[int, int]:
    """The bits of ``value`` as an element of ``memory``, and the bytes that repeat: 1, 2 or 4.

    Raises:
        ArgumentError: the value does not fit, or has a pattern of 8 bytes that no fill can write.
    """
    if isinstance(memory, DenseArray) and element is None:
        values = admit(value, memory.dtype)
        if values.ndim:
            raise ArgumentError("a fill node takes one number", hint="fill vectors with a kernel")
        bits = encode(values, memory.dtype).tobytes()
    elif isinstance(value, int):
        size = element or 1
        if size not in _FILLED_AT_ONCE or not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise ArgumentError(f"{value} is no element of {size} bytes", hint="element= is 1, 2 or 4")
        bits = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    else:
        dtype = getattr(memory, "dtype", None)
        if not isinstance(dtype, np.dtype) or dtype not in STORAGE.values():
            raise ArgumentError(f"a fill of {memory!r} takes an int", hint="pass element= and the bits of the value")
        bits = np.asarray(value, dtype).tobytes()
    for size in _FILLED_AT_ONCE[::-1]:
        if bits == bits[:size] * (len(bits) // size):
            return int.from_bytes(bits[:size], "little"), size
    raise ArgumentError(f"{value!r} has a pattern of {len(bits)} bytes: a fill repeats at most 4", hint="use a kernel")
