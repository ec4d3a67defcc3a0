"""Arrays that have gradients, their memory, and copies of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from quadpy.core.public import public
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, HasDerivatives
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.device_storage import DeviceStorage, Region, unset_buffer
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.streams.stream import Stream

Bytes: TypeAlias = tuple[int, int]
"""A range of addresses: the first, and the one after the last."""

ZERO = np.zeros(())


def bytes_of(array: ArrayMemory) -> Bytes:
    return array.pointer, array.pointer + array.nbytes


def overlap(one: Bytes, other: Bytes) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def storages_of(array: object) -> tuple[Storage, ...]:
    """The memory of an array of quadpy's, or of the fields that a kernel names; nothing for another library's array."""
    if isinstance(array, FieldMemory):
        return array.storages
    if isinstance(array, (NDArray, OrderedNDArray)):
        return (array._memory(),)  # noqa: SLF001 - only the storage has what is needed here
    leaves = getattr(array, "leaves", None)
    return () if leaves is None else tuple(leaf.storage for leaf in leaves())


def with_derivatives(kind: str) -> Iterator[Any]:
    """All fields and ndarrays with memory that have a derivative of this kind."""
    for each in DIFFERENTIATED:
        if getattr(each, f"has_{kind}")() and (not isinstance(each, HasDerivatives) or _is_placed(each)):
            yield each


def _is_placed(field: Any) -> bool:
    return all(leaf.placed for leaf in field.leaves())


def clear(array: object) -> None:
    """Set all numbers to 0."""
    for storage in storages_of(array):
        storage.write(..., ZERO)


def part_of(access: ObservedAccess) -> Bytes:
    """What the host accesses."""
    part = access.layout if access.where is None else access.layout.at(access.where)
    return part.start, part.start + part.reach


@public
def clear_all_gradients() -> None:
    """Set the gradients of all fields and ndarrays to 0."""
    for each in with_derivatives("grad"):
        clear(each.grad)


class Copy(NamedTuple):
    """What ``storage`` held: numbers on the host, or a storage on the same device."""

    storage: Storage
    held: Numbers | DeviceStorage

    def restore(self, stream: Stream | None) -> None:
        if isinstance(self.held, DeviceStorage):
            self.held.name = self.storage.name
            self.storage.copy_from(self.held, stream)
        else:
            self.storage.write(..., self.held, stream)


def copy_of(storage: Storage, stream: Stream | None) -> Copy:
    """A copy on ``stream``, after all work that wrote the memory."""
    if isinstance(storage, DeviceStorage) and storage.layout.dense and storage.layout.size:
        layout = storage.layout._replace(start=0)
        buffer = unset_buffer(storage.device, layout.reach, stream)
        twin = DeviceStorage(Region(storage.device, buffer.block, buffer), layout)
        twin.copy_from(storage, stream)
        return Copy(storage, twin)
    return Copy(storage, np.array(storage.read(..., stream)))
