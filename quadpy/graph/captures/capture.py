"""``qp.graph.capture`` and ``qp.graph.host_function``."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from quadpy.core.copying import OneProcess
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError, CaptureError
from quadpy.graph.building.graph import Graph
from quadpy.graph.captures.session import CaptureSession
from quadpy.runtime.device.blocks import Block, whole
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.launch.captured_work import HostFunction
from quadpy.runtime.launch.capturing import differentiating_here, session_of
from quadpy.runtime.streams.stream import Stream


class capture(Block, OneProcess):  # noqa: N801 - used like a statement, so lower case
    """``with qp.graph.capture() as g:`` makes a graph of the work that the block submits to a stream; nothing runs.

    Everything that the calling thread submits to ``stream`` is recorded: kernels, copies, fills, allocations of arrays,
    host functions and launches of graphs.  A stream that waits for an event recorded there is captured from then on, and
    must be joined the same way before the block ends.  Other streams and other threads are not affected.

    After the block, ``g`` is a ``Graph`` like any other.  An exception in the block propagates, and there is no graph.

    Args:
        stream: the stream to capture, by default the calling thread's current stream; may be the default stream.
        device: the device whose current stream is captured if ``stream`` is None; by default the current device.

    Raises:
        CaptureError: the stream is already being captured; or a call in the block cannot be captured; or a fork was not
            joined.
    """

    error: ClassVar[type[CaptureError]] = CaptureError

    @public
    def __init__(self, stream: object = None, *, device: Device | None = None) -> None:
        self._stream, self._device = stream, device
        self._session: CaptureSession | None = None

    @public
    def __enter__(self) -> Graph:
        if self._session is not None:
            hint = "call qp.graph.capture again"
            raise CaptureError("a capture object can be used only once", call_site(), hint=hint)
        refuse_in_host_function()
        stream = self._stream
        device = device_or_current(stream.device if isinstance(stream, Stream) else self._device)
        device.life.check()
        self._session = session = CaptureSession(device, device.stream_for(stream))
        # If an interrupt comes before the block begins, or before the first instruction of ``_end``.
        self._last = weakref.finalize(self._begin()(), session.abort)
        self._last.atexit = False
        try:
            session.begin()
        except BaseException:
            session.abort()
            raise
        return session.graph

    @public
    def _end(self, about: None, kind: type[BaseException] | None, *exception: object) -> None:
        assert self._session is not None
        try:
            if kind is None:
                self._session.end()
        finally:
            whole(self._session.abort)  # does nothing after a regular end
            self._last.detach()

    def _end_early(self) -> None:
        if self._session is not None:
            self._session.abort()


@public
def host_function(function: Callable[..., object], *args: Any, stream: object = None) -> None:
    """Call ``function(*args)`` on the host after the work on ``stream`` so far; later work there waits for it.

    In a capture the call becomes a node.  The function must not call quadpy; an exception is raised by the next
    synchronize of the stream or the device.

    Raises:
        ArgumentError: ``function`` cannot be called.
        StreamError: ``stream`` was destroyed.
    """
    if not callable(function):
        raise ArgumentError(f"{function!r} is not a function")
    if differentiating_here() is not None:
        raise ArgumentError(
            "a host function is called while derivatives are taken, and may change any array", call_site(),
            hint="call it before or after",
        )  # fmt: skip
    device = device_or_current(stream.device if isinstance(stream, Stream) else None)
    on = device.stream_for(stream)
    if (session := session_of(on)) is not None:
        session.record(on, HostFunction(function, args))
        return
    graph = Graph(device)
    graph.add_host(function, *args)
    with graph.instantiate() as once:
        once.launch(on)
