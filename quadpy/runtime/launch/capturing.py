"""Captures: work that is recorded instead of run.

A capture records what its own thread submits to its streams; the driver is not called, and other threads are not
affected.  Each thread has a table of its captured streams, which is consulted only while any capture is active.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn, Protocol, TypeVar

from quadpy.core.importing import import_late
from quadpy.core.public import call_site
from quadpy.errors import CaptureError
from quadpy.runtime.device.blocks import Lasting, Lifetime
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.reaper import Owner
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.streams.owned import OwningDevice

if TYPE_CHECKING:
    from quadpy.runtime.launch.captured_work import CapturedWork
    from quadpy.runtime.launch.host_access import ObservedAccess
    from quadpy.runtime.launch.observing import Observer
    from quadpy.runtime.memory.allocators.block import DeviceBuffer
    from quadpy.runtime.streams.timeline import Timeline

T = TypeVar("T")


class CapturedStream(Protocol):
    """What captures need from a stream; see ``Stream``."""

    timeline: Timeline

    @property
    def device(self) -> OwningDevice: ...
    def _take(self) -> Owner[StreamHandle]: ...
    def _call(self, function: Callable[..., T], *arguments: object) -> T: ...


class CapturedEvent(Protocol):
    """What captures need from an event; see ``Event``."""

    captured: CapturedRecord | None


class Session(Protocol):
    """An active capture.  Everything that is recorded or allocated through it belongs to its graph.

    ``host`` is true on the CPU, where arrays are in host memory.
    ``strict`` refuses this thread's work on streams that are not captured, which a replay would miss.
    """

    @property
    def device(self) -> OwningDevice: ...

    host: bool
    strict: bool
    active: bool

    def record_launch(self, stream: CapturedStream, prepared: Any, *, draws: bool) -> None:
        """Record the launches of one call; ``draws`` if it draws random numbers, which depend on its number."""

    def record(self, stream: CapturedStream, work: CapturedWork, keep: Sequence[object] = ()) -> None:
        """Record work that is not a launch of a kernel; the graph keeps ``keep`` alive."""

    def record_event(self, stream: CapturedStream, event: CapturedEvent) -> None:
        """Record ``event`` after what was recorded on ``stream``."""

    def wait_event(self, stream: CapturedStream, event: CapturedEvent) -> None:
        """Order later work on ``stream``, which is captured from here on, after ``event``."""

    def device_memory(self, stream: CapturedStream, nbytes: int) -> DeviceBuffer:
        """Allocate device memory that belongs to the graph."""

    def host_memory(self, nbytes: int) -> Buffer:
        """Allocate host memory that belongs to the graph."""

    def refuse(self, what: str, hint: str = "") -> NoReturn:
        """Raise CaptureError, as ``what`` cannot be captured, and invalidate the capture."""


class Replaying(Protocol):
    """A session that knows what the function that it records did before."""

    def repeats(self, kernel: Any, args: tuple[Any, ...], stream: object) -> bool:
        """Whether a call of ``kernel`` is the expected next one, perhaps with other arguments; if so, it is recorded."""


class Differentiating(Protocol):
    """What takes this thread's calls of kernels for derivatives: a tape, or forward mode; ``quiet`` while calls run as usual."""

    quiet: bool
    takes_graphs: bool
    """Whether it takes launches of graphs, too."""
    takes_tensors: bool
    """Whether it gives tensors of torch gradients."""

    def taken(self, kernel: Any, plan: Any, args: tuple[Any, ...]) -> Callable[[Any, Any, object], object]:
        """What runs in place of ``plan.run`` for a call of ``kernel`` with ``args``."""

    def passes_on(self, array: Any) -> None:
        """The host is about to write the numbers of ``array`` to another array.

        Raises:
            ArgumentError: derivatives would be lost.
        """

    def wrote(self, on: Any, target: ObservedAccess) -> None:
        """The host is about to write constants on the stream ``on``."""

    def copied(self, on: Any, source: ObservedAccess, target: ObservedAccess) -> None:
        """The host is about to copy one array to another."""

    def launch(self, run: Any, stream: Any) -> None:
        """Launch ``run``, a ``GraphExec``."""


class CapturedRecord(NamedTuple):
    """A record of an event in a capture, after the nodes named ``after``.

    It keeps no part of the capture alive, as an event may live as long as the program.
    """

    recorder: weakref.ref[Session]
    after: tuple[str, ...]

    @property
    def session(self) -> Session | None:
        """The capture, while it is active."""
        found = self.recorder()
        return found if found is not None and found.active else None


class ThreadCaptures(NamedTuple):
    """One thread's captures, the innermost last, and its captured streams."""

    sessions: list[Session]
    streams: dict[Timeline, Session]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.captures = ThreadCaptures([], {})
        self.kernel: object = None
        self.arguments: tuple[Any, ...] = ()
        self.replaying: Replaying | None = None
        self.differentiating: Lasting[Differentiating] = Lasting()


class _Captures:
    """Counts the active captures of the process, and knows the observers of its work.

    count     the active captures; while it is 0, no stream is captured
    observer  is told of all work on streams; None if there is none
    checker   the one among the observers that looks for hazards, if there is one
    watched   whether there is either; while it is false, nothing else needs to be looked at

    ``begin``, ``end`` and ``observe`` may be called again, for example after an interrupt of the first call.
    """

    def __init__(self) -> None:
        self.count = 0
        self.observer: Observer | None = None
        self.checker: Observer | None = None
        self._observers: dict[str, Observer | None] = {"checker": None, "watcher": None, "tape": None}
        self.watched = False
        self._open: set[Session] = set()
        self._lock = new_lock()  # a finalizer may end a capture while this thread begins one

    def begin(self, session: Session) -> None:
        """Make ``session`` active, and tell its device."""
        self._open.add(session)
        self._tell(session.device)

    def end(self, session: Session) -> None:
        """Note that ``session`` has ended, or never began."""
        self._open.discard(session)
        self._tell(session.device)

    def observe(self, name: Literal["checker", "watcher", "tape"], observer: Observer | None) -> None:
        """Let ``observer``, as the only one of this ``name``, be told of all work from now on; None for nobody."""
        with self._lock:
            self._observers = {**self._observers, name: observer}
            self.checker = self._observers["checker"]
            # The checker is told first: the others are not told of work that the checker refuses.
            found = [each for each in self._observers.values() if each is not None]
            self.observer = _all_of(tuple(found)) if len(found) > 1 else next(iter(found), None)
            self.watched = bool(self.count) or self.observer is not None
            Life.observe(self.observer is not None)

    def _tell(self, device: OwningDevice) -> None:
        with self._lock:
            told: set[Session] | None = None
            while told != self._open:
                told = self._open.copy()
                device.life.captured(sum([session.device is device for session in told]) if told else 0)
                self.count = len(told)
                self.watched = bool(told) or self.observer is not None


def _all_of(observers: tuple[Observer, ...]) -> Observer:
    return import_late("quadpy.runtime.launch.observers").Observers(observers)  # type: ignore[no-any-return]  # as annotated


CAPTURES: Final = _Captures()
_thread: Final = _Thread()


def thread_captures() -> ThreadCaptures:
    """The calling thread's captures."""
    return _thread.captures


def set_launching_kernel(kernel: object, args: tuple[Any, ...]) -> None:
    """Set the kernel that the calling thread launches next, so that a node can be changed by its arguments."""
    _thread.kernel, _thread.arguments = kernel, args


def take_launching_kernel() -> tuple[Any, tuple[Any, ...]]:
    """The kernel that was set last, once, and the arguments of its call; None if none was set since."""
    found = launching_kernel()
    _thread.kernel, _thread.arguments = None, ()
    return found


def launching_kernel() -> tuple[Any, tuple[Any, ...]]:
    """The result that ``take_launching_kernel`` would return."""
    return _thread.kernel, _thread.arguments


def replaying_here() -> Replaying | None:
    """The calling thread's replaying session; None while derivatives are taken, which records other calls."""
    return None if differentiating_here() is not None else _thread.replaying


def set_replaying(session: Replaying | None) -> None:
    """Let ``replaying_here`` return ``session`` on this thread."""
    _thread.replaying = session


def differentiating_here() -> Differentiating | None:
    """What takes the calling thread's calls of kernels for derivatives; then there is an observer, too."""
    found = next(reversed(_thread.differentiating.values()), None)
    return None if found is None or found.quiet else found


def differentiate(lifetime: Lifetime, taker: Differentiating) -> None:
    """Let ``differentiating_here`` return ``taker`` on this thread for as long as ``lifetime``, unless it is quiet."""
    _thread.differentiating.add(lifetime, taker)


@contextmanager
def quietly(taker: Differentiating | None) -> Iterator[None]:
    """Context manager: inside, calls run as usual, whatever ``taker`` would do."""
    if taker is None:
        yield
        return
    before, taker.quiet = taker.quiet, True
    try:
        yield
    finally:
        taker.quiet = before


def session_of(stream: CapturedStream) -> Session | None:
    """The capture that records the calling thread's work on ``stream``; None if the work runs.

    Raises:
        CaptureError: another thread captures the stream, or a replay would miss the work.
    """
    if not CAPTURES.count:
        return None
    timeline = stream.timeline
    found = _thread.captures.streams.get(timeline)
    if found is not None:
        return found
    if timeline.captured is not None:
        raise CaptureError(
            f"another thread captures {stream!r}",
            call_site(),
            hint="submit the work to another stream, or end that capture first",
        )
    for session in _thread.captures.sessions:
        if session.strict and session.device is stream.device:
            session.refuse(
                f"work on {stream!r}, which a replay would miss",
                "fork it with event.record() on the current stream and event.wait(stream), and join it the same way",
            )
    return None


def refuse_in_capture(device: OwningDevice, what: str, hint: str) -> None:
    """Raise CaptureError on a thread that captures on ``device``, for an operation on the whole device."""
    if CAPTURES.count:
        for session in _thread.captures.sessions:
            if session.device is device:
                session.refuse(what, hint)
