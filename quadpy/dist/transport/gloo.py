"""Messages by gloo, torch's library for hosts, between ranks that find each other at torch's store.

A program can wait for gloo's messages, but not poll them: a thread waits for them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from quadpy.dist.transport.arrivals import DeviceNumbers
from quadpy.dist.transport.engine import HostEngine, Message, Notices
from quadpy.dist.transport.parts import require_same_size
from quadpy.dist.transport.protocol import TAGS
from quadpy.errors import RankLostError, TransportError
from quadpy.runtime.elements.numpy_types import Numbers

_LATER: Final = 60.0
"""Seconds after which gloo ends a wait that quadpy has given up earlier."""
_TAGS: Final = 1 << 15
_SIZES: Final = 65521
"""A prime: sizes that differ by less, or by a power of two, have different remainders."""


def gloo_engine(torch: Any, rank: int, size: int, timeout: float) -> HostEngine:
    """The engine of one of the ranks that meet at ``MASTER_ADDR`` and ``MASTER_PORT``; ``torch`` is the module.

    Raises:
        RankLostError: a rank does not connect in time.
    """
    distributed, limit = torch.distributed, timedelta(seconds=timeout + _LATER)
    try:
        found, _, _ = next(distributed.rendezvous("env://", rank, size, timeout=timedelta(seconds=timeout)))
        store = distributed.PrefixStore("quadpy", found)
        groups = [
            distributed.ProcessGroupGloo(distributed.PrefixStore(name, store), rank, size, limit)
            for name in ("messages", "calls")
        ]
    except RuntimeError as error:  # torch's errors of stores and of gloo
        raise RankLostError(
            f"not every rank has called quadpy.dist.world() within {timeout:g} s: {str(error).splitlines()[0]}",
            hint="all ranks must call it, with the MASTER_ADDR and MASTER_PORT of rank 0",
        ) from error
    return HostEngine(GlooLibrary(torch, rank, *groups), StoreNotices(store, rank), rank, size, timeout)


class GlooLibrary:
    """Gloo as an engine needs it."""

    name = "gloo"
    has_ended = False
    rooms = _TAGS // TAGS // 2

    def __init__(self, torch: Any, rank: int, messages: Any, calls: Any) -> None:
        """``messages`` and ``calls`` are groups, for messages between two ranks and for calls of all."""
        self._torch, self._rank, self._messages, self._calls = torch, rank, messages, calls

    def start(self, sends: Sequence[Message], receives: Sequence[Message]) -> _Waiting:
        own = {message.tag: _bits(message) for message in sends if message.peer == self._rank}
        for message in receives:
            if message.peer == self._rank:
                require_same_size(own[message.tag].nbytes, message.numbers.nbytes, "this rank")
                _bits(message)[...] = own[message.tag]
        works = [self._messages.recv([self._tensor(_bits(m))], m.peer, _tag(m)) for m in receives if self._travels(m)]
        works += [self._messages.send([self._tensor(_bits(m))], m.peer, _tag(m)) for m in sends if self._travels(m)]
        return _Waiting(works)

    def gather(self, mine: Numbers, counts: Sequence[int], every: Numbers) -> _Waiting:
        """Gloo gathers the same number of bytes from all."""
        most = max(counts)
        sent = self._tensor(np.pad(mine, (0, most - mine.size)))
        parts = [self._torch.empty_like(sent) for _ in counts]
        work = self._calls.allgather([parts], [sent])
        pieces = [part.numpy()[:count] for part, count in zip(parts, counts, strict=True)]
        return _Waiting([work], lambda: np.concatenate(pieces, out=every))

    def _tensor(self, bits: Numbers) -> Any:
        """The same memory for torch."""
        return self._torch.from_numpy(bits)

    def _travels(self, message: Message) -> bool:
        return message.peer != self._rank and message.numbers.nbytes > 0


class _Waiting:
    """Works of gloo, and the thread that waits for them."""

    def __init__(self, works: Sequence[Any], deliver: Callable[[], object] = lambda: None) -> None:
        self._works, self._deliver, self._failure = works, deliver, ""
        self._thread = threading.Thread(target=self._wait, name="quadpy waits for gloo", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        try:
            for work in self._works:
                work.wait()
            self._deliver()
        except RuntimeError as error:  # a peer has ended, or sent too much
            self._failure = str(error).splitlines()[0]

    def done(self) -> bool:
        if self._failure:
            raise TransportError(f"gloo failed: {self._failure}")
        return not self._thread.is_alive()


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
