"""All ranks of a program, as seen by one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from quadpy.core.copying import OneProcess
from quadpy.core.public import made_by
from quadpy.dist.calls import Calls
from quadpy.dist.transport.protocol import Transport
from quadpy.errors import DistributedError, QuadpyError
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.locks import new_lock


@made_by("qp.dist.world() returns it")
class World(OneProcess):
    """All ranks of the program, as seen by one of them.

    rank        the number of this process, from 0
    size        the number of ranks
    local_rank  the number of this process on its host, from 0, which is the number of its GPU
    """

    error: ClassVar[type[QuadpyError]] = DistributedError
    instead: ClassVar[str] = "each process has its own: call quadpy.dist.world()"

    __slots__ = ("_lock", "_make", "_transports", "calls", "local_rank", "rank", "size")

    def __init__(
        self, rank: int, size: int, local_rank: int, make: Callable[[str], Transport], calls: Calls | None = None
    ) -> None:
        """``make`` connects the ranks for arrays of a backend; all of them call it together.  ``calls`` are its own."""
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.calls = calls or Calls()
        self._make, self._transports, self._lock = make, dict[str, Transport](), new_lock()

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}, number {self.local_rank} on its host>"

    @property
    def transport(self) -> Transport:
        """The transport between the ranks, for arrays of the backend that ``qp.init`` chose.

        At the first access, all ranks must access it together.

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
