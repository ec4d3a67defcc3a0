"""The ranks of this program, or of this thread where ranks are threads."""

from __future__ import annotations

import threading
from typing import Final

from quadpy.core.public import public
from quadpy.dist.connecting import World, connect
from quadpy.runtime.device.locks import new_lock

__all__ = ["World", "use_world", "world"]


class _ThreadWorld(threading.local):
    """The world of the calling thread, where ranks are threads."""

    world: World | None = None


_thread: Final = _ThreadWorld()
_process: Final[list[World]] = []
_lock: Final = new_lock()


@public
def world() -> World:
    """The ranks of this program; a program that was not started as one of several ranks is rank 0 of 1.

    All ranks must call it; the first call connects them.  If the program has imported ``mpi4py.MPI``, the ranks are
    those of MPI; otherwise they are those that ``mpiexec``, ``quadpy run``, ``srun`` or ``torchrun`` has started.

    Raises:
        TransportError: ranks were started, but the library that connects them is not installed, or is not the
            launcher's.
        RankLostError: a rank does not connect in time.
    """
    if _thread.world is not None:
        return _thread.world
    with _lock:
        if not _process:
            _process.append(connect())
        return _process[0]


def use_world(world: World | None) -> None:
    """Set the world of the calling thread; None restores that of the process."""
    _thread.world = world
