"""Streams as users hold them.  Owns: Stream, use_stream.  Imports: errors, Owned, timelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from quadpy.copying import OneProcess
from quadpy.errors import CaptureError, StreamError
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.drivers.driver import StreamHandle
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.launch.capturing import session_of, table
from quadpy.runtime.streams.owned import Owned, OwnerRef
from quadpy.runtime.streams.timeline import Timeline

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device

__all__ = ["Stream", "use_stream"]

T = TypeVar("T")


class Stream(Owned[StreamHandle]):
    """Device work that runs in the order given; ``qp.create_stream`` makes one.  Safe from any thread.

    Work on two streams has no order but what events give it.  ``with`` destroys the stream at its end.
    """

    __slots__ = ("_death", "_free", "timeline")

    kind: ClassVar[str] = "stream"
    error: ClassVar[type[StreamError]] = StreamError

    def __init__(
        self,
        device: Device,
        timeline: Timeline,
        seat: OwnerRef[StreamHandle] | None = None,
        free: Callable[[Any], object] | None = None,
        dropped: Callable[[Any], object] | None = None,
    ) -> None:
        """``free(seat)`` gives the handle back; so does ``dropped``, where it is another thing to do it later."""
        self.timeline, self._free = timeline, free
        self._ref: OwnerRef[StreamHandle] = timeline if seat is None else seat
        super().__init__(device, self._ref)
        self._death = None if free is None else device.reaper.adopt(self, dropped or free, self._ref)

    @staticmethod
    def from_handle(handle: int, device: Device | None = None) -> Stream:
        """A stream of another library (torch's ``stream.cuda_stream``, CuPy's ``stream.ptr``), borrowed.

        Its owner keeps it alive until this object is destroyed; destroying it leaves the stream as it is.  Where it is
        dropped without, memory that it used is free again only after the whole device was waited for.

        Raises:
            StreamError: no stream of ``device``; on the CPU, any handle but 0.
        """
        from quadpy.runtime.device.devices import device_or_current  # devices make streams

        return device_or_current(device).borrow_stream(handle)

    @property
    def usable(self) -> bool:
        """Whether nobody has destroyed it, as an object or by its handle."""
        return self._ref.owner is not None

    def synchronize(self) -> None:
        """Wait for all work on this stream, and raise what a host function of a graph on it raised."""
        self._need_work("synchronize()", "synchronize behind a launch of the graph")
        owner = self._take()
        self.device.driver.stream_synchronize(owner.handle)
        self.device.reaper.drain()
        self.device.failures.raise_first(self.timeline)

    def query(self) -> bool:
        """Whether all work on this stream is complete."""
        self._need_work("query()", "ask behind a launch of the graph")
        owner = self._take()
        return self.device.driver.stream_query(owner.handle)

    def destroy(self) -> None:
        """Give the stream back; its work still completes, and memory that it used waits for it.

        Doing it again does nothing.  A thread whose current stream it is goes back to the default one, with a warning:
        the calling thread now, another one when it next asks for its stream.

        Raises:
            StreamError: the default stream, which stays.
            CaptureError: it is being captured.
            DeviceError: called from within a host function of a graph.
        """
        if self is self.device.default_stream:
            raise StreamError("the default stream cannot be destroyed")
        refuse_in_host_function()
        if (session := table().streams.get(self.timeline)) is not None:
            session.refuse(f"destroy() of {self!r}, which is captured", "destroy it behind the capture")
        if self.timeline.captured is not None:
            hint = "destroy it when that capture has ended"
            raise CaptureError(f"{self!r} is captured by another thread", call_site(), hint=hint)
        if self._free is None:
            self._ref = OwnerRef(None)  # the handle is another object's
        else:
            self._free(self._ref)
            if self._death is not None:
                self._death.detach()
        self.device.leave(self)
        self.device.reaper.drain()

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        """As ``Owned._call``, for what submits work: that of a stream which ends meanwhile stays known to memory."""
        owner = self._take()
        try:
            return function(*arguments, owner.handle)
        finally:
            if self.timeline.ending:
                self.device.timelines.move_last(self.timeline, owner)
                del owner
                self.device.reaper.drain()

    def _need_work(self, what: str, hint: str) -> None:
        """Refuse what asks after work that is only noted."""
        if (session := session_of(self)) is not None:
            session.refuse(f"{what} of {self!r}, which is captured", hint)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which libraries hand streams to each other: its version, and the handle."""
        return 0, int(self.handle)


class use_stream(OneProcess):  # noqa: N801 - used as a function
    """Make ``stream`` the calling thread's stream of its device until the block ends.

    ``stream`` is a Stream, or an object with ``__cuda_stream__``; None is the stream that is current already.

    Raises:
        StreamError: ``stream`` is no stream, was destroyed, or its device was closed.
    """

    __slots__ = ("_stream", "_uses")

    error: ClassVar[type[StreamError]] = StreamError

    def __init__(self, stream: object) -> None:
        self._stream = stream
        self._uses: list[object] = []

    def __enter__(self) -> Stream:
        from quadpy.runtime.device.devices import current_device  # devices make streams

        given = self._stream
        stream = given if isinstance(given, Stream) else current_device().stream_for(given)
        stream._take()  # noqa: SLF001 - refuses one that was destroyed
        stream.device.use(stream, self._uses)
        return stream

    def __exit__(self, *exception: object) -> None:
        try:
            self._uses.pop()
        except IndexError:
            raise StreamError("a use_stream ended that had not begun", hint="use it with `with`") from None
