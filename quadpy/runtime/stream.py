"""Streams as users hold them.  Owns: Stream, use_stream.  Imports: errors, Owned, timelines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar

from quadpy.errors import CaptureError, StreamError
from quadpy.runtime.capturing import session_of, table
from quadpy.runtime.driver import StreamHandle
from quadpy.runtime.owned import Owned
from quadpy.runtime.place import caller_span
from quadpy.runtime.timeline import Timeline

if TYPE_CHECKING:
    from quadpy.runtime.device import Device

__all__ = ["Stream", "use_stream"]


class Stream(Owned[StreamHandle]):
    """Device work that runs in the order given; ``qp.create_stream`` makes one.  Safe from any thread.

    Work on two streams has no order but what events give it.  ``with`` destroys the stream at its end.
    """

    __slots__ = ("timeline",)

    kind: ClassVar[str] = "stream"
    error: ClassVar[type[StreamError]] = StreamError

    def __init__(
        self,
        device: Device,
        timeline: Timeline,
        free: Callable[[StreamHandle], None] | None,
        dropped: Callable[[StreamHandle], None] | None = None,
    ) -> None:
        super().__init__(device, timeline.handle, free, dropped)
        self.timeline = timeline

    @staticmethod
    def from_handle(handle: int, device: Device | None = None) -> Stream:
        """A stream of another library (torch's ``stream.cuda_stream``, CuPy's ``stream.ptr``), borrowed.

        Its owner keeps it alive until this object is destroyed; destroying it leaves the stream as it is.  One that is
        dropped without is given up at the next drain, which then waits for the whole device.

        Raises:
            StreamError: no stream of ``device``; on the CPU, any handle but 0.
        """
        from quadpy.runtime.devices import current_device  # devices make streams

        return (device or current_device()).borrow_stream(handle)

    @property
    def usable(self) -> bool:
        """Whether nobody has destroyed it, as an object or by its handle."""
        return self._alive and self.timeline.last is None

    def synchronize(self) -> None:
        """Wait for all work on this stream, and raise what a host function of a graph on it raised."""
        self._need_work("synchronize()", "synchronize behind a launch of the graph")
        self._call(self.device.streams.synchronize_stream)
        self.device.reaper.drain()
        self.device.failures.raise_first(self.timeline)

    def query(self) -> bool:
        """Whether all work on this stream is complete."""
        self._need_work("query()", "ask behind a launch of the graph")
        return self._call(self.device.streams.query_stream)

    def destroy(self) -> None:
        """Give the stream back; its work still completes, and memory that it used waits for it.

        Doing it again does nothing.  A thread whose current stream it is goes back to the default one, with a warning:
        the calling thread now, another one when it next asks for its stream.

        Raises:
            StreamError: the default stream, which stays.
            CaptureError: it is being captured.
        """
        if self is self.device.default_stream:
            raise StreamError("the default stream cannot be destroyed")
        if (session := table().streams.get(self.timeline)) is not None:
            session.refuse(f"destroy() of {self!r}, which is captured", "destroy it behind the capture")
        if self.timeline.captured is not None:
            hint = "destroy it when that capture has ended"
            raise CaptureError(f"{self!r} is captured by another thread", caller_span(), hint=hint)
        super().destroy()
        self.device.leave(self)

    def _need_work(self, what: str, hint: str) -> None:
        """Refuse what asks after work that is only noted."""
        if (session := session_of(self)) is not None:
            session.refuse(f"{what} of {self!r}, which is captured", hint)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which libraries hand streams to each other: its version, and the handle."""
        return 0, int(self.handle)


@contextlib.contextmanager
def use_stream(stream: Stream) -> Iterator[Stream]:
    """Make ``stream`` the calling thread's stream of its device until the block ends.

    Raises:
        StreamError: ``stream`` was destroyed, or its device was closed.
    """
    before = stream.device.exchange_current(stream)
    try:
        yield stream
    finally:
        stream.device.restore_current(before)
