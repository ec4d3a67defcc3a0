"""Whether a device can still be used.  Owns: Life; what a fork does to devices.  Imports: errors only."""

from __future__ import annotations

import os
import weakref
from typing import Final

from quadpy.errors import DeviceError

__all__ = ["Life"]


class Life:
    """The end of a device, seen by everything that belongs to it; until then ``ended`` is None."""

    def __init__(self, *, survives_fork: bool) -> None:
        self.ended: DeviceError | None = None
        self.closed = False
        if not survives_fork:
            _mortal.add(self)

    def check(self) -> None:
        """DeviceError where the device was closed, or belongs to the parent of this process."""
        if self.ended is not None:
            raise DeviceError(self.ended.message, hint=self.ended.hint)

    def close(self) -> None:
        """The device is closed."""
        self.closed = True
        self.end("the device was closed", "open it again, and create streams, events and arrays anew")

    def end(self, message: str, hint: str) -> None:
        """Refuse all that comes; what is told first stays."""
        self.ended = self.ended or DeviceError(message, hint=hint)


_mortal: Final[weakref.WeakSet[Life]] = weakref.WeakSet()


def _in_child() -> None:
    """A GPU's runtime does not survive a fork: its first call in the child would abort the process."""
    for life in _mortal:
        life.end(
            "this process was forked from the one that opened the GPU, and cannot use it",
            "start workers with multiprocessing.get_context('spawn'); kernels of the CPU go on working",
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
