"""Who notes work instead of running it.  Owns: Session, the protocol of a capture; Captured; session_of.

A capture notes what its own thread puts on its streams; nothing is told to the driver, and other threads go on.  Each
thread so has a table of its streams that are captured, which is asked only while anything is captured anywhere.
Imports: errors, timelines.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

from quadpy.errors import CaptureError
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.streams.timeline import Timeline

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.memory.device_memory import DeviceBuffer
    from quadpy.runtime.memory.host_memory import Buffer
    from quadpy.runtime.streams.event import Event
    from quadpy.runtime.streams.stream import Stream

__all__ = [
    "CAPTURES",
    "Captured",
    "Replaying",
    "Session",
    "Table",
    "set_launching_kernel",
    "refuse_in_capture",
    "replaying_here",
    "launching_kernel",
    "session_of",
    "set_replaying",
    "table",
    "take_launching_kernel",
]


class Session(Protocol):
    """A capture that goes on.  Every ``note_…`` and what is allocated belongs to its graph.

    ``host`` says that its device is the CPU, where arrays lie in memory of the host.
    ``strict`` refuses this thread's work on streams that are not captured, which a replay would miss.
    """

    device: Device
    host: bool
    strict: bool
    active: bool

    def record_launch(self, stream: Stream, prepared: Any, *, draws: bool) -> None:
        """The launches of one call; ``draws`` says that random numbers depend on its number."""

    def record_fill(self, stream: Stream, target: int, pattern: bytes, nbytes: int, keep: Sequence[object]) -> None:
        """``pattern``, of 1, 2 or 4 bytes, over ``nbytes`` bytes."""

    def record_copy(self, stream: Stream, target: int, source: int, nbytes: int, keep: Sequence[object]) -> None:
        """A copy within the device's memory."""

    def record_transfer(self, stream: Stream, target: int, source: int, nbytes: int, keep: Sequence[object],
                      *, out: bool) -> None:  # fmt: skip
        """A copy from or to memory of the host, done each time that the graph runs."""

    def record_constant(self, stream: Stream, target: int, data: Any, keep: Sequence[object]) -> None:
        """Bytes as they are now, put at ``target`` each time that the graph runs."""

    def record_host(self, stream: Stream, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        """A call on the host."""

    def record_graph(self, stream: Stream, nodes: Sequence[Any]) -> None:
        """All nodes of a graph that is launched."""

    def record_event(self, stream: Stream, event: Event) -> None:
        """``event`` stands behind what was noted on ``stream``."""

    def wait_event(self, stream: Stream, event: Event) -> None:
        """What comes on ``stream`` comes behind ``event``: the stream is captured from here on."""

    def device_memory(self, stream: Stream, nbytes: int) -> DeviceBuffer:
        """Memory that belongs to the graph."""

    def host_memory(self, nbytes: int) -> Buffer:
        """Memory of the host that belongs to the graph."""

    def refuse(self, what: str, hint: str = "") -> NoReturn:
        """CaptureError: ``what`` cannot be captured; the capture comes to nothing."""


class Replaying(Protocol):
    """A session that knows what the function that it notes did before."""

    def repeats(self, kernel: Any, args: tuple[Any, ...], stream: object) -> bool:
        """Whether a call of ``kernel`` is the next one that is known, perhaps with other arguments: it is noted then."""


class Captured(NamedTuple):
    """Where in a capture an event was recorded: behind the nodes of these names.

    It keeps nothing of the capture alive: an event may be there for as long as the program.
    """

    recorder: weakref.ref[Session]
    after: tuple[str, ...]

    @property
    def session(self) -> Session | None:
        """The capture, as long as it goes on."""
        found = self.recorder()
        return found if found is not None and found.active else None


class Table(NamedTuple):
    """One thread's captures, the innermost last, and the streams that are captured."""

    sessions: list[Session]
    streams: dict[Timeline, Session]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.table = Table([], {})
        self.kernel: object = None
        self.arguments: tuple[Any, ...] = ()
        self.replaying: Replaying | None = None


class _Captures:
    """The captures that go on in the process, by their ``count``: while there is none, nothing else is asked.

    ``begin`` and ``end`` may be said more than once, as after an interrupt of the first time.
    """

    def __init__(self) -> None:
        self.count = 0
        self._open: set[Session] = set()
        self._lock = new_lock()  # a finalizer may end a capture while this thread begins one

    def begin(self, session: Session) -> None:
        """``session`` goes on; its device knows."""
        self._open.add(session)
        self._tell(session.device)

    def end(self, session: Session) -> None:
        """``session`` is over, or never began."""
        self._open.discard(session)
        self._tell(session.device)

    def _tell(self, device: Device) -> None:
        with self._lock:
            told: set[Session] | None = None
            while told != self._open:
                told = self._open.copy()
                device.life.captured(sum([session.device is device for session in told]) if told else 0)
                self.count = len(told)


CAPTURES: Final = _Captures()
_thread: Final = _Thread()


def table() -> Table:
    """The calling thread's captures."""
    return _thread.table


def set_launching_kernel(kernel: object, args: tuple[Any, ...]) -> None:
    """Say which kernel the calling thread's next launches are of, so that a node can be changed by its arguments."""
    _thread.kernel, _thread.arguments = kernel, args


def take_launching_kernel() -> object:
    """The kernel that was said last; None where none was since."""
    kernel, _thread.kernel, _thread.arguments = _thread.kernel, None, ()
    return kernel


def launching_kernel() -> tuple[Any, tuple[Any, ...]]:
    """What ``take_launching_kernel`` would take, and with which arguments it is called."""
    return _thread.kernel, _thread.arguments


def replaying_here() -> Replaying | None:
    """The session of the calling thread that knows what comes."""
    return _thread.replaying


def set_replaying(session: Replaying | None) -> None:
    """Let ``replaying_here`` answer ``session`` on this thread."""
    _thread.replaying = session


def session_of(stream: Stream) -> Session | None:
    """The capture that notes the calling thread's work on ``stream``; None where work runs.

    Raises:
        CaptureError: the stream is captured by another thread, or the work would be missing from a replay.
    """
    if not CAPTURES.count:
        return None
    timeline = stream.timeline
    found = _thread.table.streams.get(timeline)
    if found is not None:
        return found
    if timeline.captured is not None:
        raise CaptureError(
            f"{stream!r} is captured by another thread",
            call_site(),
            hint="put the work on another stream, or end that capture first",
        )
    for session in _thread.table.sessions:
        if session.strict and session.device is stream.device:
            session.refuse(
                f"work on {stream!r}, which a replay would miss",
                "fork it: event.record() on the current stream and event.wait(stream), and join it the same way",
            )
    return None


def refuse_in_capture(device: Device, what: str, hint: str) -> None:
    """CaptureError on a thread that captures on ``device``, for what concerns all of it."""
    if CAPTURES.count:
        for session in _thread.table.sessions:
            if session.device is device:
                session.refuse(what, hint)
