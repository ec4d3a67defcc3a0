"""Memory that belongs to a captured graph.  Owns: Arena.  Imports: devices, memory.

Where a function is recorded once more, what it allocates is what the recording before had: the same sizes in the same
order are the same memory, so that nothing in the graph has to change for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from quadpy.runtime.device.device import Device
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.host_memory import HOST, Buffer
from quadpy.runtime.streams.stream import Stream

__all__ = ["Arena"]

B = TypeVar("B", DeviceBuffer, Buffer)


class Arena:
    """The memory of one graph, in the order of its making; whoever refers to a part of it keeps that part alive."""

    def __init__(self) -> None:
        self._device: list[DeviceBuffer] = []
        self._host: list[Buffer] = []
        self._constants: list[tuple[bytes, DeviceBuffer | Buffer]] = []
        self._next = [0, 0, 0]

    def mark(self) -> tuple[int, ...]:
        """How much was given out, for ``rewind``."""
        return tuple(self._next)

    def rewind(self, mark: tuple[int, ...] = (0, 0, 0)) -> None:
        """Give out the same memory once more, from ``mark`` on."""
        self._next = list(mark)

    def device(self, device: Device, nbytes: int, stream: Stream) -> DeviceBuffer:
        """``nbytes`` bytes of ``device``; OutOfDeviceMemory where they are not there."""
        return self._take(0, self._device, nbytes, lambda: device.allocate_lasting(nbytes, stream))

    def host(self, nbytes: int) -> Buffer:
        """``nbytes`` bytes of the process."""
        return self._take(1, self._host, nbytes, lambda: HOST.allocate(nbytes))

    def constant(self, data: bytes, make: Callable[[], DeviceBuffer | Buffer]) -> DeviceBuffer | Buffer:
        """Memory that holds ``data``; ``make`` makes and writes it.  It is never written again: a launch may be reading."""
        place = self._step(2)
        if place < len(self._constants) and self._constants[place][0] == data:
            return self._constants[place][1]
        made = make()
        self._constants[place:] = [(data, made)]
        return made

    def ranges(self) -> list[tuple[int, int]]:
        """Where all of it lies: addresses, and how many bytes."""
        constants = [made for _, made in self._constants]
        return [(made.pointer, made.nbytes) for made in (*self._device, *self._host, *constants)]

    def _take(self, kind: int, known: list[B], nbytes: int, make: Callable[[], B]) -> B:
        place = self._step(kind)
        if place < len(known) and known[place].nbytes == nbytes:
            return known[place]
        made = make()
        known[place:] = [made]  # what follows is for another program than this one
        return made

    def _step(self, kind: int) -> int:
        place = self._next[kind]
        self._next[kind] += 1
        return place
