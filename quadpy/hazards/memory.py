"""The allocations that the checker knows, each with a ledger for as long as the memory belongs to it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Final

import numpy as np

from quadpy.hazards.ledger import Ledger
from quadpy.hazards.regions import Grid
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import HostStorage, Storage

__all__ = ["Allocations", "grid_of", "root_of"]

_SWEEP: Final = 1024
"""Addresses of dead memory that are kept before they are looked for."""


class Allocations:
    """Finds the ledger of an array's memory.  Memory that is given back and allocated again has a new one."""

    def __init__(self) -> None:
        self._by_pointer: dict[int, Ledger] = {}
        """Of memory of the host: by the address of each array in it, and of the memory itself."""
        self._sweep_at = _SWEEP

    def of_array(self, array: ArrayMemory) -> Ledger | None:
        """That of an array of a launch; None for memory of other libraries on the host, which calls wait for."""
        block = array.block
        if block is not None:
            return self.of_block(block)
        found = self._by_pointer.get(array.pointer)
        if found is not None and found.memory() is not None:
            return found
        root = _root_of(array)
        if root is None or not array.nbytes:
            return None
        found = self._by_pointer[array.pointer] = self.of_root(root)
        return found

    def of_bytes(self, low: int, things: Iterable[object]) -> Ledger | None:
        """That of the memory at ``low``, which one of ``things`` has; None where none is known to."""
        for thing in things:
            block = getattr(thing, "block", None)
            if isinstance(block, Block):
                if block.pointer <= low < block.pointer + block.nbytes:
                    return self.of_block(block)
                continue
            root = _root_of_thing(thing)
            if root is not None:
                start: int = root.__array_interface__["data"][0]
                if start <= low < start + root.nbytes:
                    return self.of_root(root)
        return None

    def of_block(self, block: Block) -> Ledger:
        """That of a block of a device."""
        found = block.observed
        if isinstance(found, Ledger) and found.memory() is self:
            return found
        made = block.observed = Ledger(weakref.ref(self))
        return made

    def of_root(self, root: Numbers) -> Ledger:
        """That of the NumPy array that has memory of the host."""
        start: int = root.__array_interface__["data"][0]
        found = self._by_pointer.get(start)
        if found is not None and found.memory() is root:
            return found
        if len(self._by_pointer) >= self._sweep_at:
            self._by_pointer = {p: known for p, known in self._by_pointer.items() if known.memory() is not None}
            self._sweep_at = 2 * len(self._by_pointer) + _SWEEP
        made = self._by_pointer[start] = Ledger(weakref.ref(root))
        return made


def root_of(numbers: Numbers) -> Numbers:
    """The NumPy array that has the memory of ``numbers``."""
    while isinstance(numbers.base, np.ndarray):
        numbers = numbers.base
    return numbers


def _root_of(array: ArrayMemory) -> Numbers | None:
    if isinstance(array, HostView):
        return None
    storage = _storage_of(array)
    if isinstance(storage, BlockedStorage):
        storage = storage.inner
    return root_of(storage.view) if isinstance(storage, HostStorage) else None


def _root_of_thing(thing: object) -> Numbers | None:
    """The NumPy array that has the memory of ``thing``, whatever that is; None for a thing without memory of the host."""
    numbers = thing
    if isinstance(thing, (NDArray, FieldMemory)):
        return _root_of(thing)
    if isinstance(thing, Field):
        return _root_of(FieldMemory.of(thing))
    if isinstance(thing, HostView):
        numbers = thing.owner
    elif isinstance(thing, HostStorage):
        numbers = thing.view
    elif isinstance(thing, Buffer):
        numbers = thing.bytes
    return root_of(numbers) if isinstance(numbers, np.ndarray) else None


def _storage_of(array: ArrayMemory) -> Storage | None:
    if isinstance(array, NDArray):
        return array._memory()  # noqa: SLF001 - what it is made of is the checker's concern
    return array.storages[0] if isinstance(array, FieldMemory) else None


def grid_of(array: ArrayMemory) -> Grid | None:
    """How the elements of an array of a launch lie in memory; None where they form no grid."""
    if isinstance(array, FieldMemory) and len(array.storages) > 1:
        return None
    storage = _storage_of(array)
    if isinstance(storage, HostStorage):
        view = storage.view
        return Grid(storage.pointer, view.shape, view.strides, view.itemsize) if view.size else None
    if isinstance(storage, DeviceStorage):
        layout = storage.layout
        return Grid(storage.pointer, layout.shape, layout.strides, layout.dtype.itemsize) if layout.size else None
    return None
