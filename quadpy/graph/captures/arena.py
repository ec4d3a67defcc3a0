"""Memory that belongs to a captured graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias, TypeVar

from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import CapturedStream
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.host_memory import HOST, Buffer

B = TypeVar("B", DeviceBuffer, Buffer)

ArenaMark: TypeAlias = tuple[int, int, int]
"""How many buffers of each kind were handed out: of device memory, host memory and constants."""


class Arena:
    """The memory of one graph, in the order in which it was allocated.

    If a function is recorded again, the arena hands out the same buffers for the same sizes in the same order, so that
    nothing in the graph has to change because of them.  A buffer lives as long as something refers to it.
    """

    START: ClassVar[ArenaMark] = (0, 0, 0)

    def __init__(self) -> None:
        self._device: list[DeviceBuffer] = []
        self._host: list[Buffer] = []
        self._constants: list[tuple[bytes, DeviceBuffer | Buffer]] = []
        self._next = list(self.START)

    def mark(self) -> ArenaMark:
        """The present state, for ``rewind``."""
        device, host, constants = self._next
        return device, host, constants

    def rewind(self, mark: ArenaMark) -> None:
        """Hand out the same buffers again, from ``mark`` on."""
        self._next = list(mark)

    def device(self, device: Device, nbytes: int, stream: CapturedStream) -> DeviceBuffer:
        """``nbytes`` bytes of ``device``; OutOfDeviceMemory if they are not available."""
        return self._allocate(0, self._device, nbytes, lambda: device.allocate_lasting(nbytes, stream))

    def host(self, nbytes: int) -> Buffer:
        """``nbytes`` bytes of host memory."""
        return self._allocate(1, self._host, nbytes, lambda: HOST.allocate(nbytes))

    def constant(self, data: bytes, upload: Callable[[], DeviceBuffer | Buffer]) -> DeviceBuffer | Buffer:
        """A buffer with ``data``, which ``upload`` makes; it is never written again, as a launch may be reading it."""
        number = self._count(2)
        if number < len(self._constants) and self._constants[number][0] == data:
            return self._constants[number][1]
        made = upload()
        self._constants[number:] = [(data, made)]
        return made

    def ranges(self) -> list[tuple[int, int]]:
        """The address and the size of each buffer."""
        constants = [made for _, made in self._constants]
        return [(made.pointer, made.nbytes) for made in (*self._device, *self._host, *constants)]

    def _allocate(self, kind: int, known: list[B], nbytes: int, make: Callable[[], B]) -> B:
        number = self._count(kind)
        if number < len(known) and known[number].nbytes == nbytes:
            return known[number]
        made = make()
        known[number:] = [made]  # the later buffers were for other calls than those to come
        return made

    def _count(self, kind: int) -> int:
        number = self._next[kind]
        self._next[kind] += 1
        return number
