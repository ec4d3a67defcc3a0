"""Memory that nodes copy and fill.  Owns: Extent, extent_of, written_extent_of, count_of, fill_pattern.

Imports: errors, dtypes, the runtime's arrays, NumPy.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.errors import ArgumentError, DeviceError
from quadpy.graph.model.nodes import AllocNode
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.foreign_device import describe_device_array
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.device.device import Device
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage
from quadpy.runtime.memory.numpy_storage import SCALAR_OF, admit, encode

__all__ = ["Extent", "count_of", "extent_of", "fill_pattern", "written_extent_of"]

_FILLED_AT_ONCE: Final = (4, 2, 1)
"""Bytes of an element that a fill can have."""

_END: Final = 1 << 64
"""Where addresses end."""


@dataclass(frozen=True, slots=True)
class Extent:
    """``nbytes`` bytes at ``address``; ``pageable`` where the device does not copy from there by itself.

    What is not ``writable`` may be read alone.
    """

    address: int
    nbytes: int
    pageable: bool
    keep: tuple[object, ...] = field(default=(), repr=False)
    writable: bool = True


def count_of(value: object, what: str, least: int = 0) -> int:
    """``value`` as an int of ``least`` at least; ArgumentError, which says ``what`` it is of, where it is none."""
    hint = f"pass an int of {least} or more"
    if (count := _integer(value)) is None:
        raise ArgumentError(f"{what} is {value!r}, which is no count", hint=hint)
    if count < least:
        raise ArgumentError(f"{what} is {count}, which is {'negative' if count < 0 else 'too few'}", hint=hint)
    return count


def _integer(value: object) -> int | None:
    """``value``, where it is an integer of Python's or of NumPy's."""
    return operator.index(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def written_extent_of(memory: Any, device: Device, nbytes: int | None = None) -> Extent:
    """As ``extent_of``, of what a node writes: ArgumentError, too, where the memory is read-only."""
    found = extent_of(memory, device, nbytes)
    if not found.writable:
        raise ArgumentError(
            f"{_called(memory)} is read-only, and the node writes it",
            hint="pass a copy, or an array whose flags.writeable is True",
        )
    return found


def extent_of(memory: Any, device: Device, nbytes: int | None = None) -> Extent:
    """All of an array's memory, of an alloc node's, or ``nbytes`` bytes at an address of ``device``.

    Raises:
        ArgumentError: there is no such memory, its numbers do not lie together, or it has fewer bytes.
        DeviceError: it is on another device.
    """
    found = _extent(memory, device, nbytes)
    if nbytes is not None and nbytes > found.nbytes:
        raise ArgumentError(
            f"{nbytes} bytes of {_called(memory)}, which has {found.nbytes}",
            hint=f"pass nbytes={found.nbytes} or fewer",
        )
    return found if nbytes is None else replace(found, nbytes=nbytes)


def _extent(memory: Any, device: Device, nbytes: int | None) -> Extent:
    host = "host" in device.driver.features
    if isinstance(memory, AllocNode):
        return Extent(memory.allocation.pointer, memory.allocation.nbytes, pageable=False, keep=memory.keep)
    if (address := _integer(memory)) is not None:
        if nbytes is None or address <= 0:
            raise ArgumentError(f"{address:#x} is an address: say how many bytes", hint="pass nbytes=")
        if address + nbytes > _END:
            raise ArgumentError(
                f"{nbytes} bytes at {address:#x} reach over the last address", hint="pass fewer nbytes="
            )
        return Extent(address, nbytes, pageable=False)
    if isinstance(memory, (np.generic, bool)):
        raise ArgumentError(f"{memory!r} is a number, and no memory", hint="pass an array, or an address with nbytes=")
    if isinstance(memory, DeviceBuffer):
        return Extent(memory.pointer, memory.nbytes, pageable=False, keep=(memory,))
    if isinstance(memory, DenseArray):
        return _of_array(memory, device)
    if not host and hasattr(memory, "__cuda_array_interface__"):
        there = describe_device_array(memory, device)
        _require_together(there.type_key[0] != "strided", memory)
        return Extent(there.pointer, there.nbytes, pageable=False, keep=(there,), writable=there.writable)
    view = describe_host_array(memory)
    _require_together(view.type_key[0] != "strided", memory)
    return Extent(view.pointer, view.nbytes, pageable=not host, keep=(view.owner,), writable=view.writable)


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


def _called(memory: object) -> str:
    """What a message calls it: the numbers of an array would hide the rest."""
    return f"an array of shape {memory.shape}" if isinstance(memory, np.ndarray) else repr(memory)


def _require_together(together: bool, memory: object) -> None:
    if not together:
        raise ArgumentError(f"the numbers of {_called(memory)} do not lie together", hint="copy them with a kernel")


def fill_pattern(memory: Any, value: object, element: int | None) -> tuple[int, int]:
    """The bits of ``value`` as an element of ``memory``, and the bytes that repeat: 1, 2 or 4.

    Raises:
        ArgumentError: the value does not fit, or has a pattern of 8 bytes that no fill can write.
    """
    scalar = None if element is not None else _scalar_of(memory)
    whole = _integer(int(value) if isinstance(value, bool) else value)
    if scalar is not None:
        values = admit(value, scalar)
        if values.ndim:
            raise ArgumentError("a fill node takes one number", hint="fill vectors with a kernel")
        if scalar.is_integral and np.asarray(value).dtype.kind == "f":
            raise ArgumentError(f"{value!r} would be cut to {scalar}", hint="pass an int")
        bits = encode(values, scalar).tobytes()
    elif whole is not None:
        size = 1 if element is None else _integer(element)
        if size is None or size not in _FILLED_AT_ONCE or not -(1 << 8 * size - 1) <= whole < 1 << 8 * size:
            raise ArgumentError(
                f"{whole} is no element of {1 if element is None else element!r} bytes", hint="element= is 1, 2 or 4"
            )
        bits = (whole & (1 << 8 * size) - 1).to_bytes(size, "little")
    else:
        raise ArgumentError(f"a fill of {_called(memory)} takes an int, and not {value!r}",
                            hint="pass element= and the bits of the value")  # fmt: skip
    for size in _FILLED_AT_ONCE[::-1]:
        if bits == bits[:size] * (len(bits) // size):
            return int.from_bytes(bits[:size], "little"), size
    raise ArgumentError(f"{value!r} has a pattern of {len(bits)} bytes: a fill repeats at most 4", hint="use a kernel")


def _scalar_of(memory: Any) -> Scalar | None:
    """The type of an array's numbers, where it says that."""
    dtype = getattr(memory, "dtype", None)
    if isinstance(memory, DenseArray):
        return memory.dtype
    return SCALAR_OF.get(dtype) if isinstance(dtype, np.dtype) else None
