"""Changes of the memory in use, for listeners that count it."""

from __future__ import annotations

from typing import ClassVar, Protocol

from quadpy.runtime.drivers.driver import Driver, StreamHandle


class MemoryChange(Protocol):
    """Takes a change of the memory in use, in bytes; negative for freed memory.

    ``driver`` is None for arrays on the host; ``stream`` is the stream of a device on which the memory is at home.
    """

    def __call__(self, driver: Driver | None, nbytes: int, stream: StreamHandle, /) -> None: ...


class Accounting:
    """``told`` is called at each change, unless it is None."""

    told: ClassVar[MemoryChange | None] = None
