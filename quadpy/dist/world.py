"""The ranks of a program: how many there are, and which one this process is."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from quadpy.dist.transport.alone import AloneTransport
from quadpy.dist.transport.checked import CheckedTransport
from quadpy.dist.transport.protocol import Transport
from quadpy.runtime.device.locks import new_lock

__all__ = ["World", "use_world", "world"]


@dataclass(frozen=True, slots=True)
class World:
    """All ranks of the program, as one of them sees them.

    rank        the number of this process, from 0
    size        the number of ranks
    local_rank  the number of this process on its host, from 0, which is the number of its GPU
    transport   moves data between the ranks
    """

    rank: int
    size: int
    local_rank: int
    transport: Transport


class _ThreadWorld(threading.local):
    """The world of the calling thread, where ranks are threads."""

    world: World | None = None


_thread: Final = _ThreadWorld()
_process: list[World] = []
_lock: Final = new_lock()


def world() -> World:
    """The ranks of this program; a program that nothing started as one of several is rank 0 of 1."""
    if _thread.world is not None:
        return _thread.world
    with _lock:
        if not _process:
            _process.append(World(0, 1, 0, CheckedTransport(AloneTransport())))
        return _process[0]


def use_world(world: World | None) -> None:
    """Make ``world`` that of the calling thread; None for that of the process again."""
    _thread.world = world
