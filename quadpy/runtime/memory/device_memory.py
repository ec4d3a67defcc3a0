"""The allocations of a device, and the order of the streams that use them."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Collection
from operator import index
from typing import Final

from quadpy.core.light import dataclass
from quadpy.errors import ArgumentError, DeviceError, OutOfDeviceMemory
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import AllocatorName, Driver
from quadpy.runtime.memory.accounting import Accounting
from quadpy.runtime.memory.allocators.block import Allocator, Block, DeviceBuffer
from quadpy.runtime.memory.allocators.cache import CachingAllocator
from quadpy.runtime.memory.allocators.pool import PoolAllocator
from quadpy.runtime.streams.timeline import Timeline, Timelines, handle_text, lookup

_MANY: Final = 8
"""Guests of a block above which ended streams are removed."""


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """How much of one device's memory quadpy holds, in bytes.

    used      in arrays and other allocations, dead ones included until they are drained
    peak      the maximum of ``used``, sampled at allocations
    reserved  allocated from the driver: ``used``, and what is kept for later allocations
    blocks    the number of allocations that are in use
    """

    allocator: AllocatorName
    used: int
    peak: int
    reserved: int
    blocks: int


class DeviceMemory:
    """The allocations of one device.  Safe from any thread, without a lock.

    Each belongs to a DeviceBuffer before it is taken from the driver, so none is ever lost.
    """

    def __init__(
        self, driver: Driver, timelines: Timelines, reaper: Reaper, allocator: AllocatorName | None = None
    ) -> None:
        self._driver, self._timelines, self._reaper = driver, timelines, reaper
        self.allocator = _choose(driver, allocator)
        kind = PoolAllocator if self.allocator == "pool" else CachingAllocator
        self._allocator: Allocator = kind(driver, timelines)
        self._blocks: set[Block] = set()
        self._by_address: dict[int, DeviceBuffer] = {}
        self._used = self._peak = 0  # approximate among threads; ``stats`` counts ``_blocks``

    # by address

    def allocate(self, nbytes: int, home: Timeline) -> int:
        """Allocate ``nbytes`` bytes for ``home`` until they are freed by address; 0 for no bytes."""
        try:
            wanted = index(nbytes)
        except TypeError as error:
            raise ArgumentError(f"{nbytes!r} is not a number of bytes", hint="pass an int") from error
        buffer = self.buffer(wanted, home)
        if buffer.block is not None:
            self._by_address[buffer.pointer] = buffer
        return buffer.pointer

    def free(self, pointer: int, stream: Timeline) -> None:
        """Free memory after the work so far on ``stream``; DeviceError if ``pointer`` is not an allocation."""
        if pointer:
            block = self.at(pointer)
            if stream is not block.home:
                block.guests.add(stream)
            buffer = self._by_address.pop(pointer, None)  # of two threads one gets it
            if buffer is None and block not in self._blocks:
                self.at(pointer)
            self._release(block)
        self._reaper.drain()

    def at(self, pointer: object) -> Block:
        """The block at ``pointer``; DeviceError if there is none."""
        buffer = lookup(self._by_address, pointer)
        if buffer is not None and buffer.block is not None:
            return buffer.block
        for block in list(self._blocks):  # an array's
            if block.pointer == pointer and block.cell:
                return block
        raise DeviceError(
            f"{handle_text(pointer)} is not an allocation of this device",
            hint="was it freed before, or is it inside one?",
        )

    # by object

    def buffer(self, nbytes: int, home: Timeline) -> DeviceBuffer:
        """Allocate ``nbytes`` bytes for ``home``, which live as long as the result."""
        if self._reaper.dead:
            if (inherited := self._inherited(nbytes, home)) is not None:
                return inherited
            self._reaper.drain()
        if nbytes <= 0:
            if nbytes:
                raise ArgumentError(f"{nbytes} bytes cannot be allocated: the number must not be negative")
            return DeviceBuffer(None, 0)
        block = Block(0, self._allocator.size(nbytes), home)
        buffer = DeviceBuffer(block, nbytes)
        self._reaper.adopt(buffer, self._release, block)
        try:
            self._allocator.fill(block)
        except OutOfDeviceMemory:
            self._fill_again(block, nbytes)
        buffer.pointer = block.pointer = block.cell[0]
        self._blocks.add(block)
        used = self._used = self._used + block.nbytes
        self._peak = max(self._peak, used)
        if (told := Accounting.told) is not None:
            told(self._driver, block.nbytes, home.handle)
        return buffer

    def _inherited(self, nbytes: int, home: Timeline) -> DeviceBuffer | None:
        """The block of the object that died first, for the same home and size, as it is; None if it does not fit.

        Programs drop an array and make one like it all the time.  To release the block and to allocate another takes
        longer than everything else that happens to a small array.
        """
        reaper = self._reaper
        try:
            death = reaper.dead[0]
        except IndexError:  # another thread took it
            return None
        block = death.thing
        if (
            type(block) is not Block
            or block.home is not home
            or home.owner is None
            or block.guests
            or not block.writers <= {home}
            or nbytes <= 0
            or block.nbytes != self._allocator.size(nbytes)
            or not block.cell
            or block.observed is not None
            or Accounting.told is not None
            or reaper.closed
        ):
            return None
        buffer = DeviceBuffer(block, nbytes)
        mine = reaper.adopt(
            buffer, self._release, block
        )  # first: the block always has an owner whose death is recorded
        try:
            reaper.dead.remove(death)
        except ValueError:  # another thread took the record, and releases the block
            mine.detach()
            return None
        death.detach()
        if block.cell:
            return buffer
        mine.detach()  # its release had begun
        return None

    def use(self, blocks: Collection[Block], stream: Timeline, *, writes: bool = True) -> None:
        """Announce that the next work on ``stream`` uses ``blocks``, and with ``writes`` writes them.

        The first use on a stream other than the home waits, on the device, for the work of the home stream so far: the
        allocation, and the fill after it.
        """
        new = [block for block in blocks if stream is not block.home and stream not in block.guests]
        if new:
            for home in {block.home for block in new}:
                self._timelines.order(home, stream)
            for block in new:
                self._forget(block)
                block.guests.add(stream)  # after the wait, on which others rely
        if writes:
            for block in blocks:
                block.writers.add(stream)

    def follow_writers(self, block: Block, stream: Timeline) -> None:
        """Order later work of ``stream`` after all work that wrote ``block``, on any stream."""
        for writer in list(block.writers):
            if writer is not stream:
                self._timelines.order(writer, stream)

    def follow_users(self, block: Block, stream: Timeline) -> None:
        """Order later work of ``stream``, which writes ``block``, after all work that read or wrote it, on any stream."""
        for user in block.users():
            if user is not stream:
                self._timelines.order(user, stream)

    def _forget(self, block: Block) -> None:
        """Forget guests that have ended and are idle, so that a block does not remember every stream that ever used it."""
        if len(block.guests) < _MANY:
            return
        for guest in list(block.guests):
            if guest.ended and self._timelines.idle(guest):
                block.guests.discard(guest)
                block.writers.discard(guest)

    # statistics and cleanup

    def __repr__(self) -> str:
        stats = self.stats()
        return f"<DeviceMemory, {stats.allocator}: {stats.used:,} of {stats.reserved:,} bytes in use>"

    def stats(self) -> MemoryStats:
        blocks = tuple(self._blocks)
        used = self._used = sum(block.nbytes for block in blocks)
        kept = self._allocator.kept()
        peak = self._peak = max(self._peak, used)
        return MemoryStats(self.allocator, used, peak, used + (kept or 0), len(blocks))

    def trim(self) -> None:
        """Return unused memory and pooled handles to the driver; waits for the device."""
        self._reaper.trim()
        self._timelines.synchronize()
        self._allocator.trim()

    def close(self) -> None:
        """Free everything, alive or not; the device is idle."""
        for block in list(self._blocks):
            self._release(block)
        self._timelines.synchronize()
        self._allocator.trim()

    # helpers

    def _fill_again(self, block: Block, nbytes: int) -> None:
        """Allocate again, after everything unused was returned to the driver, cyclic garbage included."""
        gc.collect()
        self.trim()
        try:
            self._allocator.fill(block)
        except OutOfDeviceMemory as error:
            free, total = self._driver.memory_info()
            held = self.stats()
            raise OutOfDeviceMemory(
                f"{self._driver.name} device {self._driver.ordinal} has no {_size(nbytes)} left: {_size(free)} of "
                f"{_size(total)} are free, and quadpy uses {_size(held.used)} in {held.blocks} allocations",
                hint="drop arrays that are no longer needed, or use a smaller shape or dtype",
            ) from error

    def _release(self, block: Block) -> None:
        """Give the memory of ``block`` back to the allocator; releasing twice does nothing."""
        if block.observed is not None:
            block.observed.released(block)
        if block.cell:
            self._allocator.release(block)
        if block in self._blocks:
            self._used -= block.nbytes
            self._blocks.discard(block)
            if (told := Accounting.told) is not None:
                told(self._driver, -block.nbytes, block.home.handle)


def _choose(driver: Driver, wish: AllocatorName | None) -> AllocatorName:
    choice = wish or driver.default_allocator
    if choice == "pool" and "pool" not in driver.features:
        warnings.warn(
            f"{driver.name} device {driver.ordinal} has no memory pool (HIP needs ROCm 7.0 and a device that supports "
            "it): quadpy's cache is used",
            RuntimeWarning,
            stacklevel=4,
        )
        return "cache"
    return choice


def _size(nbytes: int) -> str:
    for unit, scale in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << scale:
            return f"{nbytes / (1 << scale):.1f} {unit}"
    return f"{nbytes} bytes"
