"""The rings of calls on the CPU, whose text is printed when the call returns."""

from __future__ import annotations

import ctypes
from typing import Final

from quadpy.core.output import HEADER_WORDS
from quadpy.runtime.device.current import State
from quadpy.runtime.printing.records import Header, output_of, show

_MOST_SPARE: Final = 4

_spare: Final[list[HostRing]] = []


class HostRing:
    """Memory for the records of one call at a time."""

    __slots__ = ("_words", "address", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._words = (ctypes.c_uint64 * (HEADER_WORDS + capacity))()
        self._reset()
        self.address = ctypes.addressof(self._words)

    def _reset(self) -> None:
        for number, word in enumerate(Header.empty(self.capacity)):
            self._words[number] = word

    def finish(self) -> None:
        """Prints what a call reported; then the ring is free for another call."""
        header = Header.of(self._words[:HEADER_WORDS])
        output = output_of(header, self._words[HEADER_WORDS : HEADER_WORDS + header.used])
        self._reset()
        if len(_spare) < _MOST_SPARE:
            _spare.append(self)
        show(output)


def take_host_ring() -> HostRing:
    """A ring of the size that ``qp.init`` chose."""
    capacity = State.config.print_buffer // 8
    try:
        while (ring := _spare.pop()).capacity != capacity:
            pass
    except IndexError:
        return HostRing(capacity)
    return ring
