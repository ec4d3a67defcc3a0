"""The allocations that the checker knows, each with a ledger for as long as the memory belongs to it."""

from __future__ import annotations

import bisect
import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from quadpy.dtypes import BY_NAME
from quadpy.hazards.ledger import Ledger
from quadpy.hazards.regions import Grid
from quadpy.records import RecordType
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.ndarray import NDArray, array_layout
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.observing import HostMemory
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import HostStorage, Storage

__all__ = ["Allocations", "Handle", "Leaf", "bounds_of", "leaves_of"]


class Handle:
    """One name of an allocation: what the runtime orders reads and writes of Python by.

    Views of other libraries are names of their own; all names of the same bytes have one ledger.
    """

    __slots__ = ("_ledger", "alive", "home")

    def __init__(self, home: Allocations, ledger: Ledger, alive: Callable[[], object]) -> None:
        self.home, self._ledger, self.alive = home, ledger, alive

    def released(self, block: Block) -> None:
        """The memory of ``block`` goes back to the allocator, by which its uses are in order."""
        self.home.released(self, block)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the bytes."""
        found = self._ledger
        while found.into is not None:
            found = self._ledger = found.into
        return found


class _Ranges:
    """The ledgers of ranges of addresses, none of which overlap."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._starts: list[int] = []
        self._known: dict[int, Ledger] = {}

    def at(self, low: int, high: int) -> Iterator[Ledger]:
        """Those with bytes from ``low`` to ``high``, of memory that is still there."""
        index = max(0, bisect.bisect_right(self._starts, low) - 1)
        for start in self._starts[index : bisect.bisect_left(self._starts, high)]:
            found = self._known[start]
            if found.end <= low:
                continue
            if found.alive():
                yield found
            else:
                self.remove(found)

    def enter(self, low: int, high: int, *, fresh: bool, owned: bool = False) -> Ledger:
        """The ledger for memory from ``low`` to ``high``, which begins with it if it is ``fresh``.

        Memory that somebody has ``owned`` since is not what the user freed at the same address before.
        """
        found = list(self.at(low, high))
        for old in found if owned else ():
            if old.free is not None:
                self.remove(old)
        found = [old for old in found if not owned or old.free is None]
        if not fresh and len(found) == 1 and found[0].start <= low and high <= found[0].end:
            return found[0]
        made = Ledger(low, high)
        for old in found:
            self.remove(old)
            if not fresh and old.free is None:
                made.absorb(old)
        bisect.insort(self._starts, made.start)
        self._known[made.start] = made
        return made

    def remove(self, ledger: Ledger) -> None:
        """Forget a ledger; twice does nothing."""
        self._changed()
        if self._known.get(ledger.start) is ledger:
            del self._known[ledger.start]
            self._starts.remove(ledger.start)


class Allocations:
    """Finds the ledger of an array's memory.  Memory that is given back and allocated again has a new one."""

    def __init__(self) -> None:
        self.host, self.device = _Ranges(self._renew), _Ranges(self._renew)
        self.version = object()
        """Another object after memory has gone: until then, what was found for an address holds."""

    def _renew(self, _: object = None) -> None:
        """Also called when memory of the host dies, between any two instructions."""
        self.version = object()

    def of_array(self, array: ArrayMemory) -> Handle | None:
        """The handle of an array of a launch; None for no bytes, and for arrays of the host that only a call has."""
        block = array.block
        if block is not None:
            return self.of_block(block)
        if not array.nbytes:
            return None
        storage = _storage_of(array)
        if isinstance(storage, BlockedStorage):
            storage = storage.inner
        if isinstance(storage, HostStorage):
            return self.of_storage(storage)
        return self._of_view(array) if isinstance(array, HostView) else None

    def _of_view(self, view: HostView) -> Handle | None:
        """That of memory of quadpy's that comes as another library's array, by a name of its own."""
        low = view.pointer
        ledger = next((found for found in self.host.at(low, low + view.nbytes) if found.shared), None)
        if ledger is None:
            return None
        known = next((handle for handle in ledger.handles if handle.alive is _never), None)
        return known if isinstance(known, Handle) else self._handle(ledger, _never)

    def of_storage(self, storage: HostMemory) -> Handle:
        """That of memory of the host."""
        found = storage.observed
        if isinstance(found, Handle) and found.home is self:
            return found
        made = storage.observed = self._of_root(root_of(storage.view))
        made.ledger.shared = True
        return made

    def _of_root(self, root: Numbers) -> Handle:
        low: int = root.__array_interface__["data"][0]
        ledger = self.host.enter(low, low + max(root.nbytes, 1), fresh=False, owned=root.flags.owndata)
        known = next((handle for handle in ledger.handles if handle.alive() is root), None)
        if isinstance(known, Handle):
            return known
        return self._handle(ledger, weakref.ref(root, self._renew))

    def of_block(self, block: Block) -> Handle:
        """That of a block of a device; another library's memory may be a part of quadpy's."""
        found = block.observed
        if isinstance(found, Handle) and found.home is self:
            return found
        made = block.observed = self._handle(
            self.device.enter(block.pointer, block.pointer + block.nbytes, fresh=False, owned=not block.lent),
            weakref.ref(block),
        )
        return made

    def _handle(self, ledger: Ledger, alive: Callable[[], object]) -> Handle:
        made = Handle(self, ledger, alive)
        ledger.handles = [*(one for one in ledger.handles if one.alive() is not None or one.alive is _never), made]
        return made

    def allocated(self, low: int, nbytes: int, *, on_host: bool) -> Handle:
        """A handle for memory that begins now, and ends when the user says so."""
        ranges = self.host if on_host else self.device
        return self._handle(ranges.enter(low, low + nbytes, fresh=True), _always)

    def at(self, low: int, high: int, *, on_host: bool) -> list[Ledger]:
        """The ledgers that have bytes from ``low`` to ``high``."""
        return list((self.host if on_host else self.device).at(low, high))

    def released(self, handle: Handle, block: Block) -> None:
        """The memory of ``block`` goes back to the allocator; what the user freed may still be used by mistake."""
        block.observed = None
        self._renew()
        if handle.ledger.free is None and not block.lent:
            self.device.remove(handle.ledger)

    def of_bytes(self, low: int, things: Iterable[object]) -> Handle | None:
        """That of the memory at ``low``, which one of ``things`` has; None where none is known to."""
        for thing in things:
            block = getattr(thing, "block", None)
            if isinstance(block, Block):
                if block.pointer <= low < block.pointer + block.nbytes:
                    return self.of_block(block)
            elif (root := _root_of(thing)) is not None:
                start: int = root.__array_interface__["data"][0]
                if start <= low < start + root.nbytes:
                    return self._of_root(root)
        return None


def _always() -> object:
    return True


def _never() -> None:
    """A name that keeps nothing."""


def bounds_of(numbers: Numbers) -> tuple[int, int]:
    """The addresses of the first byte of ``numbers``, which are some, and of the end of the last one."""
    low = high = int(numbers.__array_interface__["data"][0])
    for n, stride in zip(numbers.shape, numbers.strides, strict=True):
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + numbers.itemsize


def root_of(numbers: Numbers) -> Numbers:
    """The NumPy array that has the memory of ``numbers``."""
    while isinstance(numbers.base, np.ndarray):
        numbers = numbers.base
    return numbers


def _root_of(thing: object) -> Numbers | None:
    """The NumPy array that has the memory of ``thing``; None for a thing without memory of the host."""
    if isinstance(thing, (NDArray, OrderedNDArray, FieldMemory)):
        thing = _storage_of(thing)
    elif isinstance(thing, DenseArray):
        thing = thing._memory()  # noqa: SLF001 - what it is made of is the checker's concern
    if isinstance(thing, BlockedStorage):
        thing = thing.inner
    numbers = getattr(thing, {HostView: "owner", HostStorage: "view", Buffer: "bytes"}.get(type(thing), ""), thing)
    return root_of(numbers) if isinstance(numbers, np.ndarray) else None


def _storage_of(array: ArrayMemory) -> Storage | None:
    if isinstance(array, (NDArray, OrderedNDArray)):
        return array._memory()  # noqa: SLF001 - what it is made of is the checker's concern
    return array.storages[0] if isinstance(array, FieldMemory) else None


class Leaf(NamedTuple):
    """Some scalars of each element of an array, and how they lie in memory: the last axes of ``grid`` are theirs.

    bytes  where each scalar lies in an element, if the last axis counts bytes; else it counts scalars
    """

    grid: Grid
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
    """How the scalars of an array of a launch lie in memory, in order; none where that is unknown."""
    if isinstance(array, (HostView, DeviceView)):
        grid = _grid_of_view(array)
        return () if grid is None else (Leaf(grid),)
    if isinstance(array, FieldMemory):
        grids = [_grid_of_storage(storage) for storage in array.storages]
        return tuple(Leaf(grid) for grid in grids if grid is not None) if None not in grids else ()
    grid = _grid_of_storage(_storage_of(array))
    if grid is None:
        return ()
    record = getattr(array, "record", None)  # of an array of structs
    return (Leaf(grid, _bytes_of(record) if isinstance(record, RecordType) else ()),)


def _bytes_of(record: RecordType) -> tuple[range, ...]:
    """Where each scalar of a struct lies."""
    return tuple(
        range(first, first + member.type.scalar.nbytes)
        for member in record.plain_members()
        for first in range(member.offset, member.offset + member.type.nbytes, member.type.scalar.nbytes)
    )


def _grid_of_storage(storage: Storage | None) -> Grid | None:
    if isinstance(storage, BlockedStorage):  # a kernel's index has the axes of the blocks, too
        storage = storage.inner
    if isinstance(storage, HostStorage):
        view = storage.view
        return Grid(storage.pointer, view.shape, view.strides, view.itemsize) if view.size else None
    if isinstance(storage, DeviceStorage):
        layout = storage.layout
        return Grid(storage.pointer, layout.shape, layout.strides, layout.dtype.itemsize) if layout.size else None
    return None


def _grid_of_view(view: HostView | DeviceView) -> Grid | None:
    """That of another library's array, whose strides are the last part of ``abi`` if it is strided."""
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
    return Grid(view.abi[0], layout.shape, strides, layout.dtype.itemsize)
