"""Whether a device can be used, and by the current thread: closing, forks and host functions."""

from __future__ import annotations

import os
import threading
import weakref
from typing import ClassVar, Final

from quadpy.errors import DeviceError
from quadpy.runtime.device.blocks import Block, Lasting
from quadpy.runtime.device.reaper import Reaper


class _Thread(threading.local):
    def __init__(self) -> None:
        self.hosts: Lasting[object] = Lasting()

    @property
    def in_host_function(self) -> bool:
        return bool(self.hosts)


THREAD: Final = _Thread()
"""Per-thread state."""
HOSTS: Final[Lasting[object]] = Lasting()
"""An entry for each running host function; while there is none, the slower check of ``THREAD`` is not needed."""


class Life:
    """The lifetime of a device.  ``ended`` is None while it can be used.

    ``direct`` combines all checks: the device can be used, no capture is active on it, its work is not observed, and
    calls go to the driver.
    """

    _observed: ClassVar[bool] = False
    _all: ClassVar[weakref.WeakSet[Life]] = weakref.WeakSet()

    def __init__(self, *, survives_fork: bool) -> None:
        self.ended: DeviceError | None = None
        self.closed = False
        self.captures = 0
        self.direct = not Life._observed
        self.reapers: list[Reaper] = []
        """They are abandoned in the child of a fork."""
        if not survives_fork:
            _mortal.add(self)
        Life._all.add(self)

    def check(self) -> None:
        """Raise DeviceError if the device was closed, belongs to the parent process, or calls this host function."""
        if HOSTS:
            refuse_in_host_function()
        if self.ended is not None:
            raise DeviceError(self.ended.message, hint=self.ended.hint)

    def close(self) -> None:
        """Mark the device as closed."""
        self.closed = True
        self.end("the device was closed", "open it again, and create new streams, events and arrays")

    def end(self, message: str, hint: str) -> None:
        """Refuse later calls with this error, or with that of an earlier ``end``."""
        self.ended = self.ended or DeviceError(message, hint=hint)
        self.direct = False

    def captured(self, count: int) -> None:
        """Set the number of active captures; only one thread at a time may call this."""
        self.captures = count
        self.direct = not self.captures and self.ended is None and not Life._observed

    @staticmethod
    def observe(observed: bool) -> None:
        """Set whether an observer is told of all work, on every device; only one thread at a time may call this."""
        Life._observed = observed
        for life in tuple(Life._all):
            life.captured(life.captures)


def refuse_in_host_function() -> None:
    """Raise DeviceError on a thread that runs a host function of a graph: the device, which waits for it, would hang."""
    if THREAD.in_host_function:
        raise DeviceError(
            "a host function of a graph called quadpy, but the device waits for the function to return",
            hint="let it store its results in a variable or a queue, and call quadpy elsewhere",
        )


class inside_host_function(Block):  # noqa: N801 - used like a statement, so lower case
    """Context manager: refuses quadpy's calls on this thread until the block ends."""

    def __enter__(self) -> None:
        lasts = self._begin()
        HOSTS.add(lasts, self)
        THREAD.hosts.add(lasts, self)  # removed first, as it was added last


_mortal: Final[weakref.WeakSet[Life]] = weakref.WeakSet()


def _in_child() -> None:
    """A GPU's runtime does not survive a fork: its first call in the child would abort the process."""
    for life in list(_mortal):
        for reaper in life.reapers:
            reaper.abandon()
        life.end(
            "this process was forked from the one that opened the GPU, and cannot use it",
            "start workers with multiprocessing.get_context('spawn'); CPU kernels keep working",
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
