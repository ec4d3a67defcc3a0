"""Turns tapes and forward mode on for one thread, and passes them what its host does with arrays."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, Protocol

from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.runtime.device.blocks import Lasting, Lifetime, whole
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES, Differentiating, differentiate, differentiating_here
from quadpy.runtime.launch.host_access import HostMemory, ObservedAccess
from quadpy.runtime.launch.observing import NOT_NOTED, ObservedCall, ObservedStream, Observer, Submission
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timeline


class Taker(Differentiating, Protocol):
    """A tape, or forward mode."""

    def exported(self, on: Stream) -> None:
        """Another library may be about to get an array of the host, which it may then change at any time."""


def _here() -> Taker | None:
    if not _open:
        follow()  # after an interrupt that came before the end of a block could do so
    found: Any = differentiating_here()  # only this package adds them
    return found  # type: ignore[no-any-return]  # as above


class _HostAccesses(Observer):
    """Tells the thread's tape."""

    def launching(self, on: ObservedStream, call: ObservedCall) -> Submission:
        _here()
        return NOT_NOTED

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


_OBSERVER: Final = _HostAccesses()
_lock: Final = new_lock()
_open: Final[Lasting[Taker]] = Lasting()
"""The tapes and forward modes of all threads."""


def follow(ending: Taker | None = None) -> None:
    """Observe what the host does while there are tapes or forward modes other than ``ending``."""
    with _lock:
        is_open = any(taker is not ending for taker in list(_open.values()))
        CAPTURES.observe("tape", _OBSERVER if is_open else None)


def refuse_inner() -> None:
    """Raise ArgumentError if derivatives are taken already."""
    if differentiating_here() is not None:
        raise ArgumentError(
            "derivatives are taken already, by the block around", call_site(),
            hint="end it first; only a tape inside forward mode gives derivatives of second order",
        )  # fmt: skip


def begin(taker: Taker, lifetime: Lifetime) -> None:
    """Pass ``taker`` the calls of this thread for as long as ``lifetime``, or until ``end``."""
    differentiate(lifetime, taker)
    _open.add(lifetime, taker)
    whole(follow, partial(follow, taker))


def end(taker: Taker) -> None:
    """Pass ``taker`` no more calls."""
    taker.quiet = True
    whole(partial(follow, taker))
