"""Ranks that are threads of one process: for tests, and to look at a distributed program in a debugger."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeVar

import numpy as np

from quadpy.dist.calls import Call, Calls
from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.checked import CheckedTransport
from quadpy.dist.transport.host import Exchanged, HostTransport, Message, RankEngine
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.protocol import Operator, Transport
from quadpy.dist.transport.verdict import Report, verdict
from quadpy.dist.transport.waiting import FUNCTIONS, lost, told_of
from quadpy.dist.world import World, use_world
from quadpy.errors import DistributedError, RankLostError
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.settings import settings

T = TypeVar("T")

_COLLECTIVE: Final = -1
"""The tag of what all ranks send to each other."""
_ROOMS: Final = 1 << 20
_LOOK_AROUND: Final = 0.05
"""Seconds after which a waiting rank looks again, for changes that no message announces."""


def _checked(engine: RankEngine) -> Transport:
    return CheckedTransport(HostTransport(engine))


def run_ranks(
    size: int,
    function: Callable[[], T],
    *,
    timeout: float | None = None,
    make: Callable[[RankEngine], Transport] = _checked,
) -> list[T]:
    """Run ``function`` on ``size`` threads, each a rank with its own ``world()``; returns the results by rank.

    ``timeout`` is in seconds, by default ``QUADPY_RANK_TIMEOUT``.  ``make`` makes each rank's transport over what
    connects the threads.

    Raises:
        Exception: the first error of a rank; the others then got a RankLostError.
    """
    office, limit = _PostOffice(size), float(settings().rank_timeout if timeout is None else timeout)
    with ThreadPoolExecutor(size, thread_name_prefix="rank") as threads:
        futures = [threads.submit(_run_rank, office, rank, function, limit, make) for rank in range(size)]
        wait(futures)
    if office.first_error is not None:
        raise office.first_error
    return [future.result() for future in futures]


def _run_rank(
    office: _PostOffice, rank: int, function: Callable[[], T], timeout: float, make: Callable[[RankEngine], Transport]
) -> T:
    calls = office.calls[rank]
    use_world(World(rank, office.size, rank, lambda _: make(_ThreadEngine(office, rank, timeout)), calls))
    try:
        result = function()
    except BaseException as error:
        office.leave(rank, *told_of(error, rank), error)
        raise
    else:
        office.leave(rank, rank, "", None)
        return result
    finally:
        use_world(None)


class _PostOffice:
    """Where the threads leave messages for each other."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._wake = [threading.Event() for _ in range(size)]
        self._boxes: dict[tuple[int, int, int], deque[bytes]] = {}
        self.calls = [Calls() for _ in range(size)]
        self._ended: set[int] = set()
        self._failed: dict[int, str] = {}
        self._waiting: dict[int, tuple[Callable[[], bool], object]] = {}
        self.first_error: BaseException | None = None

    def post(self, source: int, target: int, tag: int, data: bytes) -> None:
        self._box(source, target, tag).append(data)
        self._wake[target].set()

    def take(self, source: int, target: int, tag: int, timeout: float, call: object) -> bytes:
        """The next message from ``source``; raises as ``wait_for``."""
        box = self._box(source, target, tag)
        self.wait_for(lambda: bool(box), source, target, timeout, call)
        return box.popleft()

    def wait_for(self, done: Callable[[], bool], source: int, here: int, timeout: float, call: object) -> None:
        """Wait on rank ``here``, in ``call``, until ``done``, which needs ``source``.

        Raises:
            RankLostError: a rank has failed, or the source has ended or does not answer in time.
            RanksDisagreeError: all ranks wait for each other.
        """
        end, wake = time.monotonic() + timeout, self._wake[here]
        if done():
            return
        self._waiting[here] = done, call
        try:
            while not done():
                wake.clear()
                ended = source in self._ended  # before ``done`` looks for its last message
                if done():
                    return
                gone = self.failed() or ((source, "") if ended else None)
                if gone is not None:
                    raise lost(*gone, here, timeout)
                left = end - time.monotonic()
                if left <= 0:
                    raise self.diagnosis(here, timeout)
                if not wake.wait(min(left, _LOOK_AROUND)):
                    self._refuse_circle(here, timeout)
        finally:
            del self._waiting[here]

    def _refuse_circle(self, here: int, timeout: float) -> None:
        """Raise an error if no rank can go on: all of them wait, and nothing that they wait for has arrived."""
        waiting = dict(self._waiting)
        if len(waiting) == self.size and not any(done() for done, _ in waiting.values()):
            raise self.diagnosis(here, timeout)

    def diagnosis(self, here: int, timeout: float) -> DistributedError:
        """The error on rank ``here``, which has waited too long."""
        waiting = dict(self._waiting)
        reports = {rank: Report.of(call, self.calls[rank].told()) for rank, (_, call) in sorted(waiting.items())}
        return verdict(reports, set(range(self.size)) - self._ended, here, timeout)

    def leave(self, rank: int, failed: int, reason: str, error: BaseException | None) -> None:
        """Rank ``rank`` ends, because of ``error``: rank ``failed`` has failed for a ``reason``."""
        self.first_error = self.first_error or error
        if reason:
            self._failed.setdefault(failed, reason)
        self._ended.add(rank)
        for wake in self._wake:
            wake.set()

    def failed(self) -> tuple[int, str] | None:
        """The first rank that failed, and why."""
        return next(iter(tuple(self._failed.items())), None)

    def _box(self, source: int, target: int, tag: int) -> deque[bytes]:
        return self._boxes.setdefault((source, target, tag), deque())


class _ThreadEngine:
    """One rank's end of the post office."""

    name = "threads"

    def __init__(self, office: _PostOffice, rank: int, timeout: float) -> None:
        self._office, self.rank, self.size, self.timeout = office, rank, office.size, timeout
        self.rooms, self.calls = _ROOMS, office.calls[rank]
        self._closed = False

    def start(self, call: Call, sends: Sequence[Message], receives: Sequence[Message]) -> _Pending:
        self._require_open()
        for message in sends:
            assert not isinstance(message.numbers, DeviceNumbers)
            self._office.post(self.rank, message.peer, message.tag, message.numbers.tobytes())
        return _Pending(self, Exchanged(call, sends, receives))

    def gather(self, mine: Numbers, all_ranks: Numbers) -> None:
        parts = self._shared(mine.tobytes(), f"all_gather of {mine.nbytes} bytes")
        for part, data in zip(np.split(all_ranks, self.size), parts, strict=True):
            require_same_size(len(data), part.nbytes, "a rank")
            part[...] = np.frombuffer(data, part.dtype)

    def reduce(self, numbers: Numbers, operator: Operator) -> None:
        call = f"all_reduce ({operator}) of {numbers.size} {numbers.dtype}"
        parts = [np.frombuffer(data, numbers.dtype) for data in self._shared(numbers.tobytes(), call)]
        numbers[...] = FUNCTIONS[operator].reduce(parts, axis=0, dtype=numbers.dtype)

    def broadcast(self, numbers: Numbers, root: int) -> None:
        mine = numbers.tobytes() if self.rank == root else b""
        data = self._shared(mine, f"broadcast of {numbers.nbytes} bytes from rank {root}")[root]
        require_same_size(len(data), numbers.nbytes, f"rank {root}")
        if self.rank != root:
            numbers[...] = np.frombuffer(data, numbers.dtype)

    def share(self, value: bytes) -> list[bytes]:
        return self._shared(value, "share or barrier")

    def _shared(self, value: bytes, call: str) -> list[bytes]:
        """What each rank passes to a collective call."""
        self._require_open()
        for peer in range(self.size):
            self._office.post(self.rank, peer, _COLLECTIVE, value)
        return [self.take(peer, _COLLECTIVE, call) for peer in range(self.size)]

    def wait_for(self, done: Callable[[], bool], call: str) -> None:
        self._office.wait_for(done, self.rank, self.rank, self.timeout, call)

    def lost(self) -> DistributedError | None:
        failed = self._office.failed()
        return None if failed is None else lost(*failed, self.rank, self.timeout)

    def diagnosis(self, call: str) -> DistributedError:
        return self._office.diagnosis(self.rank, self.timeout)

    def answer(self, call: str) -> None:
        """Has nothing to do: all threads see what the others wait for."""

    def take(self, peer: int, tag: int, call: object) -> bytes:
        return self._office.take(peer, self.rank, tag, self.timeout, call)

    def close(self) -> None:
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise RankLostError(f"rank {self.rank} has closed its transport")


class _Pending:
    """Messages that the threads have posted, and those that they will post."""

    def __init__(self, engine: _ThreadEngine, exchanged: Exchanged) -> None:
        self._engine, self._exchanged = engine, exchanged

    def wait(self) -> None:
        for message in self._exchanged.receives:
            data, numbers = self._engine.take(message.peer, message.tag, self._exchanged), message.numbers
            assert not isinstance(numbers, DeviceNumbers)
            require_same_size(len(data), numbers.nbytes, f"rank {message.peer}")
            numbers[...] = np.frombuffer(data, numbers.dtype)
