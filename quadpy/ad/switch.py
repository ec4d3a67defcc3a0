"""Turns tapes and forward mode on for one thread, and passes them what its host does with arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from quadpy.errors import ArgumentError
from quadpy.public import call_site
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES, Differentiating, differentiating_here, set_differentiating
from quadpy.runtime.launch.host_access import HostMemory, ObservedAccess
from quadpy.runtime.launch.observing import NOT_NOTED, ObservedStream, Observer, Submission
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline


class Taker(Differentiating, Protocol):
    """A tape, or forward mode; ``quiet`` while it works itself."""

    quiet: bool

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """The host is about to write constants on ``on``."""

    def exported(self, on: Stream) -> None:
        """Another library may be about to get an array of the host, which it may then change at any time."""

    def copied(self, on: Stream, source: ObservedAccess, target: ObservedAccess) -> None:
        """The host is about to copy one array to another."""


def _here() -> Taker | None:
    taker: Any = differentiating_here()  # only this package sets it
    return None if taker is None or taker.quiet else taker


class _HostAccesses(Observer):
    """Tells the thread's tape."""

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> Submission:
        if (taker := _here()) is not None and isinstance(on, Stream):
            taker.wrote(on, target)
        return NOT_NOTED

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        if source.where is None and (taker := _here()) is not None and isinstance(on, Stream):
            taker.exported(on)

    def exported(self, consumer: Timeline, life: Life, memory: Block | HostMemory) -> None:
        if (taker := _here()) is not None:
            taker.exported(current_device().stream_for(None))

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> Submission:
        if (taker := _here()) is not None and isinstance(on, Stream):
            taker.copied(on, source, target)
        return NOT_NOTED

    def launching_graph(
        self, on: ObservedStream, graph: object, version: object, nodes: Any, *, overlap: bool
    ) -> Submission:  # fmt: skip
        if _here() is not None:
            raise ArgumentError(
                "a graph is launched while derivatives are taken, which sees only calls of kernels", call_site(),
                hint="call the kernels themselves; or capture them and their backward kernels, kernel.grad(…), as one graph",
            )  # fmt: skip
        return NOT_NOTED


_OBSERVER: Final = _HostAccesses()
_lock: Final = new_lock()
_open: Final[list[object]] = []
"""The tapes and forward modes of all threads."""


def begin(taker: Taker) -> None:
    """Pass ``taker`` the calls of this thread.

    Raises:
        ArgumentError: derivatives are taken already.
    """
    if differentiating_here() is not None:
        raise ArgumentError(
            "derivatives are taken already, by the block around: a tape or forward mode inside another one is not supported",
            call_site(), hint="end the outer block first",
        )  # fmt: skip
    set_differentiating(taker)
    with _lock:
        _open.append(taker)
        CAPTURES.observe("tape", _OBSERVER)


def end(taker: Taker) -> None:
    """Undo ``begin``."""
    if differentiating_here() is taker:
        set_differentiating(None)
    with _lock:
        if taker in _open:
            _open.remove(taker)
        if not _open:
            CAPTURES.observe("tape", None)


@contextmanager
def quietly(taker: Taker) -> Iterator[None]:
    """Context manager: inside, calls run as usual."""
    before, taker.quiet = taker.quiet, True
    set_differentiating(None)
    try:
        yield
    finally:
        taker.quiet = before
        set_differentiating(taker)
