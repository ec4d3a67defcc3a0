"""Steps of several ranks as graphs, cut at the messages between ranks."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.public import public
from quadpy.dist.world import world
from quadpy.errors import CaptureError, QuadpyError
from quadpy.graph.building.graph import Graph
from quadpy.graph.captures.capture import capture as capture_work
from quadpy.runtime.device.blocks import Block, Lasting
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.streams.stream import Stream

T = TypeVar("T")


@shows("launch")
class CapturedStep(OneProcess):
    """The work of a function as graphs, with the messages between ranks between them; made by ``quadpy.dist.capture``."""

    error: ClassVar[type[QuadpyError]] = CaptureError
    instead: ClassVar[str] = "pickle the function that it was captured from"

    __slots__ = ("__weakref__", "_calls", "_graph", "_number", "_open", "_parts", "graphs")

    def __init__(self) -> None:
        self._calls = world().calls
        self._parts: list[Callable[[], object]] = []
        self._open: capture_work | None = None
        self._graph: Graph | None = None
        self.graphs = self._number = 0

    def launch(self) -> None:
        """Run the work again, on the stream on which it was captured; all ranks must call it together."""
        self._calls.add(self._number, f"a launch of the step that was captured at call {self._number}", ())
        for part in self._parts:
            part()

    def record(self, function: Callable[[], object]) -> None:
        """Capture what ``function`` does."""
        self._begin()
        function()
        self._end()
        self._number = self._calls.number

    def abandon(self) -> None:
        """End a capture that an error or an interrupt left open."""
        if self._open is not None:
            self._open._end_early()  # noqa: SLF001 - what its own ``with`` statement would do

    def cut(self, action: Callable[[], object]) -> None:
        """Run ``action`` at each launch, between the work before it and the work after it."""
        self._end()
        self._parts.append(action)
        self._begin()

    def outside(self, function: Callable[[], T]) -> T:
        """The result of ``function``, which is not captured: its work runs now, and not at launches."""
        self._end()
        try:
            return function()
        finally:
            self._begin()

    def _begin(self) -> None:
        self._open = capture_work()
        self._graph = self._open.__enter__()

    def _end(self) -> None:
        assert self._open is not None
        assert self._graph is not None
        self._open.__exit__(None, None, None)
        if len(self._graph):
            self._parts.append(self._graph.instantiate().launch)
            self.graphs += 1
        self._open = self._graph = None


class _Recording(threading.local):
    """The step that the calling thread captures, if any."""

    def __init__(self) -> None:
        self.steps: Lasting[CapturedStep] = Lasting()

    @property
    def step(self) -> CapturedStep | None:
        return next(iter(tuple(self.steps.values())), None)


_here: Final = _Recording()


class _Capturing(Block):
    """Context manager: inside, the calling thread captures ``step``."""

    def __init__(self, step: CapturedStep) -> None:
        self.step = step

    def __enter__(self) -> None:
        lifetime = self._begin()
        _here.steps.add(lifetime, self.step)
        # If an interrupt comes before the first instruction of ``_end``.
        self._last = weakref.finalize(lifetime(), self.step.abandon)
        self._last.atexit = False

    def _end(self, about: Any, *exception: Any) -> None:
        self.step.abandon()
        self._last.detach()


def capture_of(stream: Stream) -> object | None:
    """The step that the calling thread captures, else the capture of ``stream``; None outside of captures."""
    return _here.step or (session_of(stream) if CAPTURES.count else None)


def apart(action: Callable[[], object]) -> None:
    """Run ``action``, which sends messages: now, or in a captured step at each launch."""
    if _here.step is None:
        action()
    else:
        _here.step.cut(action)


def outside(function: Callable[[], T]) -> T:
    """The result of ``function``; in a captured step, too, its work runs now, and not at launches."""
    return function() if _here.step is None else _here.step.outside(function)


@public
def capture(function: Callable[[], object]) -> CapturedStep:
    """Capture what ``function`` submits to the calling thread's stream, on every rank, as graphs with messages between them.

    ``function`` first runs normally, which creates halos and buffers, and then once more to be captured, without running
    its work.  Therefore, a program that captures its step has run one step.

    Raises:
        CaptureError: ``function`` does something that cannot be captured, such as using the result of a kernel; or the call is inside another capture.
    """
    if _here.step is not None:
        raise CaptureError("a step is already being captured", hint="capture one step after the other")
    function()
    step = CapturedStep()
    with _Capturing(step):
        step.record(function)
    return step
