"""Whether a device can be used, now and by this thread.  Owns: Life; what forks and host functions do.  Imports: errors."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Final

from quadpy.errors import DeviceError
from quadpy.runtime.device.reaper import Reaper

__all__ = ["THREAD", "Life", "inside_host_function", "refuse_in_host_function"]


class _Thread(threading.local):
    in_host_function = False


THREAD: Final = _Thread()
"""What the calling thread is at."""


class Life:
    """The end of a device, seen by everything that belongs to it; until then ``ended`` is None.

    ``direct`` says in one look that calls go straight to the driver: the device is there, and nothing is captured.
    """

    def __init__(self, *, survives_fork: bool) -> None:
        self.ended: DeviceError | None = None
        self.closed = False
        self.captures = 0
        self.direct = True
        self.reapers: list[Reaper] = []
        """What frees nothing any more in the child of a fork."""
        if not survives_fork:
            _mortal.add(self)

    def check(self) -> None:
        """DeviceError where the device was closed, belongs to the parent of this process, or is the caller here."""
        if THREAD.in_host_function:
            refuse_in_host_function()
        if self.ended is not None:
            raise DeviceError(self.ended.message, hint=self.ended.hint)

    def close(self) -> None:
        """The device is closed."""
        self.closed = True
        self.end("the device was closed", "open it again, and create streams, events and arrays anew")

    def end(self, message: str, hint: str) -> None:
        """Refuse all that comes; what is told first stays."""
        self.ended = self.ended or DeviceError(message, hint=hint)
        self.direct = False

    def captured(self, count: int) -> None:
        """So many captures go on; the caller sees to it that one thread at a time says so."""
        self.captures = count
        self.direct = not self.captures and self.ended is None


def refuse_in_host_function() -> None:
    """DeviceError on a thread that runs a host function of a graph: the device waits for it, and would wait for ever."""
    if THREAD.in_host_function:
        raise DeviceError(
            "a host function of a graph called quadpy, and the device waits for the function",
            hint="let it leave what it found in a variable or a queue, and call quadpy elsewhere",
        )


@contextlib.contextmanager
def inside_host_function() -> Iterator[None]:
    """Refuse quadpy's calls on this thread until the block ends."""
    before, THREAD.in_host_function = THREAD.in_host_function, True
    try:
        yield
    finally:
        THREAD.in_host_function = before


_mortal: Final[weakref.WeakSet[Life]] = weakref.WeakSet()


def _in_child() -> None:
    """A GPU's runtime does not survive a fork: its first call in the child would abort the process."""
    for life in tuple(_mortal):
        for reaper in life.reapers:
            reaper.abandon()
        life.end(
            "this process was forked from the one that opened the GPU, and cannot use it",
            "start workers with multiprocessing.get_context('spawn'); kernels of the CPU go on working",
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
