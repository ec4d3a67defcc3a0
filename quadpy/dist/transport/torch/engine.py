"""The engine that moves data by gloo, torch's library for hosts, between ranks that find each other at torch's store.

A program can wait for gloo's messages, but not poll them.  A thread waits for them, and the calling thread waits for
that one, so that a rank that never answers is found.
"""

from __future__ import annotations

import contextlib
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.dist.calls import Call
from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.host import Exchanged, Message
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.protocol import TAGS, Operator
from quadpy.dist.transport.verdict import different_calls
from quadpy.dist.transport.waiting import FUNCTIONS, lost
from quadpy.dist.transport.waits import Notices, ProcessEngine
from quadpy.errors import QuadpyError, RankLostError, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quadpy.runtime.elements.numpy_types import Numbers

_LATER: Final = 60.0
"""Seconds after which gloo ends a wait that quadpy has given up earlier."""
_LAST_WORDS: Final = 2.0
"""Seconds in which a rank whose connection is closed is known to have ended."""
_PAUSE: Final = 0.01
_TAGS: Final = 1 << 15
_SIZES: Final = 65521
"""A prime: sizes that differ by less, or by a power of two, have different remainders."""


class TorchEngine(ProcessEngine):
    """One rank of those that meet at ``MASTER_ADDR`` and ``MASTER_PORT``."""

    name = "gloo"
    has_ended = False
    rooms = _TAGS // TAGS // 2

    def __init__(self, torch: Any, rank: int, size: int, timeout: float) -> None:
        """Connect to all ranks, which all do the same; ``torch`` is the module.

        Raises:
            RankLostError: a rank does not connect in time.
        """
        super().__init__(rank, size, timeout)
        self._torch = torch
        limit = timedelta(seconds=timeout + _LATER)
        distributed = torch.distributed
        try:
            found, _, _ = next(distributed.rendezvous("env://", rank, size, timeout=timedelta(seconds=timeout)))
            store = distributed.PrefixStore("quadpy", found)
            self.begin(StoreNotices(store, rank))
            groups = [distributed.PrefixStore(name, store) for name in ("messages", "calls")]
            self._messages, self._calls = (distributed.ProcessGroupGloo(each, rank, size, limit) for each in groups)
        except RuntimeError as error:  # torch's errors of stores and of gloo
            raise RankLostError(
                f"not every rank has called quadpy.dist.world() within {timeout:g} s: {str(error).splitlines()[0]}",
                hint="all ranks must call it, with the MASTER_ADDR and MASTER_PORT of rank 0",
            ) from error
        self.meet()

    def start(self, call: Call, sends: Sequence[Message], receives: Sequence[Message]) -> _Messages:
        self.require_open()
        own = {message.tag: _bits(message) for message in sends if message.peer == self.rank}
        for message in receives:
            if message.peer == self.rank:
                require_same_size(own[message.tag].nbytes, message.numbers.nbytes, "this rank")
                _bits(message)[...] = own[message.tag]
        arriving, leaving = ([each for each in messages if self._travels(each)] for messages in (receives, sends))
        works = [self._messages.recv([self._tensor(each)], each.peer, _tag(each)) for each in arriving]
        works += [self._messages.send([self._tensor(each)], each.peer, _tag(each)) for each in leaving]
        return _Messages(self, works, Exchanged(call, leaving, arriving))

    def gather(self, mine: Numbers, all_ranks: Numbers) -> None:
        parts = self._called(f"all_gather of {mine.nbytes} bytes", mine.tobytes())
        all_ranks[...] = np.frombuffer(b"".join(parts), all_ranks.dtype)

    def reduce(self, numbers: Numbers, operator: Operator) -> None:
        """By NumPy, in the order of ranks: gloo lacks some types, and its minima depend on the place of a NaN."""
        parts = self._called(f"all_reduce ({operator}) of {numbers.size} {numbers.dtype}", numbers.tobytes())
        every = [np.frombuffer(part, numbers.dtype) for part in parts]
        numbers[...] = FUNCTIONS[operator].reduce(every, axis=0, dtype=numbers.dtype)

    def broadcast(self, numbers: Numbers, root: int) -> None:
        call = f"broadcast of {numbers.nbytes} bytes from rank {root}"
        parts = self._called(call, numbers.tobytes() if self.rank == root else b"")
        if self.rank != root:
            numbers[...] = np.frombuffer(parts[root], numbers.dtype)

    def share(self, value: bytes) -> list[bytes]:
        return self._called("share or barrier", value)

    def wait_for_works(self, works: Sequence[Any], peers: Sequence[int], call: object) -> None:
        """Wait until gloo's ``works``, which need ``peers``, are complete."""
        failures: list[Exception] = []

        def wait() -> None:
            try:
                for work in works:
                    work.wait()
            except RuntimeError as error:  # a peer has ended, or sent too much
                failures.append(error)

        thread = threading.Thread(target=wait, name="quadpy waits for gloo", daemon=True)
        thread.start()
        self.waits.until(lambda: not thread.is_alive(), peers, call)
        if failures:
            raise self._failed(failures[0], peers, call)

    def _failed(self, error: Exception, peers: Sequence[int], call: object) -> QuadpyError:
        """The error of a lost rank, which may have reported it a moment ago; else gloo's error."""
        end = time.monotonic() + _LAST_WORDS
        while (gone := self.waits.gone(peers)) is None and time.monotonic() < end:
            time.sleep(_PAUSE)
        if gone is not None:
            return lost(*gone, self.rank, self.timeout)
        return TransportError(f"gloo failed in {call}: {str(error).splitlines()[0]}")

    def _called(self, call: str, mine: bytes) -> list[bytes]:
        """What each rank passes to a collective call; RanksDisagreeError if ranks make different calls."""
        self.require_open()
        sent = f"{call}\0".encode() + mine
        lengths = [int.from_bytes(part, "little") for part in self._gathered(len(sent).to_bytes(8, "little"), call)]
        padded = self._gathered(sent.ljust(max(lengths), b"\0"), call)
        answers = [part[:length].partition(b"\0") for part, length in zip(padded, lengths, strict=True)]
        calls = {rank: told.decode() for rank, (told, _, _) in enumerate(answers)}
        if len(set(calls.values())) > 1:
            raise different_calls(calls)
        return [value for _, _, value in answers]

    def _gathered(self, mine: bytes, call: str) -> list[bytes]:
        """The bytes of all ranks, the same number on each."""
        sent = self._torch.frombuffer(bytearray(mine), dtype=self._torch.uint8)
        received = [self._torch.empty_like(sent) for _ in range(self.size)]
        try:
            work = self._calls.allgather([received], [sent])
            self.waits.until(work.is_completed, self.everyone, call)
            work.wait()
        except RuntimeError as error:
            raise self._failed(error, self.everyone, call) from error
        return [part.numpy().tobytes() for part in received]

    def _tensor(self, message: Message) -> Any:
        """The bits of a message, in the same memory."""
        return self._torch.from_numpy(_bits(message))

    def _travels(self, message: Message) -> bool:
        return message.peer != self.rank and message.numbers.nbytes > 0


class _Messages:
    """Messages under way; keeps the memory alive that gloo reads and writes."""

    def __init__(self, engine: TorchEngine, works: Sequence[Any], exchanged: Exchanged) -> None:
        self._engine, self._works, self._exchanged = engine, works, exchanged

    def wait(self) -> None:
        if self._works:
            self._engine.wait_for_works(self._works, self._exchanged.peers, self._exchanged)


def _tag(message: Message) -> int:
    """A tag that two messages share only if they have the same size: gloo ends a process that receives too much."""
    if message.tag >= _TAGS:
        raise TransportError(f"gloo's messages have tags below {_TAGS}, not {message.tag}")
    return message.tag * _SIZES + message.numbers.nbytes % _SIZES


def _bits(message: Message) -> Numbers:
    assert not isinstance(message.numbers, DeviceNumbers)  # gloo reads no device memory
    return message.numbers.view(np.uint8)


class StoreNotices(Notices):
    """One rank's notices: those of all ranks are in the store, numbered in the order in which they were told."""

    def __init__(self, store: Any, rank: int) -> None:
        super().__init__(rank)
        self._store, self._read = store, 0

    def received(self) -> Iterator[tuple[int, str]]:
        try:
            while self._store.check([_name(self._read + 1)]):
                self._read += 1
                rank, _, notice = self._store.get(_name(self._read)).decode().partition(" ")
                if int(rank) != self.rank:
                    yield int(rank), notice
        except RuntimeError as error:  # torch's, of a connection that is broken
            self.failures.setdefault(0, f"the store at MASTER_ADDR does not answer: {str(error).splitlines()[0]}")

    def send(self, notice: str) -> None:
        with contextlib.suppress(RuntimeError):  # the store has ended, and so have the others
            self._store.set(_name(self._store.add("notices", 1)), f"{self.rank} {notice}")


def _name(number: int) -> str:
    return f"notice {number}"
