"""The memory of the recording driver: host memory that knows when it was freed."""

from __future__ import annotations

import bisect

from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.runtime.memory.host_memory import HOST, Buffer

__all__ = ["SimulatedMemory"]


class SimulatedMemory:
    """Blocks of at most ``capacity`` bytes in total; access outside of them is an error, not a crash."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used = capacity, 0
        self._blocks: dict[int, Buffer] = {}
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def allocate(self, nbytes: int) -> int:
        if not nbytes:
            return 0
        if self.used + nbytes > self.capacity:
            raise OutOfDeviceMemory(f"alloc of {nbytes} bytes failed: {self.used} of {self.capacity} are in use")
        block = HOST.allocate(nbytes)
        self._blocks[block.pointer] = block
        bisect.insort(self._starts, block.pointer)
        self.used += nbytes
        return block.pointer

    def size(self, pointer: int) -> int:
        """Bytes of the block that begins at ``pointer``."""
        if (block := self._blocks.get(pointer)) is None:
            raise DriverError(f"{pointer:#x} is not memory of this device: it was freed, or never allocated")
        return block.nbytes

    def release(self, pointer: int) -> None:
        if pointer:
            self.used -= self.size(pointer)
            del self._blocks[pointer]
            self._starts.remove(pointer)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether one block contains all the bytes."""
        position = bisect.bisect_right(self._starts, address) - 1
        if position < 0:
            return False
        start = self._starts[position]
        return address + nbytes <= start + self._blocks[start].nbytes

    def require(self, address: int, nbytes: int) -> None:
        if nbytes and not self.holds(address, nbytes):
            raise DriverError(
                f"work accessed {nbytes} bytes at {address:#x}, which are not allocated: a use after free"
            )
