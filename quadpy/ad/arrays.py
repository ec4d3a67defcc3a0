"""Arrays that have gradients, their memory, and copies of it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from quadpy.core.light import dataclass
from quadpy.core.public import public
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, HasDerivatives
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.launch.recorded_copies import CopiedArray
from quadpy.runtime.memory.device_storage import DeviceStorage, Region, unset_buffer
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage, check_stream
from quadpy.runtime.memory.placement import allocate_unset
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream

Bytes: TypeAlias = tuple[int, int]
"""A range of addresses: the first, and the one after the last."""

ZERO = np.zeros(())


def bytes_of(array: ArrayMemory) -> Bytes:
    return array.pointer, array.pointer + array.nbytes


def bytes_in(storage: Storage) -> Bytes:
    return part_of(storage._access(...))  # type: ignore[attr-defined]  # noqa: SLF001 - only the storage knows


def overlap(one: Bytes, other: Bytes) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def storages_of(array: object) -> tuple[Storage, ...]:
    """The memory of an array of quadpy's, or of the fields that a kernel names; nothing for another library's array."""
    if isinstance(array, FieldMemory):
        return tuple(map(_whole, array.storages))
    if isinstance(array, (NDArray, OrderedNDArray)):
        return (array._memory(),)  # noqa: SLF001 - only the storage has what is needed here
    leaves = getattr(array, "leaves", None)
    return () if leaves is None else tuple(_whole(leaf.storage) for leaf in leaves())


def _whole(storage: Storage) -> Storage:
    """The same memory, with an axis for each level of a tree."""
    return getattr(storage, "inner", storage)  # a BlockedStorage, whose module few programs need


def with_derivatives(kind: str, *, of_this_thread: bool = False) -> Iterator[Any]:
    """All fields and ndarrays with memory that have a derivative of this kind; or those that no other thread has used last."""
    for each in DIFFERENTIATED.of_this_thread() if of_this_thread else DIFFERENTIATED:
        if getattr(each, f"has_{kind}")() and (not isinstance(each, HasDerivatives) or _is_placed(each)):
            yield each


def without_gradients(arrays: Sequence[object]) -> list[object]:
    """Those of ``arrays`` that are not the memory of a field's gradient."""
    gradients = [set(storages_of(each.grad)) for each in with_derivatives("grad")]

    def is_gradient(memory: object) -> bool:
        found = set(storages_of(memory)) if isinstance(memory, FieldMemory) else set()
        return bool(found) and any(found <= each for each in gradients)

    return [each for each in arrays if not is_gradient(each)]


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
    """Set the gradients of all fields and ndarrays, and their duals, to 0."""
    clear_gradients(with_derivatives("grad"))


def clear_gradients(arrays: Iterable[Any]) -> None:
    """Set the gradients of ``arrays``, and their duals, to 0."""
    for each in arrays:
        clear(each.grad)
        if each.grad.has_dual():
            clear(each.grad.dual)


def piece_of(storage: Storage, start: int, nbytes: int) -> Storage:
    """Some bytes of the memory."""
    if isinstance(storage, DeviceStorage):
        return DeviceStorage(
            storage.region, StridedLayout(storage.layout.start + start, np.dtype(np.uint8), (nbytes,), (1,))
        )
    assert isinstance(storage, HostStorage)
    there = (ctypes.c_uint8 * nbytes).from_address(storage.pointer + start)
    return HostPart(storage, np.ctypeslib.as_array(there))


class _OfThread(threading.local):
    meter: Meter | None = None


@dataclass(frozen=True, eq=False)
class Copy:
    """What ``storage`` held: numbers on the host, or a storage on the same device."""

    storage: Storage
    held: Numbers | DeviceStorage | HostStorage

    def restore(self, stream: Stream | None) -> None:
        if isinstance(self.held, (DeviceStorage, HostStorage)):
            self.held.name = self.storage.name
            self.storage.copy_from(self.held, stream)
        else:
            self.storage.write(..., self.held, stream)


class _DeviceTwin(DeviceStorage):
    """A copy, which a graph keeps by its buffer: that is the same one in each replay."""

    __slots__ = ()

    def _array_memory(self, part: StridedLayout) -> CopiedArray:
        made = super()._array_memory(part)
        made.keep = self.region.owner
        return made


class _HostTwin(HostStorage):
    """The same on the host."""

    __slots__ = ()

    def _array_memory(self, view: Numbers) -> CopiedArray:
        made = super()._array_memory(view)
        made.keep = view.base if view.base is not None else view
        return made


def copy_of(storage: Storage, stream: Stream | None) -> Copy:
    """A copy on ``stream``, after all work that wrote the memory; in a capture its memory belongs to the graph."""
    is_captured = CAPTURES.count and session_of(check_stream(stream)) is not None
    if isinstance(storage, DeviceStorage) and storage.layout.size and (storage.layout.dense or is_captured):
        layout = _compact(storage.layout)
        block = unset_buffer(storage.device, layout.reach, stream)
        return _copied(storage, _DeviceTwin(Region(storage.device, block.block, block), layout), stream)
    if isinstance(storage, HostStorage):
        layout = _compact(storage._access(...).layout)  # noqa: SLF001 - as in ``bytes_in``
        buffer = allocate_unset(layout.reach, stream)
        return _copied(storage, _HostTwin(layout.over(buffer.bytes), buffer.pointer), stream)
    return Copy(storage, np.array(storage.read(..., stream)))


def _copied(storage: Storage, twin: DeviceStorage | HostStorage, stream: Stream | None) -> Copy:
    twin.copy_from(storage, stream)
    made, (start, end) = Copy(storage, twin), bytes_in(twin)
    if (meter := Meter.of_thread.meter) is not None:
        meter.take(made, end - start)
    return made


class Meter:
    """Counts the bytes of the copies that live: now, and at most."""

    of_thread = _OfThread()

    def __init__(self) -> None:
        self.now = self.most = 0

    def take(self, copy: Copy, nbytes: int) -> None:
        """``copy`` was made."""
        self.now += nbytes
        self.most = max(self.most, self.now)
        weakref.finalize(copy, self._give, nbytes).atexit = False

    def _give(self, nbytes: int) -> None:
        self.now -= nbytes


def _compact(layout: StridedLayout) -> StridedLayout:
    """A layout of the same numbers, in the same order in memory, without gaps."""
    strides, nbytes = [0] * len(layout.shape), layout.dtype.itemsize
    for axis in sorted(range(len(layout.shape)), key=lambda axis: layout.strides[axis]):
        strides[axis], nbytes = nbytes, nbytes * layout.shape[axis]
    return StridedLayout(0, layout.dtype, layout.shape, tuple(strides))
