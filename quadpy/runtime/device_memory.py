"""Device memory that streams share in order.  Owns: DeviceMemory, DeviceBuffer, MemoryStats, the choice of allocator.

Imports: errors, the driver protocol, allocators, timelines, the reaper.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quadpy.errors import ArgumentError, DeviceError, OutOfDeviceMemory
from quadpy.runtime.allocators.block import Allocator, Block
from quadpy.runtime.allocators.cache import CachingAllocator
from quadpy.runtime.allocators.pool import PoolAllocator
from quadpy.runtime.driver import AllocatorName, Driver
from quadpy.runtime.reaper import Reaper
from quadpy.runtime.timeline import Timeline, Timelines

__all__ = ["DeviceBuffer", "DeviceMemory", "MemoryStats"]

_MANY: Final = 8
"""Streams that a block may know before it looks which of them are gone."""


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What quadpy holds of one device's memory, in bytes.

    used      in arrays and other allocations that are alive, or dead and not yet drained
    peak      the most that ``used`` was
    reserved  taken from the driver: ``used`` and what is kept for the next allocations
    blocks    how many allocations ``used`` is in
    """

    allocator: AllocatorName
    used: int
    peak: int
    reserved: int
    blocks: int


class DeviceBuffer:
    """Memory that its last reference gives back to ``memory``, which frees it after all work that uses it.

    For None it is another's, which frees it.
    """

    __slots__ = ("__weakref__", "_memory", "block", "nbytes", "pointer")

    def __init__(self, block: Block | None, nbytes: int, memory: DeviceMemory | None = None) -> None:
        self.block, self.nbytes, self._memory = block, nbytes, memory
        self.pointer = block.pointer if block else 0

    def __del__(self) -> None:
        if self.block is not None and self._memory is not None:
            self._memory.leave(self.block)


class DeviceMemory:
    """The allocations of one device, by address."""

    def __init__(
        self, driver: Driver, timelines: Timelines, reaper: Reaper, allocator: AllocatorName | None = None
    ) -> None:
        self._driver, self._timelines, self._reaper = driver, timelines, reaper
        self.allocator = _choose(driver, allocator)
        kind = PoolAllocator if self.allocator == "pool" else CachingAllocator
        self._allocator: Allocator = kind(driver, timelines)
        self._blocks: dict[int, Block] = {}
        self._used = self._peak = 0
        self._lock = threading.Lock()

    def allocate(self, nbytes: int, home: Timeline) -> Block | None:
        """``nbytes`` bytes for ``home``, which live until they are freed by address; None for no bytes."""
        if self._reaper.dead:
            self._reaper.drain()
        if nbytes <= 0:
            if nbytes:
                raise ArgumentError(f"{nbytes} bytes cannot be allocated", hint="0 bytes can: their address is 0")
            return None
        try:
            block = self._allocator.allocate(nbytes, home)
        except OutOfDeviceMemory:
            block = self._allocate_again(nbytes, home)
        self._lock.acquire()  # in half the time that ``with`` takes
        try:
            self._blocks[block.pointer] = block
            used = self._used = self._used + block.nbytes
            self._peak = max(self._peak, used)
        finally:
            self._lock.release()
        return block

    # by address

    def free(self, pointer: int, stream: Timeline) -> None:
        """Give memory back after the work so far on ``stream``; DeviceError where ``pointer`` is no allocation."""
        if self._reaper.dead:
            self._reaper.drain()
        if not pointer:
            return
        block = self._blocks.get(pointer)
        if block is None:
            raise DeviceError(
                f"{pointer:#x} is no allocation of this device", hint="was it freed before, or is it inside one?"
            )
        if stream is not block.home:
            block.guests.add(stream)
        self._release(block)

    # by object

    def buffer(self, nbytes: int, home: Timeline) -> DeviceBuffer:
        """``nbytes`` bytes for ``home`` that live as long as the object."""
        return DeviceBuffer(self.allocate(nbytes, home), nbytes, self)

    def leave(self, block: Block) -> None:
        """Free ``block`` at the next safe moment; a finalizer may say so."""
        self._reaper.leave((self._release, block))

    def use(self, blocks: Iterable[Block], stream: Timeline, *, writes: bool = True) -> None:
        """Say that work on ``stream``, which comes next, uses ``blocks``, and writes them.

        The first use on a stream other than the home waits there, on the device, for what the home stream was given
        so far: the allocation, and the fill that came with it.
        """
        homes = set()
        for block in blocks:
            if stream is not block.home and stream not in block.guests:
                self._forget(block)
                homes.add(block.home)
                block.guests.add(stream)
            if writes:
                block.writers.add(stream)
        for home in homes:
            self._timelines.order(home, stream)

    def follow_writers(self, block: Block, stream: Timeline) -> None:
        """Let ``stream``'s later work wait for what wrote ``block``, wherever it was."""
        for writer in list(block.writers):
            if writer is not stream:
                self._timelines.order(writer, stream)

    def follow_users(self, block: Block, stream: Timeline) -> None:
        """Let ``stream``'s later work, which writes ``block``, wait for all that read or wrote it, wherever it was."""
        for user in block.users():
            if user is not stream:
                self._timelines.order(user, stream)

    def _forget(self, block: Block) -> None:
        """Forget the streams that are gone, and through: so that memory need not know every stream there ever was."""
        if len(block.guests) < _MANY or self._reaper.holding:
            return
        for guest in [guest for guest in tuple(block.guests) if guest.ended and self._timelines.idle(guest)]:
            block.guests.discard(guest)
            block.writers.discard(guest)

    # what is there

    def stats(self) -> MemoryStats:
        with self._lock:
            used, reserved = self._used, self._allocator.reserved
            return MemoryStats(
                self.allocator, used, self._peak, used if reserved is None else reserved, len(self._blocks)
            )

    def trim(self) -> None:
        """Return to the driver what nobody uses; waits for the device."""
        self._reaper.drain()
        self._driver.synchronize()
        self._allocator.trim()

    def close(self) -> None:
        """Free everything, alive or not; the device is idle."""
        for block in list(self._blocks.values()):
            self._release(block)
        self._driver.synchronize()
        self._allocator.trim()

    # how

    def _allocate_again(self, nbytes: int, home: Timeline) -> Block:
        """Once more, after everything that nobody uses went back: also what only cycles of garbage refer to."""
        gc.collect()
        self.trim()
        try:
            return self._allocator.allocate(nbytes, home)
        except OutOfDeviceMemory as error:
            free, total = self._driver.memory_info()
            held = self.stats()
            raise OutOfDeviceMemory(
                f"{self._driver.name} device {self._driver.ordinal} has no {_size(nbytes)}: {_size(free)} of "
                f"{_size(total)} are free, quadpy uses {_size(held.used)} in {held.blocks} allocations",
                hint="drop arrays that are not needed, or use a smaller shape or dtype",
            ) from error

    def _release(self, block: Block) -> None:
        self._lock.acquire()
        try:
            if self._blocks.get(block.pointer) is not block:
                return  # given back before, by hand or as the device closed
            del self._blocks[block.pointer]
            self._used -= block.nbytes
        finally:
            self._lock.release()
        self._allocator.release(block)


def _choose(driver: Driver, wish: AllocatorName | None) -> AllocatorName:
    choice = wish or driver.default_allocator
    if choice == "pool" and "pool" not in driver.features:
        warnings.warn(
            f"{driver.name} device {driver.ordinal} has no memory pool (HIP has one from ROCm 7.0 on, where the device "
            "supports it): quadpy's cache is used",
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
