"""A capture that compares the calls of a function with those of an earlier recording.

The function runs in full, so everything that it depends on is evaluated again, but a call that equals the recorded one
is not recorded again.  A kernel call with the same objects is recognised by identity; other arrays or numbers are bound,
which takes less time than a launch.  At any other difference the comparison ends: the calls that matched become nodes,
and the rest is recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypedDict, TypeVar, cast

from quadpy.graph.captures.arena import Arena, ArenaMark
from quadpy.graph.captures.new_nodes import node_for
from quadpy.graph.captures.session import CaptureSession
from quadpy.graph.model.nodes import Node
from quadpy.graph.model.recording import AllocateMemory, LaunchStep, RecordEvent, Recording, Step, WaitEvent
from quadpy.graph.replays.comparison import Comparison
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.captured_work import CapturedWork, Copy
from quadpy.runtime.launch.capturing import CapturedEvent, CapturedStream, launching_kernel, set_replaying
from quadpy.runtime.memory.allocators.block import DeviceBuffer
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import is_exported
from quadpy.runtime.streams.stream import Stream

F = TypeVar("F", bound=Callable[..., Any])
B = TypeVar("B", DeviceBuffer, Buffer)

_HOST_ARRAY: Final = (
    "a kernel on a host array or on memory that others have a view of: Python may use it before the graph runs",
    "use an array of quadpy's, and copies of it: x.from_numpy(a), x.to_numpy()",
)


class _StepFacts(TypedDict):
    stream: CapturedStream | None
    node: Node | None
    after: tuple[str, ...]
    mark: ArenaMark


def _complete(method: F) -> F:
    """``method``; if Ctrl-C interrupts it, the capture gives no graph, even if somebody catches the exception."""

    @functools.wraps(method)
    def call(self: ReplaySession, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception:
            raise
        except BaseException:
            self._fail_incomplete()
            raise

    return cast("F", call)


class ReplaySession(CaptureSession):
    """Records what a function puts on ``origin`` where that differs from ``recording``."""

    def __init__(self, device: Device, origin: Stream, arena: Arena, recording: Recording | None) -> None:
        super().__init__(device, origin, strict=True, arena=arena)
        self.comparison = Comparison(device, origin, self._streams.after, recording)
        self._steps: list[Step] = []  # after the comparison has ended

    def begin(self) -> None:
        super().begin()
        set_replaying(self.comparison)

    def _leave(self) -> None:
        set_replaying(None)
        super()._leave()

    def ends_as_recorded(self) -> bool:
        """Whether the function repeated the whole recording, which ends the session; else ``end`` gives the graph."""
        if self.failed is not None:
            return False
        if not self.comparison.is_complete:
            self.stop_comparing()
            return False
        self._leave()
        self._over = True
        return True

    def recording(self) -> Recording:
        """The recording for the next call."""
        return Recording(self._steps)

    @_complete
    def record_launch(self, stream: CapturedStream, prepared: Any, *, draws: bool) -> None:
        self.stop_comparing()
        kernel, args = launching_kernel()
        for launch in getattr(prepared, "launches", (prepared,)):
            if any(isinstance(thing, HostView) or (self.host and is_exported(thing)) for thing in launch.keep):
                self.refuse(*_HOST_ARRAY)
        super().record_launch(stream, prepared, draws=draws)
        self._steps.append(LaunchStep(**self._facts(stream, has_node=True), kernel=kernel, args=args, draws=draws))

    # other calls

    @_complete
    def record(self, stream: CapturedStream, work: CapturedWork, keep: Sequence[object] = ()) -> None:
        """Record work that is not a launch of a kernel; CaptureError for a copy of host memory."""
        if isinstance(work, Copy) and work.direction != "within":
            self.refuse(*_HOST_ARRAY)
        kept = tuple(keep)
        if (step := self.comparison.match(work, stream, kept)) is not None:
            self.comparison.advance(step)
        elif self.comparison.can_change(work, stream):
            self.arena.rewind(self.comparison.arena_mark())
            self.comparison.change(node_for(work, self.device, self.arena, stream, kept).node, work, kept)
        else:
            self.stop_comparing()
            super().record(stream, work, kept)
            self._steps.append(Step(call=work, keep=kept, **self._facts(stream, has_node=True)))

    def device_memory(self, stream: CapturedStream, nbytes: int) -> DeviceBuffer:
        return self._allocate(DeviceBuffer, stream, nbytes, super().device_memory, stream)

    def host_memory(self, nbytes: int) -> Buffer:
        return self._allocate(Buffer, self.origin, nbytes, super().host_memory)

    @_complete
    def _allocate(
        self, kind: type[B], stream: CapturedStream, nbytes: int, allocate: Callable[..., B], *on: CapturedStream
    ) -> B:
        call = AllocateMemory(kind, nbytes)
        if (step := self.comparison.match(call, stream)) is not None:
            self.comparison.advance(step)
            assert isinstance(step.result, kind)
            return step.result
        self.stop_comparing()
        made = allocate(*on, nbytes)
        self._steps.append(Step(call=call, result=made, **self._facts(stream, has_node=False)))
        return made

    @_complete
    def record_event(self, stream: CapturedStream, event: CapturedEvent) -> None:
        step = self.comparison.match(RecordEvent(), stream)
        if step is not None:
            self._set_event(event, step.after)
            self.comparison.advance(step)
            return
        self.stop_comparing()
        super().record_event(stream, event)
        self._steps.append(Step(call=RecordEvent(), **self._facts(stream, has_node=False)))

    @_complete
    def wait_event(self, stream: CapturedStream, event: CapturedEvent) -> None:
        call = WaitEvent(event.captured.after if event.captured is not None else ())
        step = self.comparison.match(call, stream)
        if step is not None:
            self._fork_into(stream)
            self.comparison.advance(step)
            return
        self.stop_comparing()
        super().wait_event(stream, event)
        self._steps.append(Step(call=call, **self._facts(stream, has_node=False)))

    @_complete
    def stop_comparing(self) -> None:
        """End the comparison: the calls that matched become nodes, with the arguments of this time."""
        if not self.comparison.active:
            return
        self.comparison.active = False
        self._steps = self.comparison.matched_steps()
        after = self._streams.after
        after.update(dict.fromkeys(after, ()))
        for step in self._steps:
            stream = step.stream or self.origin
            if (node := step.current_node(self.device)) is not None:
                if isinstance(step, LaunchStep):
                    self._streams.after_homes(stream, node.keep)
                self.graph.register(node)
            after[stream.timeline] = step.after
        self.arena.rewind(self.comparison.arena_mark())

    def _facts(self, stream: CapturedStream, *, has_node: bool) -> _StepFacts:
        """The part of the session's state after a step that the step holds."""
        after = self._streams.after[stream.timeline]
        return {
            "stream": None if stream.timeline is self.origin.timeline else stream,
            "node": self.graph[after[0]] if has_node else None,
            "after": after,
            "mark": self.arena.mark(),
        }
