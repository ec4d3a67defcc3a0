"""The ranks of a program: how many there are, and which one this process is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from quadpy.dist.transport.protocol import Transport
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.locks import new_lock

__all__ = ["World", "use_world", "world"]


class World:
    """All ranks of the program, as one of them sees them.

    rank        the number of this process, from 0
    size        the number of ranks
    local_rank  the number of this process on its host, from 0, which is the number of its GPU
    """

    __slots__ = ("_lock", "_make", "_transports", "local_rank", "rank", "size")

    def __init__(self, rank: int, size: int, local_rank: int, make: Callable[[str], Transport]) -> None:
        """``make`` connects the ranks for arrays of a backend; all of them call it together."""
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self._make, self._transports, self._lock = make, dict[str, Transport](), new_lock()

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}, number {self.local_rank} on its host>"

    @property
    def transport(self) -> Transport:
        """What moves data between the ranks, for arrays of the backend that ``qp.init`` chose.

        All ranks ask for it together the first time.

        Raises:
            TransportError: the engine that connects GPUs failed.
        """
        arch = current_config().arch
        transport = self._transports.get(arch)
        if transport is None:
            with self._lock:
                transport = self._transports.get(arch) or self._make(arch)
                self._transports[arch] = transport
        return transport


class _ThreadWorld(threading.local):
    """The world of the calling thread, where ranks are threads."""

    world: World | None = None


_thread: Final = _ThreadWorld()
_process: Final[list[World]] = []
_lock: Final = new_lock()


def world() -> World:
    """The ranks of this program; a program that nothing started as one of several is rank 0 of 1.

    All ranks call it, and connect to each other at the first call.  They are those of MPI if the program has imported
    ``mpi4py.MPI``; else what ``mpiexec``, ``quadpy run``, ``srun`` or ``torchrun`` has started.

    Raises:
        TransportError: ranks were started, and what connects them is not installed, or is not the launcher's.
        RankLostError: a rank does not come in time.
    """
    if _thread.world is not None:
        return _thread.world
    with _lock:
        if not _process:
            from quadpy.dist.connecting import connect

            _process.append(connect())
        return _process[0]


def use_world(world: World | None) -> None:
    """Make ``world`` that of the calling thread; None for that of the process again."""
    _thread.world = world
