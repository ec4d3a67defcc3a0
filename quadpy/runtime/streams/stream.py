"""Streams as users hold them, and ``use_stream``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.public import call_site, called_often, made_by, public, shortened
from quadpy.errors import CaptureError, QuadpyError, StreamError
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.device.life import HOSTS, refuse_in_host_function
from quadpy.runtime.drivers.driver import Driver, StreamHandle
from quadpy.runtime.launch.capturing import CAPTURES, session_of, thread_captures
from quadpy.runtime.streams.owned import Owned, OwnerRef, OwningDevice

if TYPE_CHECKING:
    from quadpy.runtime.device.callbacks import Failures
    from quadpy.runtime.device.faults import Faults
    from quadpy.runtime.memory.device_memory import DeviceMemory
    from quadpy.runtime.printing.device_rings import Prints
    from quadpy.runtime.streams.manager import StreamManager
    from quadpy.runtime.streams.timeline import Timeline, Timelines

T = TypeVar("T")


class StreamDevice(OwningDevice, Protocol):
    """A device as its streams and events see it; see ``Device``."""

    driver: Driver
    timelines: Timelines
    memory: DeviceMemory
    streams: StreamManager
    failures: Failures
    prints: Prints
    faults: Faults

    @property
    def default_stream(self) -> Stream: ...
    def stream_for(self, stream: object) -> Stream: ...
    def borrow_stream(self, handle: int) -> Stream: ...
    def leave(self, stream: Stream) -> None: ...


@made_by("qp.create_stream() makes one; qp.Stream.from_handle borrows one of another library")
@shows("compute_units", "destroy", "destroyed", "device", "from_handle", "handle", "query", "synchronize")
class Stream(Owned[StreamHandle]):
    """A queue of device work that runs in order; ``qp.create_stream`` makes one.  Safe from any thread.

    Only events order work on two streams.  A ``with`` block destroys the stream at its end.
    """

    __slots__ = ("_death", "_free", "timeline")

    kind: ClassVar[str] = "stream"
    error: ClassVar[type[StreamError]] = StreamError
    device: StreamDevice

    def __init__(
        self,
        device: StreamDevice,
        timeline: Timeline,
        ref: OwnerRef[StreamHandle] | None = None,
        free: Callable[[Any], object] | None = None,
        dropped: Callable[[Any], object] | None = None,
    ) -> None:
        """``free(ref)`` gives the handle back; ``dropped``, if given, does so for a stream that was not destroyed."""
        self.timeline, self._free = timeline, free
        super().__init__(device, timeline if ref is None else ref)
        self._death = None if free is None else device.reaper.adopt(self, dropped or free, self._ref)

    @staticmethod
    def made(device: StreamDevice, timeline: Timeline, free: Callable[[Any], object]) -> Stream:
        """As a call of the class, which takes three times as long."""
        stream = _new_stream(Stream)
        stream.device, stream._ref, stream.timeline, stream._free = device, timeline, timeline, free  # noqa: SLF001 - of this class
        stream._death = device.reaper.adopt(stream, free, timeline)  # noqa: SLF001 - as above
        return stream

    @staticmethod
    def from_handle(handle: int, device: StreamDevice | None = None) -> Stream:
        """Borrow a stream of another library (torch's ``stream.cuda_stream``, CuPy's ``stream.ptr``).

        The stream must stay alive until this object is destroyed; destroying the object leaves the stream as it is.
        If the object is dropped instead, memory that it used is reused only after the whole device was synchronized.

        Raises:
            StreamError: ``handle`` is not a stream of ``device``; on the CPU, it is not 0.
        """
        return _Lookup.find(device).borrow_stream(handle)

    @property
    def compute_units(self) -> tuple[int, ...] | None:
        """The numbers of the compute units on which its kernels run, in ascending order; None if it was not given any.

        Another stream on the same units: ``qp.create_stream(compute_units=stream.compute_units)``.
        """
        return None if self.timeline.part is None else self.timeline.part.units

    @property
    def usable(self) -> bool:
        """Whether the stream was not destroyed, as an object or by handle."""
        return self._ref.owner is not None

    @called_often
    def synchronize(self) -> None:
        """Wait for all work on this stream, and raise the first error of a host function of a graph on it.

        Raises:
            KernelFault: a check of a kernel failed, under ``debug=True``.
        """
        try:
            self._refuse_captured("synchronize()", "synchronize after a launch of the graph")
            owner = self._take()
            self.device.driver.stream_synchronize(owner.handle)
            if (observer := CAPTURES.observer) is not None:
                observer.synchronized(self.timeline, self.device.life)
            if self.device.prints.pending:
                self.device.prints.drain()
            self.device.reaper.drain()
            self.device.faults.raise_first(owner.handle)
            self.device.failures.raise_first(self.timeline)
        except QuadpyError as error:
            raise shortened(error)

    @called_often
    def query(self) -> bool:
        """Whether all work on this stream is complete."""
        try:
            self._refuse_captured("query()", "query after a launch of the graph")
            owner = self._take()
            complete = self.device.driver.stream_query(owner.handle)
            if complete and (observer := CAPTURES.observer) is not None:
                observer.synchronized(self.timeline, self.device.life)
        except QuadpyError as error:
            raise shortened(error)
        return complete

    def destroy(self) -> None:
        """Destroy the stream.  Submitted work still completes, and memory that it used waits for it.

        Destroying twice does nothing.  A thread whose current stream it is goes back to the default stream, with a
        warning: the calling thread now, another thread when it next needs its stream.

        Raises:
            StreamError: this is the default stream.
            CaptureError: the stream is being captured.
            DeviceError: a host function of a graph made the call.
        """
        device = self.device
        if self is device.default_stream:
            raise StreamError("the default stream cannot be destroyed")
        if HOSTS:
            refuse_in_host_function()
        if CAPTURES.count and (session := thread_captures().streams.get(self.timeline)) is not None:
            session.refuse(f"destroy() of {self!r}, which is captured", "destroy it after the capture")
        if self.timeline.captured is not None:
            hint = "destroy it after that capture has ended"
            raise CaptureError(f"another thread captures {self!r}", call_site(), hint=hint)
        if self._free is None:
            self._ref = OwnerRef(None)  # another object owns the handle
        else:
            self._free(self._ref)
            if (death := self._death) is not None:
                death.detach()
                self._death = None  # a reference that is gone queues nothing
                del death
        if device.streams.thread.uses[-1].stream is self:
            device.leave(self)
        if device.reaper.dead:
            device.reaper.drain()

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        """Like ``Owned._call``, for calls that submit work: if the stream ends meanwhile, memory still waits for it."""
        owner = self._take()
        try:
            return function(*arguments, owner.handle)
        finally:
            if self.timeline.ending:
                self.device.timelines.move_last(self.timeline, owner)
                del owner
                self.device.reaper.drain()

    def _refuse_captured(self, what: str, hint: str) -> None:
        """Refuse a call that would wait for work that is only being recorded."""
        if (session := session_of(self)) is not None:
            session.refuse(f"{what} of {self!r}, which is captured", hint)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which libraries exchange streams: its version and the handle."""
        return 0, int(self.handle)


@shows()
class use_stream(Block, OneProcess):  # noqa: N801 - used as a function
    """Context manager: makes ``stream`` current for this thread, on the stream's device.

    ``stream`` is a Stream or an object with ``__cuda_stream__``; None keeps the current stream.

    Raises:
        StreamError: ``stream`` is not a stream, was destroyed, or its device was closed.
    """

    __slots__ = ("_stream",)

    error: ClassVar[type[StreamError]] = StreamError

    @public
    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __repr__(self) -> str:
        return f"use_stream({self._stream!r})"

    @public
    def __enter__(self) -> Stream:
        given = self._stream
        stream = given if isinstance(given, Stream) else _Lookup.find(None).stream_for(given)
        stream._take()  # noqa: SLF001 - refuses a destroyed stream
        stream.device.streams.thread.use(stream.timeline, stream, self._begin())
        return stream

    @public
    def _end_early(self) -> None:
        raise StreamError("a use_stream block ended before it began", hint="use it with `with`")


_new_stream: Final = Stream.__new__


class _Lookup:
    """How streams find a device: ``devices``, which imports this module, sets it."""

    find: ClassVar[Callable[[object], StreamDevice]]


def set_device_lookup(find: Callable[[object], StreamDevice]) -> None:
    """Set ``find``, which returns the device that it is given, or the current device for None."""
    _Lookup.find = staticmethod(find)
