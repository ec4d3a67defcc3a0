"""The engine that moves data by MPI.

Every call is started without waiting and then polled, so that a rank that never answers is found.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.dist.calls import Call
from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.host import Exchanged, Message
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.protocol import TAGS, Operator
from quadpy.dist.transport.waits import Notices, ProcessEngine, Waits
from quadpy.errors import QuadpyError, RankLostError, TransportError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from quadpy.runtime.elements.numpy_types import Numbers


class Requests:
    """Waits for requests on one rank."""

    def __init__(self, mpi: Any, waits: Waits) -> None:
        self._mpi, self._waits = mpi, waits

    def complete(self, requests: Sequence[Any], peers: Collection[int], call: object) -> list[Any]:
        """Wait until ``requests``, which need ``peers``, are complete; returns their statuses.  Errors name ``call``.

        Raises:
            RankLostError, RanksDisagreeError: as ``Waits.until``.
            TransportError: MPI reports an error.
        """
        statuses = [self._mpi.Status() for _ in requests]
        self._waits.until(lambda: self._test(requests, statuses, call), peers, call)
        return statuses

    def _test(self, requests: Sequence[Any], statuses: list[Any], call: object) -> bool:
        try:
            return bool(self._mpi.Request.Testall(requests, statuses))
        except self._mpi.Exception as error:
            raise self._failed(error, call) from None

    def _failed(self, error: Any, call: object) -> QuadpyError:
        """The error for an exception of MPI."""
        codes = {status.Get_error() for status in getattr(error, "statuses", ())} | {error.Get_error_class()}
        if self._mpi.ERR_TRUNCATE in codes:
            hint = "the ranks must agree on the shape of the grid, the halos and the dtype"
            told = TransportError(f"in {call}, a rank sent more than this rank receives", hint=hint)
        else:
            told = TransportError(f"MPI failed in {call}: {error.Get_error_string()}")
        return self._waits.misfit(call, told)


_KINDS: Final = ("exchange", "share", "gather", "reduce", "broadcast", "notices")
"""Each kind of call has its own communicator: calls of different kinds, from ranks that disagree, never pair."""


class MpiEngine(ProcessEngine):
    """One rank of ``MPI.COMM_WORLD``."""

    name = "mpi"

    def __init__(self, mpi: Any, timeout: float) -> None:
        """Connect to all ranks, which all do the same; ``mpi`` is the module ``mpi4py.MPI``."""
        super().__init__(mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size(), timeout)
        self._mpi = mpi
        self.rooms = (mpi.COMM_WORLD.Get_attr(mpi.TAG_UB) + 1) // TAGS // 2
        self._comms: Final = dict(zip(_KINDS, _connected(mpi, len(_KINDS), timeout), strict=True))
        self.begin(MpiNotices(mpi, self._comms["notices"]))
        self.requests: Final = Requests(mpi, self.waits)
        self.meet()

    def start(self, call: Call, sends: Sequence[Message], receives: Sequence[Message]) -> _Messages:
        comm = self._comm("exchange")
        requests = [comm.Irecv(self._bytes(m.numbers), source=m.peer, tag=m.tag) for m in receives]
        requests += [comm.Isend(self._bytes(m.numbers), dest=m.peer, tag=m.tag) for m in sends]
        return _Messages(self, requests, Exchanged(call, sends, receives))

    def gather(self, mine: Numbers, all_ranks: Numbers) -> None:
        request = self._comm("gather").Iallgather(self._bytes(mine), self._bytes(all_ranks))
        self._complete([request], f"all_gather of {mine.nbytes} bytes")

    def reduce(self, numbers: Numbers, operator: Operator) -> None:
        operation = {"sum": self._mpi.SUM, "min": self._mpi.MIN, "max": self._mpi.MAX}[operator]
        request = self._comm("reduce").Iallreduce(self._mpi.IN_PLACE, numbers, op=operation)
        self._complete([request], f"all_reduce ({operator}) of {numbers.size} {numbers.dtype}")

    def broadcast(self, numbers: Numbers, root: int) -> None:
        request = self._comm("broadcast").Ibcast(self._bytes(numbers), root=root)
        self._complete([request], f"broadcast of {numbers.nbytes} bytes from rank {root}")

    def share(self, value: bytes) -> list[bytes]:
        comm = self._comm("share")
        lengths, mine = np.empty(self.size, np.int64), np.array([len(value)], np.int64)
        self._complete([comm.Iallgather(mine, lengths)], "share or barrier")
        counts = lengths.tolist()
        if not sum(counts):
            return [b""] * self.size
        together = np.empty(sum(counts), np.uint8)
        sent = [np.frombuffer(value, np.uint8), self._mpi.BYTE]
        self._complete([comm.Iallgatherv(sent, [together, counts, self._mpi.BYTE])], "share")
        ends = np.cumsum(lengths).tolist()
        return [together[end - count : end].tobytes() for count, end in zip(counts, ends, strict=True)]

    @property
    def has_ended(self) -> bool:
        """Whether MPI can no longer be called."""
        return bool(self._mpi.Is_finalized())

    def _complete(self, requests: Sequence[Any], call: str) -> None:
        self.requests.complete(requests, self.everyone, call)

    def _comm(self, kind: str) -> Any:
        self.require_open()
        return self._comms[kind]

    def _bytes(self, numbers: Numbers | DeviceNumbers) -> list[Any]:
        """``numbers`` as mpi4py takes them: the bits are sent."""
        return [numbers if isinstance(numbers, DeviceNumbers) else numbers.view(np.uint8), self._mpi.BYTE]


class _Messages:
    """Messages under way; keeps the memory alive that MPI reads and writes."""

    def __init__(self, engine: MpiEngine, requests: list[Any], exchanged: Exchanged) -> None:
        self._engine, self._requests, self._exchanged = engine, requests, exchanged

    def wait(self) -> None:
        exchanged = self._exchanged
        statuses = self._engine.requests.complete(self._requests, exchanged.peers, exchanged)
        try:
            for message, status in zip(exchanged.receives, statuses, strict=False):  # the receives come first
                require_same_size(status.Get_count(), message.numbers.nbytes, f"rank {message.peer}")
        except TransportError as error:
            raise self._engine.waits.misfit(exchanged, error) from None


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
