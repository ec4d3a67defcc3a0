"""One device: its driver, and everything on it that has a lifetime."""

from __future__ import annotations

import functools
import operator
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.public import call_site
from quadpy.core.target import EXCHANGE
from quadpy.errors import CaptureError, DeviceError, DriverError, StreamError
from quadpy.runtime.device.callbacks import Failures
from quadpy.runtime.device.deferred_release import DeferredRelease
from quadpy.runtime.device.faults import Faults
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.modules import Modules
from quadpy.runtime.device.reaper import Reaper
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, AllocatorName, Driver, StreamHandle
from quadpy.runtime.launch.capturing import CAPTURES, CapturedStream, refuse_in_capture, session_of
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.device_memory import DeviceMemory, MemoryStats
from quadpy.runtime.memory.staging import Staging
from quadpy.runtime.printing.device_rings import Prints
from quadpy.runtime.streams.borrowed import BorrowedStreams
from quadpy.runtime.streams.branches import Branches
from quadpy.runtime.streams.current import warn_of_reset
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.manager import StreamManager
from quadpy.runtime.streams.owned import OwnerRef
from quadpy.runtime.streams.stream import Stream
from quadpy.runtime.streams.timeline import Timelines

if TYPE_CHECKING:
    from typing_extensions import Self

    from quadpy.runtime.drivers.graph_driver import GraphDriver
    from quadpy.runtime.streams.parts import ComputeUnits


@shows("close", "create_event", "create_stream", "current_stream", "default_stream", "memory_stats", "synchronize")
class Device(OneProcess):
    """A driver with its streams, memory and code.  Safe from any thread.  A ``with`` block closes it at its end.

    streams         the StreamManager: the same operations by handle
    default_stream  the stream of handle 0, on which each thread starts
    off             the capabilities that it does without, each with the reason
    """

    error: ClassVar[type[DeviceError]] = DeviceError

    def __init__(
        self, driver: Driver, allocator: AllocatorName | None = None, off: Mapping[str, str] | None = None
    ) -> None:
        self.off = dict(off or {})
        driver.features -= self.off.keys()
        if "pool" in self.off:
            driver.default_allocator = "cache"
        if "float-atomics" in self.off:
            driver.info = replace(driver.info, arch=f"{driver.info.arch}:{EXCHANGE}")
        self.driver = driver
        self.life = Life(survives_fork="host" in driver.features)
        self.reaper = Reaper()
        self.life.reapers.append(self.reaper)
        self.timelines = Timelines(driver, self.reaper, self.life)
        self.timelines.parts_off = self.off.get("parts", "")
        self.memory = DeviceMemory(driver, self.timelines, self.reaper, allocator)
        self._borrowed = BorrowedStreams(self.timelines, self.reaper, self.life)
        self.prints = Prints(driver, self.timelines, self.memory, self.reaper)
        self.staging, self.modules = Staging(driver, self.reaper, self.prints), Modules(driver, self.life)
        self.failures, self.deferred = Failures(), DeferredRelease(self.timelines)
        self.faults = Faults(driver, self.memory, self.timelines, self.staging)
        self.streams = StreamManager(
            driver, self.timelines, self.memory, self.life, self.reaper, self.prints, self.faults
        )
        self.branches = Branches(driver, self.timelines, self.reaper)
        self.default_stream = Stream(self, self.timelines.default)
        self.graphs: GraphDriver | None = None  # see ``graph.device_graphs``
        self._choosing_units = new_lock()  # streams on parts take the units that no other has
        self._forms: dict[tuple[Any, ...], object] = {}

    def __repr__(self) -> str:
        return f"<{self.driver.name}:{self.driver.ordinal} {self.driver.info.name}>"

    # streams and events

    def create_stream(self, priority: int = 0, compute_units: ComputeUnits = None) -> Stream:
        """Create a stream; see ``qp.create_stream``."""
        with self._choosing_units:
            timeline = self.streams.new_stream(priority, compute_units)
            stream = Stream.made(self, timeline, self.timelines.end)  # owns the handle before ``enter`` makes it known
            self.timelines.enter(timeline)
        timeline.stream = weakref.ref(stream)
        return stream

    def borrow_stream(self, handle: int, lender: object = None) -> Stream:
        """A stream by handle: the default one, one of this device, or a borrowed one of another library.

        ``lender``, if given, is an object that keeps the handle alive; quadpy keeps it for as long as needed.
        """
        self.life.check()
        known = _handle_of(handle)
        if known == DEFAULT_STREAM or self.timelines.owns(known):
            return Stream(self, self.timelines.find(known))
        self._require_here(known)
        streams = self._borrowed
        timeline, ref = streams.borrow(known)
        dropped = streams.drop if lender is None else functools.partial(_give_back, streams, lender)
        return Stream(self, timeline, ref, streams.give_back, dropped)

    def follow(self, handle: int, stream: Stream) -> None:
        """Order later work of ``stream`` after the work so far of a stream of another library."""
        foreign = _handle_of(handle)
        if foreign != DEFAULT_STREAM and not self.timelines.owns(foreign):
            self._require_here(foreign)
        if foreign != stream.handle:
            self._borrowed.follow(foreign, stream.timeline)
            if (observer := CAPTURES.observer) is not None and foreign in self.timelines.live:
                observer.followed(self.timelines.live[foreign], stream.timeline, self.life)

    def create_event(self, *, timing: bool = False) -> Event:
        """Create an event.  ``elapsed_time`` needs two with ``timing``, which costs the device some time."""
        return Event.made(self, self.streams.events.create(timing), timing)

    def stream_for(self, stream: object) -> Stream:
        """``stream`` itself, the current stream for None, or a borrowed one for an object with ``__cuda_stream__``.

        Raises:
            StreamError: ``stream`` is not a stream, or was destroyed.
        """
        if stream is None:
            return self.current_stream()
        if isinstance(stream, Stream):
            stream._take()  # noqa: SLF001 - refuses a destroyed stream
            return stream
        if (protocol := getattr(stream, "__cuda_stream__", None)) is None:
            raise StreamError(
                f"{stream!r} is not a stream", hint="qp.create_stream makes one, qp.Stream.from_handle borrows one"
            )
        try:
            _, handle = protocol()
        except (TypeError, ValueError) as error:
            raise StreamError(
                f"the __cuda_stream__ of {stream!r} did not return a version and a handle: {error}"
            ) from error
        return self.borrow_stream(handle, stream)

    def current_stream(self) -> Stream:
        """The calling thread's stream."""
        thread = self.streams.thread
        stream = thread.uses[-1].stream
        if isinstance(stream, Stream):
            if stream.usable and self.life.ended is None:
                return stream
            self.life.check()
            self._reset_current()
            return self.default_stream
        self.life.check()
        timeline = thread.timeline()
        if timeline is self.timelines.default:
            thread.change(timeline, self.default_stream)
            return self.default_stream
        known = timeline.stream and timeline.stream()
        return known if isinstance(known, Stream) else Stream(self, timeline)  # it was made current by handle

    def leave(self, stream: Stream) -> None:
        """Put the calling thread, which destroyed ``stream``, its current one, back on the default stream."""
        if self.streams.thread.uses[-1].stream is stream and self.life.ended is None:
            self._reset_current()

    def _reset_current(self) -> None:
        self.streams.thread.change(self.timelines.default, self.default_stream)
        warn_of_reset()

    # memory

    def allocate(self, nbytes: int, stream: CapturedStream) -> DeviceBuffer:
        """Allocate ``nbytes`` bytes with ``stream`` as their home; OutOfDeviceMemory if the device has too few.

        If ``stream`` is captured, the memory belongs to the graph.
        """
        if not self.life.direct and (session := session_of(stream)) is not None:
            return session.device_memory(stream, nbytes)
        return self.allocate_lasting(nbytes, stream)

    def allocate_lasting(self, nbytes: int, stream: CapturedStream) -> DeviceBuffer:
        """Like ``allocate``, for memory that outlives a capture, such as a field's."""
        stream._take()  # noqa: SLF001 - refuses a destroyed stream
        home = stream.timeline
        return self.memory.buffer(nbytes, home if home.handle else self.timelines.default)

    def form(self, type_key: tuple[Any, ...], *, wide: bool, lent: bool) -> object:
        """One object for all arrays on this device that a launch treats alike; see ``NDArray``."""
        kind = type_key, wide, lent
        return self._forms.get(kind) or self._forms.setdefault(kind, object())

    def memory_stats(self) -> MemoryStats:
        self.life.check()
        return self.memory.stats()

    # as a whole

    def synchronize(self) -> None:
        """Wait for all work on the device, on every stream; then free what died.

        Raises the first error of a host function of a graph.

        Raises:
            KernelFault: a check of a kernel failed, under ``debug=True``.
            CaptureError: the calling thread captures on the device, and recorded work never completes.
        """
        refuse_in_capture(self, "a synchronize of the whole device", "wait after a launch of the graph")
        self.life.check()
        self._settle()
        self.faults.raise_first()
        self.failures.raise_first()

    def _settle(self) -> None:
        self.timelines.synchronize()
        if (observer := CAPTURES.observer) is not None:
            observer.device_synchronized(self.life)
        if self.prints.pending:
            self.prints.drain()
        self.reaper.drain()
        if len(self.deferred):
            self.deferred.sweep()
            self.timelines.synchronize()  # for the marks that the sweep made
            self.deferred.sweep()
            self.reaper.drain()  # frees what the sweep released

    def close(self) -> None:
        """Wait for all work, free everything and refuse later calls.  Closing twice does nothing.

        Raises:
            CaptureError: a capture is active on the device.
        """
        if self.life.ended is not None:
            return
        if self.life.captures:
            what = f"{self} cannot be closed while a capture is active on it"
            raise CaptureError(what, call_site(), hint="end the capture first")
        with suppress(DriverError):  # a lost device frees nothing
            self._settle()
            self.deferred.close()
            self.memory.close()
            self.modules.close()
            self.reaper.close()
        self.reaper.abandon()
        self.life.close()

    def close_at_exit(self) -> None:
        """Like ``close``; but if other threads run, which may be in a call of the driver, the end of the process frees all."""
        if self.life.ended is not None:
            return
        self.life.captures = 0  # they never end: their threads have ended, or their generators are suspended
        if threading.active_count() == 1:
            self.close()
            return
        self.life.close()  # first, so that other threads begin nothing that is not waited for
        with suppress(DriverError):
            self._settle()
        self.reaper.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _require_here(self, handle: StreamHandle) -> None:
        """Refuse a handle of another device, if the driver can tell."""
        if "stream-device" not in self.driver.features:
            return
        try:
            there = self.driver.stream_device(handle)
        except DriverError as error:
            raise StreamError(f"{handle:#x} is not a stream of {self}: {error.message}") from error
        if there != self.driver.ordinal:
            raise StreamError(
                f"stream {handle:#x} belongs to device {there}, not to {self}", hint="borrow a stream of this device"
            )


def _handle_of(handle: object) -> StreamHandle:
    try:
        return StreamHandle(operator.index(handle))  # type: ignore[arg-type]  # anything else raises
    except TypeError as error:
        raise StreamError(f"{handle!r} is not a handle of a stream", hint="pass an int") from error


def _give_back(streams: BorrowedStreams, lender: object, ref: OwnerRef[StreamHandle]) -> None:
    """End a borrowing that was dropped; ``lender`` has kept the stream alive."""
    streams.give_back(ref)
