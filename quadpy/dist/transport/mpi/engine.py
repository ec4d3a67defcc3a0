"""The engine that moves data by MPI.

Every call is started without waiting and then polled, so that a rank that never answers is found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from quadpy.dist.calls import Call, Calls
from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.host import Exchanged, Message
from quadpy.dist.transport.mpi.notices import Notices
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.processes import Process, this_process
from quadpy.dist.transport.protocol import TAGS, Operator
from quadpy.dist.transport.waiting import closed, lost
from quadpy.dist.transport.waits import Waits
from quadpy.errors import DistributedError, QuadpyError, RankLostError, TransportError
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


class MpiEngine:
    """One rank of ``MPI.COMM_WORLD``."""

    name = "mpi"

    def __init__(self, mpi: Any, timeout: float) -> None:
        """Connect to all ranks, which all do the same; ``mpi`` is the module ``mpi4py.MPI``."""
        self._mpi, self.timeout, self.calls = mpi, timeout, Calls()
        self.rank, self.size = mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()
        self.rooms = (mpi.COMM_WORLD.Get_attr(mpi.TAG_UB) + 1) // TAGS // 2
        self._everyone: Final = [rank for rank in range(self.size) if rank != self.rank]
        self._comms: Final = dict(zip(_KINDS, _connected(mpi, len(_KINDS), timeout), strict=True))
        self.notices: Final = Notices(mpi, self._comms["notices"])
        self.waits: Final = Waits(self.notices, self.rank, self.size, timeout, self.calls)
        self.requests: Final = Requests(mpi, self.waits)
        self._closed, self._process = False, os.getpid()
        texts = self.share(this_process().to_text().encode())
        self.processes: Final = [Process.from_text(text.decode()) for text in texts]
        self.waits.processes = {rank: self.processes[rank] for rank in self._everyone}

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

    def wait_for(self, done: Callable[[], bool], call: str) -> None:
        self.waits.until(done, self._everyone, call)

    def lost(self) -> DistributedError | None:
        gone = self.waits.gone(())
        return None if gone is None else lost(*gone, self.rank, self.timeout)

    @property
    def has_ended(self) -> bool:
        """Whether MPI can no longer be called."""
        return bool(self._mpi.Is_finalized())

    def diagnosis(self, call: str) -> DistributedError:
        return self.waits.diagnosis(call)

    def answer(self, call: str) -> None:
        self.waits.answer(call)

    def close(self) -> None:
        """Refuse later calls.  MPI itself ends with the process: other libraries may use it."""
        self._closed = True

    def _complete(self, requests: Sequence[Any], call: str) -> None:
        self.requests.complete(requests, self._everyone, call)

    def _comm(self, kind: str) -> Any:
        if self._closed:
            raise closed(self.rank, self._process)
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
