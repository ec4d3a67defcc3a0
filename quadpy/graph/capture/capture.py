"""Calls that become a graph.  Owns: capture, host_function.  Imports: errors, sessions, devices."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar

from quadpy.copying import OneProcess
from quadpy.errors import ArgumentError, CaptureError
from quadpy.graph.capture.session import CaptureSession
from quadpy.graph.model.graph import Graph
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.launch.call_site import call_site
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.streams.stream import Stream

__all__ = ["capture", "host_function"]


class capture(OneProcess):  # noqa: N801 - it reads as a statement
    """``with qp.graph.capture() as g:`` makes a graph of what the block puts on a stream; nothing of it runs.

    What the calling thread puts on ``stream`` is noted: kernels, copies, fills, arrays that are made, host functions and
    launches of graphs.  A stream that waits for an event recorded there is captured from then on, and must be joined
    the same way before the block ends.  Other streams, and other threads, work as always.

    ``g`` is a ``Graph`` like any other when the block has ended.  An exception in the block is raised as it is, and
    leaves no graph.

    Args:
        stream: the calling thread's by default; the default stream can be captured, too.
        device: whose stream it is, where ``stream`` is None; the current one by default.

    Raises:
        CaptureError: the stream is captured already; or something in the block cannot be noted, or was not joined.
    """

    error: ClassVar[type[CaptureError]] = CaptureError

    def __init__(self, stream: object = None, *, device: Device | None = None) -> None:
        self._stream, self._device = stream, device
        self._session: CaptureSession | None = None

    def __enter__(self) -> Graph:
        if self._session is not None:
            hint = "call qp.graph.capture again"
            raise CaptureError("one capture object captures once", call_site(), hint=hint)
        refuse_in_host_function()
        stream = self._stream
        device = device_or_current(stream.device if isinstance(stream, Stream) else self._device)
        device.life.check()
        self._session = session = CaptureSession(device, device.stream_for(stream))
        # An interrupt just before the block, or before the first instruction of ``__exit__``, can be caught nowhere:
        # then the capture is over when this object is gone.
        self._last = weakref.finalize(self, session.abort)
        self._last.atexit = False
        try:
            session.begin()
        except BaseException:
            session.abort()
            raise
        return session.graph

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session = self._session
        if session is None:
            return
        try:
            if kind is None:
                session.end()
        finally:
            session.abort()  # does nothing behind a good end
            self._last.detach()


def host_function(function: Callable[..., object], *args: Any, stream: object = None) -> None:
    """A call ``function(*args)`` on the host, behind the work on ``stream`` so far; later work there waits for it.

    In a capture it becomes a node.  The function may not call quadpy; what it raises is raised by the next synchronize
    of the stream or the device.

    Raises:
        ArgumentError: ``function`` is none.
        StreamError: ``stream`` was destroyed.
    """
    if not callable(function):
        raise ArgumentError(f"{function!r} is no function")
    device = device_or_current(stream.device if isinstance(stream, Stream) else None)
    on = device.stream_for(stream)
    if (session := session_of(on)) is not None:
        session.record_host(on, function, args)
        return
    graph = Graph(device)
    graph.add_host(function, *args)
    with graph.instantiate() as once:
        once.launch(on)
