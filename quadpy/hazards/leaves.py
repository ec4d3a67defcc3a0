"""How the scalars of arrays are laid out in memory."""

from __future__ import annotations

import math
from typing import NamedTuple

from quadpy.core.dtypes import BY_NAME
from quadpy.core.records import RecordType
from quadpy.hazards.regions import ByteGrid
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage, Storage


class Leaf(NamedTuple):
    """Some scalars of each element of an array, and their layout in memory: the last axes of ``grid`` are theirs.

    bytes  the place of each scalar in an element, if the last axis counts bytes; else it counts scalars
    """

    grid: ByteGrid
    bytes: tuple[range, ...] = ()

    def components(self, ndim: int) -> int:
        """How many scalars these are; the array has ``ndim`` axes."""
        return len(self.bytes) or math.prod(self.grid.shape[ndim:])

    def axes(self, ndim: int, component: int) -> tuple[range, ...]:
        """The positions of one scalar along the last axes."""
        if self.bytes:
            return (self.bytes[component],)
        positions: list[range] = []
        for extent in reversed(self.grid.shape[ndim:]):
            component, at = divmod(component, extent)
            positions.insert(0, range(at, at + 1))
        return tuple(positions)


def leaves_of(array: ArrayMemory) -> tuple[Leaf, ...]:
    """The layout in memory of the scalars of a launch's array, in order; none if it is unknown."""
    if isinstance(array, (HostView, DeviceView)):
        grid = _grid_of_view(array)
        return () if grid is None else (Leaf(grid),)
    if isinstance(array, FieldMemory):
        grids = [_grid_of_storage(storage) for storage in array.storages]
        return tuple(Leaf(grid) for grid in grids if grid is not None) if None not in grids else ()
    grid = _grid_of_storage(storage_of(array))
    if grid is None:
        return ()
    record = getattr(array, "record", None)  # of an array of structs
    return (Leaf(grid, _bytes_of(record) if isinstance(record, RecordType) else ()),)


def _bytes_of(record: RecordType) -> tuple[range, ...]:
    """The place of each scalar of a struct."""
    return tuple(
        range(first, first + member.type.scalar.nbytes)
        for member in record.plain_members()
        for first in range(member.offset, member.offset + member.type.nbytes, member.type.scalar.nbytes)
    )


def _grid_of_storage(storage: Storage | None) -> ByteGrid | None:
    if isinstance(storage, BlockedStorage):  # a kernel's index has the axes of the blocks, too
        storage = storage.inner
    if isinstance(storage, HostStorage):
        view = storage.view
        return ByteGrid(storage.pointer, view.shape, view.strides, view.itemsize) if view.size else None
    if isinstance(storage, DeviceStorage):
        layout = storage.layout
        return ByteGrid(storage.pointer, layout.shape, layout.strides, layout.dtype.itemsize) if layout.size else None
    return None


def _grid_of_view(view: HostView | DeviceView) -> ByteGrid | None:
    """The layout of another library's array, whose strides are the last part of ``abi`` if it is strided."""
    kind, scalar, ndim, element = view.type_key
    if scalar not in BY_NAME:  # a struct
        return None
    shape = view.abi[1 : 1 + ndim]
    layout = array_layout(scalar, shape, element).strided
    if not layout.size:
        return None
    strides = layout.strides
    if kind == "strided":
        item = layout.dtype.itemsize
        strides = (*(step * item for step in view.abi[1 + ndim :]), *strides[ndim:])
    return ByteGrid(view.abi[0], layout.shape, strides, layout.dtype.itemsize)


def storage_of(array: ArrayMemory) -> Storage | None:
    """The owner of the memory of a quadpy array; None for an array of another library."""
    if isinstance(array, (NDArray, OrderedNDArray)):
        return array._memory()  # noqa: SLF001 - what it is made of is the checker's concern
    return array.storages[0] if isinstance(array, FieldMemory) else None
