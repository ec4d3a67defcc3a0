"""One device and all that has a lifetime on it.  Owns: Device, which opens, drains and closes it in order.

Imports: errors, drivers' protocol, everything below: streams, events, branches, memory, lending, staging, modules.
"""

from __future__ import annotations

import functools
import operator
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from quadpy.copying import OneProcess
from quadpy.errors import CaptureError, DeviceError, DriverError, StreamError
from quadpy.runtime.device.callbacks import Failures
from quadpy.runtime.device.deferred_release import DeferredRelease
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.modules import Modules
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, AllocatorName, Driver, StreamHandle
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.launch.capturing import refuse_in_capture, session_of
from quadpy.runtime.memory.device_memory import DeviceBuffer, DeviceMemory, MemoryStats
from quadpy.runtime.memory.lending import Lending
from quadpy.runtime.memory.staging import Staging
from quadpy.runtime.streams.borrowed import BorrowedStreams
from quadpy.runtime.streams.branches import Branches
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.manager import StreamManager, warn_of_reset
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timelines

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Device"]


class Device(OneProcess):
    """A driver with its streams, memory and code.  Safe from any thread; ``close`` ends it, ``with`` does at its end.

    streams         the StreamManager: the same by handles
    default_stream  the stream of handle 0, on which each thread begins
    """

    error: ClassVar[type[DeviceError]] = DeviceError

    def __init__(self, driver: Driver, allocator: AllocatorName | None = None) -> None:
        self.driver = driver
        self.life = Life(survives_fork="host" in driver.features)
        self.reaper = Reaper()
        self.life.reapers.append(self.reaper)
        self.timelines = Timelines(driver, self.reaper, self.life)
        self.memory = DeviceMemory(driver, self.timelines, self.reaper, allocator)
        self.borrowed = BorrowedStreams(self.timelines, self.reaper, self.life)
        self.streams = StreamManager(driver, self.timelines, self.memory, self.life, self.reaper)
        self.staging, self.modules = Staging(driver, self.reaper), Modules(driver, self.life)
        self.failures, self.deferred = Failures(), DeferredRelease(self.timelines)
        self.lending = Lending(self.deferred, self.reaper)
        self.branches = Branches(driver, self.timelines, self.reaper)
        self.default_stream = Stream(self, self.timelines.default)
        self._forms: dict[tuple[Any, ...], object] = {}

    def __repr__(self) -> str:
        return f"<{self.driver.name}:{self.driver.ordinal} {self.driver.info.name}>"

    # streams and events

    def create_stream(self, priority: int = 0) -> Stream:
        """A new stream; work of a lower ``priority`` goes first, one out of the device's range is clamped."""
        timeline = self.streams.new_stream(priority)
        stream = Stream(
            self, timeline, free=self.timelines.end
        )  # before the handle is known: from here on it is not lost
        self.timelines.enter(timeline)
        timeline.shown = weakref.ref(stream)
        return stream

    def borrow_stream(self, handle: int, lender: object = None) -> Stream:
        """A stream by its handle: the default one, one of this device's own, or another library's.

        ``lender`` is what keeps the handle alive, where there is such an object: it lives as long as it must.
        """
        self.life.check()
        known = self._handle_of(handle)
        if known == DEFAULT_STREAM or self.timelines.owns(known):
            return Stream(self, self.timelines.find(known))
        self._require_here(known)
        loan = self.borrowed.borrow(known)
        seat: OwnerRef[StreamHandle] = OwnerRef(loan)
        loan.seats.append(seat)
        dropped = self.borrowed.give_up if lender is None else functools.partial(_give_back, self.borrowed, lender)
        return Stream(self, loan.timeline, seat, self.borrowed.give_back, dropped)

    def _handle_of(self, handle: object) -> StreamHandle:
        try:
            return StreamHandle(operator.index(handle))  # type: ignore[arg-type]  # what is none is refused
        except TypeError as error:
            raise StreamError(f"{handle!r} is no handle of a stream", hint="it is an int") from error

    def follow(self, handle: int, stream: Stream) -> None:
        """Let ``stream``'s later work wait for the work so far of a stream of another library."""
        foreign = self._handle_of(handle)
        if foreign != DEFAULT_STREAM and not self.timelines.owns(foreign):
            self._require_here(foreign)
        if foreign != stream.handle:
            self.borrowed.follow(foreign, stream.timeline)

    def create_event(self, *, timing: bool = False) -> Event:
        """A new event; ``elapsed_time`` needs two with ``timing``, which costs the device something."""
        return Event(self, self.streams.new_event(timing), timing=timing)

    def stream_for(self, stream: object) -> Stream:
        """``stream``, the calling thread's for None, or a borrowed one for an object with ``__cuda_stream__``.

        Raises:
            StreamError: ``stream`` is no stream, or was destroyed.
        """
        if stream is None:
            return self.current_stream()
        if isinstance(stream, Stream):
            stream._take()  # noqa: SLF001 - which refuses what was destroyed
            return stream
        if (protocol := getattr(stream, "__cuda_stream__", None)) is None:
            raise StreamError(
                f"{stream!r} is no stream", hint="qp.create_stream makes one, qp.Stream.from_handle borrows one"
            )
        try:
            _, handle = protocol()
        except (TypeError, ValueError) as error:
            raise StreamError(f"the __cuda_stream__ of {stream!r} gave no version and handle: {error}") from error
        return self.borrow_stream(handle, stream)

    def current_stream(self) -> Stream:
        """The calling thread's stream."""
        use = self.streams.thread.uses[-1]
        stream = use.stream
        if stream is not None and stream.usable and self.life.ended is None:  # mostly it ends here
            return stream
        self.life.check()
        if stream is not None:
            self.streams.change_current(self.timelines.default, self.default_stream)
            warn_of_reset()
            return self.default_stream
        timeline = self.streams.current_timeline()
        if timeline is self.timelines.default:
            self.streams.change_current(timeline, self.default_stream)
            return self.default_stream
        shown = timeline.shown
        return (shown and shown()) or Stream(self, timeline)  # set by its handle

    def leave(self, stream: Stream) -> None:
        """The calling thread destroyed ``stream``: if it is the thread's own, the default one takes its place."""
        if self.streams.thread.uses[-1].stream is stream and self.life.ended is None:
            self.streams.change_current(self.timelines.default, self.default_stream)
            warn_of_reset()

    def use(self, stream: Stream, tokens: list[object]) -> None:
        """Make ``stream`` the calling thread's as long as what is now put into ``tokens`` lives."""
        self.streams.use(stream, tokens)

    def exchange_current(self, stream: Stream) -> Stream | None:
        """Make ``stream`` the calling thread's; returns what ``restore_current`` takes."""
        before = self.current_stream()
        self.streams.change_current(stream.timeline, stream)
        return before

    def restore_current(self, before: Stream | None) -> None:
        """Undo ``exchange_current``; a stream that was destroyed meanwhile gives way to the default one."""
        if self.life.ended is None:
            stream = self.default_stream if before is None or before.destroyed else before
            self.streams.change_current(stream.timeline, stream)

    # memory

    def allocate(self, nbytes: int, stream: Stream) -> DeviceBuffer:
        """``nbytes`` bytes whose home is ``stream``; OutOfDeviceMemory where the device has too few.

        In a capture of ``stream`` they belong to its graph.
        """
        if not self.life.direct and (session := session_of(stream)) is not None:
            return session.device_memory(stream, nbytes)
        return self.allocate_lasting(nbytes, stream)

    def allocate_lasting(self, nbytes: int, stream: Stream) -> DeviceBuffer:
        """As ``allocate``, for what is there before a capture and behind it, such as a field."""
        stream._take()  # noqa: SLF001 - which refuses what was destroyed
        home = stream.timeline
        return self.memory.buffer(nbytes, home if home.handle else self.timelines.default)

    def form(self, type_key: tuple[Any, ...], *, wide: bool, lent: bool) -> object:
        """The one object for arrays on this device that are alike to a launch; see ``NDArray``."""
        kind = type_key, wide, lent
        return self._forms.get(kind) or self._forms.setdefault(kind, object())

    def memory_stats(self) -> MemoryStats:
        self.life.check()
        return self.memory.stats()

    # as a whole

    def synchronize(self) -> None:
        """Wait for all work on the device, on every stream; then free what died.

        What a host function of a graph raised is raised here.

        Raises:
            CaptureError: the calling thread captures: what is only noted will never be complete.
        """
        refuse_in_capture(self, "a synchronize of the whole device", "wait behind a launch of the graph")
        self._settle()
        self.failures.raise_first()

    def _settle(self) -> None:
        self.life.check()
        self.timelines.synchronize()
        self.reaper.drain()
        if len(self.deferred):
            self.deferred.sweep()
            self.timelines.synchronize()  # for the marks that this has just made
            self.deferred.sweep()
            self.reaper.drain()  # of what nobody refers to since then

    def close(self) -> None:
        """Wait for all work, free everything and refuse what comes; doing it again does nothing.

        Raises:
            CaptureError: a capture goes on.
        """
        if self.life.ended is not None:
            return
        if self.life.captures:
            what = f"{self} cannot be closed while something is captured on it"
            raise CaptureError(what, call_site(), hint="end the capture first")
        with suppress(DriverError):  # a device that is lost frees nothing
            self._settle()
            self.deferred.close()
            self.memory.close()
            self.modules.close()
            self.reaper.close()
        self.reaper.abandon()
        self.life.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _require_here(self, handle: StreamHandle) -> None:
        """Refuse a handle of another device, where the driver can tell."""
        if "stream-device" not in self.driver.features:
            return
        try:
            there = self.driver.stream_device(handle)
        except DriverError as error:
            raise StreamError(f"{handle:#x} is no stream of {self}: {error.message}") from error
        if there != self.driver.ordinal:
            raise StreamError(
                f"stream {handle:#x} belongs to device {there}, not to {self}", hint="borrow a stream of this device"
            )


def _give_back(loans: BorrowedStreams, lender: object, seat: OwnerRef[StreamHandle]) -> None:
    """The borrowed stream was dropped; ``lender`` has kept it alive."""
    loans.give_back(seat)
