"""The allocations that the checker knows, each with a ledger for as long as the memory belongs to it."""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from quadpy.hazards.leaves import storage_of
from quadpy.hazards.ledger import Ledger
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.host_access import HostMemory
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import HostStorage


class AddressRanges:
    """The ledgers of ranges of addresses, none of which overlap."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._starts: list[int] = []
        self._known: dict[int, Ledger] = {}

    def at(self, low: int, high: int) -> Iterator[Ledger]:
        """The ledgers with bytes from ``low`` to ``high``, of memory that still exists."""
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

        Memory that has been ``owned`` since is different from memory that the user freed at the same address before.
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
        self._known[made.start] = made  # before its address is listed, for interrupts
        bisect.insort(self._starts, made.start)
        return made

    def remove(self, ledger: Ledger) -> None:
        """Forget a ledger; twice does nothing."""
        self._changed()
        if self._known.get(ledger.start) is ledger:
            index = bisect.bisect_left(self._starts, ledger.start)  # there may be thousands
            if self._starts[index : index + 1] == [ledger.start]:
                del self._starts[index]
            del self._known[ledger.start]


class Handle:
    """One name of an allocation, by which the runtime orders reads and writes of Python.

    Views of other libraries are separate names; all names of the same bytes share one ledger.
    """

    __slots__ = ("_ledger", "alive", "home")

    def __init__(self, home: Allocations, ledger: Ledger, alive: Callable[[], object]) -> None:
        self.home, self._ledger, self.alive = home, ledger, alive

    def released(self, block: Block) -> None:
        """The memory of ``block`` goes back to the allocator, which orders its uses."""
        self.home.released(self, block)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the bytes."""
        found = self._ledger
        while found.into is not None:
            found = self._ledger = found.into
        return found


class Allocations:
    """Finds the ledger of an array's memory.  Memory that is given back and allocated again has a new one."""

    def __init__(self) -> None:
        self.host, self.device = AddressRanges(self._renew), AddressRanges(self._renew)
        self.version = object()
        """Replaced after memory was freed: until then, earlier results for an address hold."""

    def _renew(self, _: object = None) -> None:
        """Also called when memory of the host dies, between any two instructions."""
        self.version = object()

    def of_array(self, array: ArrayMemory) -> Handle | None:
        """The handle of a launch's array; None for no bytes, and for arrays of the host that only a call refers to."""
        block = array.block
        if block is not None:
            return self.of_block(block)
        if not array.nbytes:
            return None
        storage = storage_of(array)
        if isinstance(storage, BlockedStorage):
            storage = storage.inner
        if isinstance(storage, HostStorage):
            return self.of_storage(storage)
        return self._of_view(array) if isinstance(array, HostView) else None

    def _of_view(self, view: HostView) -> Handle | None:
        """The handle of quadpy's memory that comes as another library's array, under a separate name."""
        low = view.pointer
        ledger = next((found for found in self.host.at(low, low + view.nbytes) if found.shared), None)
        if ledger is None:
            return None
        known = next((handle for handle in ledger.handles if handle.alive is _never), None)
        return known if isinstance(known, Handle) else self._handle(ledger, _never)

    def of_storage(self, storage: HostMemory) -> Handle:
        """The handle of memory of the host."""
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
        """The handle of a block of a device; another library's memory may be a part of quadpy's."""
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
        """A handle for memory that begins to exist now, and ends when the user frees it."""
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
        """The handle of the memory at ``low``, which one of ``things`` owns; None if none is known to own it."""
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
    """A name that keeps nothing alive."""


def bounds_of(numbers: Numbers) -> tuple[int, int]:
    """The addresses of the first byte of ``numbers``, which is not empty, and of the end of the last one."""
    low = high = int(numbers.__array_interface__["data"][0])
    for n, stride in zip(numbers.shape, numbers.strides, strict=True):
        low, high = low + min(0, (n - 1) * stride), high + max(0, (n - 1) * stride)
    return low, high + numbers.itemsize


def root_of(numbers: Numbers) -> Numbers:
    """The NumPy array that owns the memory of ``numbers``."""
    while isinstance(numbers.base, np.ndarray):
        numbers = numbers.base
    return numbers


def owner_of(array: DenseArray[Any, Any]) -> object:
    """What keeps the memory of ``array`` as long as any array uses it."""
    storage = array._memory()  # noqa: SLF001 - what it is made of is the checker's concern
    if isinstance(storage, BlockedStorage):
        storage = storage.inner
    if isinstance(storage, HostStorage):
        return root_of(storage.view)
    assert isinstance(storage, DeviceStorage)
    return storage.region.owner


def _root_of(thing: object) -> Numbers | None:
    """The NumPy array that owns the memory of ``thing``; None for a thing without memory of the host."""
    if isinstance(thing, (NDArray, OrderedNDArray, FieldMemory)):
        thing = storage_of(thing)
    elif isinstance(thing, DenseArray):
        thing = thing._memory()  # noqa: SLF001 - what it is made of is the checker's concern
    if isinstance(thing, BlockedStorage):
        thing = thing.inner
    numbers = getattr(thing, {HostView: "owner", HostStorage: "view", Buffer: "bytes"}.get(type(thing), ""), thing)
    return root_of(numbers) if isinstance(numbers, np.ndarray) else None
