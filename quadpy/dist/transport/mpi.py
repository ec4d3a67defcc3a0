"""Messages by MPI.  Every call is started without waiting and then polled, so that a rank that never answers is found."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.engine import HostEngine, Message, Notices
from quadpy.dist.transport.parts import SAME_SIZES, require_same_size
from quadpy.dist.transport.protocol import TAGS
from quadpy.errors import RankLostError, TransportError
from quadpy.runtime.elements.numpy_types import Numbers


def mpi_engine(mpi: Any, timeout: float) -> HostEngine:
    """The engine of this rank of ``MPI.COMM_WORLD``; ``mpi`` is the module ``mpi4py.MPI``.  All ranks call it together."""
    # Calls of different kinds, from ranks that disagree, never pair, as each kind has its own communicator.
    messages, calls, notices = _connected(mpi, 3, timeout)
    return HostEngine(
        MpiLibrary(mpi, messages, calls), MpiNotices(mpi, notices), messages.Get_rank(), messages.Get_size(), timeout
    )


def _connected(mpi: Any, count: int, timeout: float) -> list[Any]:
    """``count`` communicators of all ranks."""
    made = [mpi.COMM_WORLD.Idup() for _ in range(count)]
    end = time.monotonic() + timeout
    while not mpi.Request.Testall([request for _, request in made]):
        if time.monotonic() > end:
            raise RankLostError(
                f"not every rank has called quadpy.dist.world() within {timeout:g} s",
                hint="all ranks must call it; start them with quadpy run, which finds a rank that failed before",
            )
        time.sleep(1e-4)
    comms = [comm for comm, _ in made]
    for comm in comms:
        comm.Set_errhandler(mpi.ERRORS_RETURN)
    return comms


class MpiLibrary:
    """MPI as an engine needs it."""

    name = "mpi"

    def __init__(self, mpi: Any, messages: Any, calls: Any) -> None:
        """``messages`` and ``calls`` are communicators, for messages between two ranks and for calls of all."""
        self._mpi, self._messages, self._calls = mpi, messages, calls
        self.rooms = (mpi.COMM_WORLD.Get_attr(mpi.TAG_UB) + 1) // TAGS // 2

    @property
    def has_ended(self) -> bool:
        return bool(self._mpi.Is_finalized())

    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> _Requests:
        requests = [self._messages.Irecv(self._bytes(m.numbers), source=m.peer, tag=m.tag) for m in receives]
        requests += [self._messages.Isend(self._bytes(m.numbers), dest=m.peer, tag=m.tag) for m in sends]
        return _Requests(self._mpi, requests, receives)

    def gather(self, mine: Numbers, counts: Sequence[int], every: Numbers) -> _Requests:
        request = self._calls.Iallgatherv([mine, self._mpi.BYTE], [every, counts, self._mpi.BYTE])
        return _Requests(self._mpi, [request])

    def _bytes(self, numbers: Numbers | DeviceNumbers) -> list[Any]:
        """``numbers`` as mpi4py takes them: the bits are sent."""
        return [numbers if isinstance(numbers, DeviceNumbers) else numbers.view(np.uint8), self._mpi.BYTE]


class _Requests:
    """Requests under way, those of ``receives`` first; mpi4py's keep the memory alive."""

    def __init__(self, mpi: Any, requests: Sequence[Any], receives: Sequence[Message] = ()) -> None:
        self._mpi, self._requests, self._receives = mpi, requests, receives
        self._statuses: Final = [mpi.Status() for _ in requests]

    def done(self) -> bool:
        try:
            if not self._mpi.Request.Testall(self._requests, self._statuses):
                return False
        except self._mpi.Exception as error:
            codes = {status.Get_error() for status in self._statuses} | {error.Get_error_class()}
            if self._mpi.ERR_TRUNCATE in codes:
                raise TransportError("a rank sent more than this rank receives", hint=SAME_SIZES) from None
            raise TransportError(f"MPI failed: {error.Get_error_string()}") from None
        for message, status in zip(self._receives, self._statuses, strict=False):
            require_same_size(status.Get_count(), message.numbers.nbytes, f"rank {message.peer}")
        return True


class MpiNotices(Notices):
    """One rank's notices over a separate communicator."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        super().__init__(comm.Get_rank())
        self._mpi, self._comm = mpi, comm
        self._sent: list[tuple[Any, Numbers]] = []  # the requests, and what they send
        self._killed: set[int] = set()

    def note_killed(self, rank: int, reason: str) -> None:
        """As for all notices; nothing is sent to it any more."""
        self._killed.add(rank)
        super().note_killed(rank, reason)

    def received(self) -> Iterator[tuple[int, str]]:
        status = self._mpi.Status()
        while self._comm.Iprobe(source=self._mpi.ANY_SOURCE, tag=self._mpi.ANY_TAG, status=status):
            text, rank = np.empty(status.Get_count(self._mpi.BYTE), np.uint8), status.Get_source()
            self._comm.Recv([text, self._mpi.BYTE], source=rank, tag=status.Get_tag())
            yield rank, text.tobytes().decode(errors="replace")

    def send(self, notice: str) -> None:
        data = np.frombuffer(notice.encode(), np.uint8)
        for rank in range(self._comm.Get_size()):
            if rank != self.rank and rank not in self._killed:
                self._sent.append((self._comm.Isend([data, self._mpi.BYTE], dest=rank), data))
