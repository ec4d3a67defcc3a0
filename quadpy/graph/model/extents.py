"""The memory that nodes copy and fill, and the values that they fill it with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.errors import ArgumentError, DeviceError
from quadpy.graph.model.arguments import integer_of
from quadpy.graph.model.nodes import AllocNode
from quadpy.graph.model.order import MemoryRange
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.foreign_device import describe_device_array
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.device.device import Device
from quadpy.runtime.elements.numpy_types import SCALAR_OF, admit, encode
from quadpy.runtime.launch.recorded_copies import repeating_pattern
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage

_FILL_SIZES: Final = (1, 2, 4)
"""The sizes of an element that a fill can have, in bytes."""

_ADDRESS_END: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Extent:
    """``nbytes`` bytes at ``address``; ``pageable`` host memory needs a buffer that the device can access."""

    address: int
    nbytes: int
    pageable: bool
    keep: tuple[object, ...] = field(default=(), repr=False)
    writable: bool = True

    @property
    def range(self) -> MemoryRange:
        """The bytes as a pair (address, bytes)."""
        return self.address, self.nbytes


def overlap(left: MemoryRange, right: MemoryRange) -> bool:
    """Whether the two have a byte in common."""
    return left[0] < right[0] + right[1] and right[0] < left[0] + left[1]


def written_extent_of(memory: Any, device: Device, nbytes: int | None = None) -> Extent:
    """Like ``extent_of`` for memory that a node writes; ArgumentError also if it is read-only."""
    found = extent_of(memory, device, nbytes)
    if not found.writable:
        raise ArgumentError(
            f"{memory_text(memory)} is read-only, but the node writes it",
            hint="pass a copy, or an array whose flags.writeable is True",
        )
    return found


def extent_of(memory: Any, device: Device, nbytes: int | None = None) -> Extent:
    """The memory of an array or alloc node, or its first ``nbytes`` bytes; or ``nbytes`` bytes at an address.

    Raises:
        ArgumentError: not memory, not contiguous, or fewer bytes than ``nbytes``.
        DeviceError: the memory is on another device.
    """
    found = _extent(memory, device, nbytes)
    if nbytes is not None and nbytes > found.nbytes:
        raise ArgumentError(
            f"{memory_text(memory)} has {found.nbytes} bytes, fewer than {nbytes}",
            hint=f"pass nbytes={found.nbytes} or fewer",
        )
    return found if nbytes is None else replace(found, nbytes=nbytes)


def _extent(memory: Any, device: Device, nbytes: int | None) -> Extent:
    host = "host" in device.driver.features
    if isinstance(memory, AllocNode):
        return Extent(memory.allocation.pointer, memory.allocation.nbytes, pageable=False, keep=memory.keep)
    if (address := integer_of(memory)) is not None:
        if address <= 0:
            raise ArgumentError(
                f"{address} is not an address of memory", hint="pass an array, or its address with nbytes="
            )
        if nbytes is None:
            raise ArgumentError(f"{address:#x} is an address without a size", hint="pass nbytes=")
        if address + nbytes > _ADDRESS_END:
            raise ArgumentError(f"{nbytes} bytes at {address:#x} exceed the address space", hint="pass fewer nbytes=")
        return Extent(address, nbytes, pageable=False)
    if isinstance(memory, (np.generic, bool)):
        raise ArgumentError(f"{memory!r} is a number, not memory", hint="pass an array, or an address with nbytes=")
    if isinstance(memory, DeviceBuffer):
        return Extent(memory.pointer, memory.nbytes, pageable=False, keep=(memory,))
    if isinstance(memory, DenseArray):
        return _of_array(memory, device)
    if not host and hasattr(memory, "__cuda_array_interface__"):
        there = describe_device_array(memory, device)
        _require_contiguous(there.type_key[0] != "strided", memory)
        return Extent(there.pointer, there.nbytes, pageable=False, keep=(there,), writable=there.writable)
    view = describe_host_array(memory)
    _require_contiguous(view.type_key[0] != "strided", memory)
    return Extent(view.pointer, view.nbytes, pageable=not host, keep=(view.owner,), writable=view.writable)


def _of_array(array: DenseArray, device: Device) -> Extent:
    storage = array._memory()  # noqa: SLF001 - quadpy's own
    host = "host" in device.driver.features
    if isinstance(storage, DeviceStorage):
        if storage.device is not device:
            raise DeviceError(f"{array!r} is on {storage.device}, and the graph on {device}", hint="copy it there")
        _require_contiguous(storage.layout.dense, array)
        return Extent(storage.pointer, storage.layout.reach, pageable=False, keep=(array, storage.region))
    assert isinstance(storage, HostStorage)
    _require_contiguous(storage.view.flags.c_contiguous, array)
    return Extent(storage.pointer, storage.view.nbytes, pageable=not host, keep=(array,))


def memory_text(memory: object) -> str:
    """How messages name ``memory``: printing the elements of an array would hide the rest."""
    return f"an array of shape {memory.shape}" if isinstance(memory, np.ndarray) else repr(memory)


def in_order(array: DenseArray) -> bool:
    """Whether its numbers are in C order without gaps, as those of the copy will be."""
    # An ndarray keeps its order in a copy, and ``strides`` of its slices are NumPy's, in bytes.
    strides = getattr(array, "strides", None) if getattr(type(array), "__quadpy_field__", False) else None
    if strides is None:
        return True
    extents = (*array.shape, math.prod(array.element_shape))
    dense = tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))
    return not getattr(array, "blocks", ()) and strides == dense


def _require_contiguous(is_contiguous: bool, memory: object) -> None:
    if not is_contiguous:
        raise ArgumentError(f"{memory_text(memory)} is not contiguous", hint="copy it with a kernel")


def fill_pattern(memory: Any, value: object, element: int | None) -> tuple[int, int]:
    """The bit pattern of ``value`` as an element of ``memory``, and its size in bytes: 1, 2 or 4.

    Raises:
        ArgumentError: the value does not fit, or it has a pattern of 8 bytes, which a fill cannot write.
    """
    scalar = None if element is not None else _scalar_of(memory)
    integer = integer_of(int(value) if isinstance(value, bool) else value)
    if scalar is not None:
        values = admit(value, scalar)
        if values.ndim:
            raise ArgumentError("a fill node takes a single number", hint="fill vectors with a kernel")
        if scalar.is_integral and np.asarray(value).dtype.kind == "f":
            raise ArgumentError(f"{value!r} would be truncated to {scalar}", hint="pass an int")
        bits = encode(values, scalar).tobytes()
    elif integer is not None:
        size = 1 if element is None else integer_of(element)
        if size is None or size not in _FILL_SIZES or not -(1 << 8 * size - 1) <= integer < 1 << 8 * size:
            raise ArgumentError(
                f"{integer} does not fit an element of {1 if element is None else element!r} bytes",
                hint="element= is 1, 2 or 4",
            )
        bits = (integer & (1 << 8 * size) - 1).to_bytes(size, "little")
    else:
        raise ArgumentError(f"a fill of {memory_text(memory)} takes an int, not {value!r}",
                            hint="pass element= and the bits of the value")  # fmt: skip
    if (pattern := repeating_pattern(bits)) is not None:
        return int.from_bytes(pattern, "little"), len(pattern)
    raise ArgumentError(
        f"{value!r} has a pattern of {len(bits)} bytes, and a fill repeats at most 4", hint="use a kernel"
    )


def _scalar_of(memory: Any) -> Scalar | None:
    """The type of an array's elements; None for other memory."""
    dtype = getattr(memory, "dtype", None)
    if isinstance(memory, DenseArray):
        return memory.dtype
    return SCALAR_OF.get(dtype) if isinstance(dtype, np.dtype) else None
