"""Arrays that have gradients, their memory, and copies of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, HasDerivatives
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage, Where
from quadpy.runtime.memory.strided_layout import StridedLayout

Bytes: TypeAlias = tuple[int, int]
"""A range of addresses: the first, and the one after the last."""


def bytes_of(array: ArrayMemory) -> Bytes:
    return array.pointer, array.pointer + array.nbytes


def layout_of(storage: Storage, where: Where = ...) -> StridedLayout:
    """How the numbers there are laid out, from their address on."""
    return _layout_in(access_of(storage, where))


def access_of(storage: Storage, where: Where) -> ObservedAccess:
    """An access of the host."""
    return storage._access(where)  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001 - only the storage knows


def bytes_in(storage: Storage) -> Bytes:
    return part_of(access_of(storage, ...))


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
        if getattr(each, f"has_{kind}")() and (
            not isinstance(each, HasDerivatives) or any(map(_is_placed, (each, getattr(each, kind))))
        ):
            yield each


def gradients_among(arrays: Sequence[ArrayMemory]) -> list[ArrayMemory]:
    """Those of ``arrays`` that are, or share memory with, the gradient of a field or an ndarray."""
    gradients = [each.grad for each in with_derivatives("grad")]
    fields = {storage for each in gradients if hasattr(each, "leaves") for storage in storages_of(each)}
    ranges = [bytes_of(each) for each in gradients if not hasattr(each, "leaves")]
    return [
        each
        for each in arrays
        if fields & _of_fields(each)
        or any(overlap(bytes_of(each), part) for part in ranges)
        or (isinstance(each, OrderedNDArray) and any(_has_all_of(field, each._memory()) for field in fields))  # noqa: SLF001 - as ``storages_of``
    ]


def _has_all_of(storage: Storage, other: Storage) -> bool:
    """Whether all numbers of ``other``, which may be the storage or a part of it, are numbers of the storage."""
    whole, part = layout_of(storage), layout_of(other)
    size, end = part.dtype.itemsize, part.start + part.reach
    corners = (part.start, part.start + size), (end - size, end)
    return {*part.strides} <= {*whole.strides} and all(holds(storage, corner) for corner in corners)


def share_numbers(one: ArrayMemory, other: ArrayMemory) -> bool:
    """Whether two arrays of calls share memory; fields whose numbers are between each other do not."""
    if isinstance(one, FieldMemory) and isinstance(other, FieldMemory):
        return bool(_of_fields(one) & _of_fields(other))
    return overlap(bytes_of(one), bytes_of(other))


def _of_fields(array: ArrayMemory) -> set[Storage]:
    return set(storages_of(array)) if isinstance(array, FieldMemory) else set()


def _is_placed(field: Any) -> bool:
    return all(leaf.placed for leaf in field.leaves())


def part_of(access: ObservedAccess) -> Bytes:
    """What the host accesses."""
    part = _layout_in(access)
    return part.start, part.start + part.reach


def _layout_in(access: ObservedAccess) -> StridedLayout:
    return access.layout if access.where is None else access.layout.at(access.where)


def holds(storage: Storage, part: Bytes) -> bool:
    """Whether all of ``part`` are bytes of the storage's numbers, and none is between them."""
    layout = layout_of(storage)
    outer, nbytes = layout.outer_axes()
    start = part[0] - layout.start
    for axis in outer if start >= 0 else ():
        start -= min(start // layout.strides[axis], layout.shape[axis] - 1) * layout.strides[axis]
    return start >= 0 and start + part[1] - part[0] <= nbytes


def parts_within(storage: Storage, written: Bytes, gradient: Storage) -> Iterator[tuple[Storage, Where]]:
    """Where ``gradient`` has the derivatives of the numbers of ``storage`` that are in ``written``."""
    layout, theirs = layout_of(storage), layout_of(gradient)
    low, high = max(layout.start, written[0]), min(layout.start + layout.reach, written[1])
    if low < high and layout.dense and layout[1:] == theirs[1:]:
        yield piece_of(gradient, low - layout.start, high - low), ...
    elif low < high:
        grids = np.ix_(*(np.arange(n) * step for n, step in zip(layout.shape, layout.strides, strict=True)))
        at = layout.start + sum(grids, np.zeros(layout.shape, np.int64))
        for where in np.argwhere((low <= at) & (at < high)).tolist():
            yield gradient, tuple(where)


def piece_of(storage: Storage, start: int, nbytes: int) -> Storage:
    """Some bytes of the memory."""
    if isinstance(storage, DeviceStorage):
        return DeviceStorage(
            storage.region, StridedLayout(storage.layout.start + start, np.dtype(np.uint8), (nbytes,), (1,))
        )
    assert isinstance(storage, HostStorage)
    return HostPart(storage, np.asarray(_Bytes(storage.view, storage.pointer + start, nbytes)))


class _Bytes:
    """Memory that ``owner`` keeps alive, for NumPy, whose array then keeps it, too."""

    def __init__(self, owner: Numbers, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
