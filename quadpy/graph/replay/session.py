"""A function that runs again, held against what it did before.  Owns: ReplaySession.  Imports: sessions, tapes, nodes.

All that the function depends on is looked at, since it runs; but a call that is the one at its place in the tape is not
noted again.  A kernel that is called with the same objects is known by them; another array or number is bound, which takes
less than a launch.  Any other difference ends the comparison: what was found so far becomes nodes, and the rest is noted.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from operator import is_
from typing import Any, TypeVar, cast

import numpy as np

from quadpy.graph.capture.arena import Arena
from quadpy.graph.capture.session import CaptureSession
from quadpy.graph.model.nodes import Node
from quadpy.graph.replay.tape import LaunchStep, Mark, Step, Tape
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.device.current import State, launches_so_far, take_back_launches
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import Captured, launching_kernel, set_replaying
from quadpy.runtime.launch.launch import Bound
from quadpy.runtime.memory.device_memory import DeviceBuffer
from quadpy.runtime.memory.host_memory import Buffer
from quadpy.runtime.memory.host_storage import is_exported
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.stream import Stream

__all__ = ["ReplaySession"]

F = TypeVar("F", bound=Callable[..., Any])

_ON_HOST = (
    "a kernel on an array of the host, or one of whose memory others have a view: Python may use it before the graph runs",
    "use an array of quadpy's, and copies of it: x.from_numpy(a), x.to_numpy()",
)


def _whole(method: F) -> F:
    """``method``; where Ctrl-C falls into it, the capture comes to nothing, whoever catches that."""

    @functools.wraps(method)
    def call(self: ReplaySession, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception:
            raise
        except BaseException:
            self._break_off()
            raise

    return cast("F", call)


class ReplaySession(CaptureSession):
    """Notes what a function puts on ``origin``, as far as it is not what ``tape`` has already.

    comparing  whether all was the tape's so far
    bound      launches whose arguments are others this time, and those
    noted      other calls whose arguments are, by the number of the step: the node, and what the call was given
    packed     how many launches had to be packed to be compared
    """

    def __init__(self, device: Device, origin: Stream, arena: Arena, tape: Tape | None) -> None:
        super().__init__(device, origin, strict=True, arena=arena)
        self.bound: list[tuple[LaunchStep, tuple[Any, ...], Bound]] = []
        self.noted: dict[int, tuple[Node, tuple[Any, ...], tuple[Any, ...]]] = {}
        self.packed = 0
        self.comparing = tape is not None
        self._tape = tape or Tape(())
        self._calls, self._straight = self._tape.calls, self._tape.straight
        self._at = 0
        self._steps: list[Step] = []  # when nothing is compared any more
        self._config, self._here, self._timeline = State.config, device.streams.thread, origin.timeline
        self._inside = False  # one of its own calls
        self._aside: list[Node] | None = None

    def begin(self) -> None:
        super().begin()
        set_replaying(self)

    def _leave(self) -> None:
        set_replaying(None)
        super()._leave()

    def repeated(self) -> bool:
        """End it; whether the whole tape was repeated.  If not, ``end`` gives the graph."""
        if not self.comparing or self.failed is not None:
            return False
        if self._at < len(self._tape.steps):
            self.part()
            return False
        self._leave()
        self._over = True
        return True

    def tape(self) -> Tape:
        """What was noted, for the next call."""
        return Tape(self._steps)

    # launches

    def repeats(self, kernel: Any, args: tuple[Any, ...], stream: object) -> bool:
        """Whether a call of ``kernel`` is the next one of the tape, perhaps with other arguments: it is noted then."""
        found = self._calls[self._at] if self.comparing else None
        if found is None:
            return False
        number, step = found
        on = self._here.uses[-1].stream if stream is None else stream
        if step.kernel is not kernel or on is not (step.stream or self.origin) or State.config is not self._config:
            return False
        if not (all(map(is_, args, step.args)) and (step.settled or step.settles())):
            if (binder := step.binder or step.find_binder()) is None:
                return False
            drawn = launches_so_far() if step.draws else 0
            bound = binder.bind(self._timeline, *args)
            is_same = bound and step.block.startswith(bound.block)  # then what it keeps alive is at these addresses
            if not bound or not (is_same or self._straight):  # with forks, other memory may ask for another order
                if step.draws:
                    take_back_launches(drawn, launches_so_far())
                return False
            self.packed += 1
            if not is_same:
                self.bound.append((step, args, bound))
        self._at = number + 1
        if not self._straight:
            self._fronts[(step.stream or self.origin).timeline] = step.front
        return True

    @_whole
    def record_launch(self, stream: Stream, prepared: Any, *, draws: bool) -> None:
        """The launches of one call; ``draws`` says that random numbers depend on its number."""
        self.part()
        kernel, args = launching_kernel()
        for launch in getattr(prepared, "launches", (prepared,)):
            if any(isinstance(thing, HostView) or (self.host and is_exported(thing)) for thing in launch.keep):
                self.refuse(*_ON_HOST)
        super().record_launch(stream, prepared, draws=draws)
        self._steps.append(LaunchStep(**self._facts(stream, 1), kernel=kernel, args=args, draws=draws))

    # other calls

    def record_fill(self, stream: Stream, target: int, pattern: bytes, nbytes: int, keep: Sequence[object]) -> None:
        """As of any capture."""
        self._call(CaptureSession.record_fill, stream, (target, pattern, nbytes), tuple(keep))

    def record_copy(self, stream: Stream, target: int, source: int, nbytes: int, keep: Sequence[object]) -> None:
        """As of any capture."""
        self._call(CaptureSession.record_copy, stream, (target, source, nbytes), tuple(keep))

    def record_transfer(
        self, stream: Stream, target: int, source: int, nbytes: int, keep: Sequence[object], *, out: bool
    ) -> None:
        """CaptureError: Python may read or write the memory before the graph is launched."""
        self.refuse(*_ON_HOST)

    def record_constant(self, stream: Stream, target: int, data: Any, keep: Sequence[object]) -> None:
        """As of any capture."""
        self._call(_record_bytes, stream, (target, data.tobytes()), tuple(keep))

    def record_host(self, stream: Stream, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        """As of any capture."""
        self._call(_record_host, stream, (), (function, *arguments))

    def record_graph(self, stream: Stream, nodes: Sequence[Any]) -> None:
        """As of any capture."""
        self._call(_record_graph, stream, (), tuple(nodes))

    def device_memory(self, stream: Stream, nbytes: int) -> DeviceBuffer:
        """Memory that belongs to the graph."""
        found: DeviceBuffer = self._call(_device_memory, stream, (nbytes,), (), noting=0)
        return found

    def host_memory(self, nbytes: int) -> Buffer:
        """Memory of the host that belongs to the graph."""
        found: Buffer = self._call(_host_memory, self.origin, (nbytes,), (), noting=0)
        return found

    @_whole
    def record_event(self, stream: Stream, event: Event) -> None:
        """``event`` stands behind what was noted on ``stream``."""
        step = self._next(CaptureSession.record_event, stream, (), ())
        if step is None:
            self.part()
            super().record_event(stream, event)
            self._steps.append(Step(method=CaptureSession.record_event, **self._facts(stream, 0)))
        else:
            self._events.append((event, event.captured))
            event.captured = Captured(weakref.ref(self), step.front)
            self._pass(self._at, step)

    @_whole
    def wait_event(self, stream: Stream, event: Event) -> None:
        """What comes on ``stream`` comes behind ``event``."""
        after = event.captured.after if event.captured is not None else ()
        step = self._next(CaptureSession.wait_event, stream, after, ())
        if step is None:
            self.part()
            super().wait_event(stream, event)
            self._steps.append(Step(method=CaptureSession.wait_event, values=after, **self._facts(stream, 0)))
        else:
            if stream.timeline not in self._streams:
                if stream.timeline.captured is not None:
                    self.refuse(f"a fork into {stream!r}, which another thread captures", "use another stream")
                self._add(stream)
            self._pass(self._at, step)

    # how

    @_whole
    def _call(
        self,
        method: Callable[..., Any],
        stream: Stream,
        values: tuple[Any, ...],
        keep: tuple[Any, ...],
        noting: int = 1,
    ) -> Any:
        """``method(self, stream, *values, keep)``, or what it did at this place of the tape."""
        if self._inside:
            return method(self, stream, *values, keep)
        step = self._next(method, stream, values, keep)
        if step is not None:
            self._pass(self._at, step)
            return step.result
        if self._changes(method, stream, values, keep):
            return None
        self.part()
        result = self._alone(method, stream, *values, keep)
        self._steps.append(
            Step(method=method, values=values, keep=keep, result=result, **self._facts(stream, noting))
        )  # fmt: skip
        return result

    def _alone(self, method: Callable[..., Any], *args: Any) -> Any:
        """``method(self, *args)``, whatever other methods it calls."""
        self._inside = True
        try:
            return method(self, *args)
        finally:
            self._inside = False

    def _next(
        self, method: Callable[..., Any], stream: Stream, values: tuple[Any, ...], keep: tuple[Any, ...]
    ) -> Step | None:
        """The next step of the tape, where it is this call."""
        if not self.comparing or self._at >= len(self._tape.steps):
            return None
        step = self._tape.steps[self._at]
        there = (step.stream or self.origin).timeline
        alike = step.method is method and stream.timeline is there and step.values == values
        return step if alike and len(keep) == len(step.keep) and all(map(is_, keep, step.keep)) else None

    def _changes(
        self, method: Callable[..., Any], stream: Stream, values: tuple[Any, ...], keep: tuple[Any, ...]
    ) -> bool:
        """Whether it is the next call of the tape with other arguments, whose node comes at the same place."""
        number = self._at
        if not self.comparing or not self._straight or number >= len(self._tape.steps):
            return False
        step = self._tape.steps[number]
        if step.method is not method or method not in _CHANGEABLE or stream.timeline is not self.origin.timeline:
            return False
        self._restore(self._mark_before(number))
        self._aside = []
        try:
            self._alone(method, stream, *values, keep)
            (node,) = self._aside
        finally:
            self._aside = None
        self.noted[number] = node, values, keep
        self._pass(number, step)
        return True

    def _pass(self, number: int, step: Step) -> None:
        """Go on behind step ``number``."""
        self._at = number + 1
        if not self._straight:
            self._fronts[(step.stream or self.origin).timeline] = step.front

    @_whole
    def part(self) -> None:
        """Compare no more: what was found in the tape is noted, with the arguments of now."""
        if not self.comparing:
            return
        self.comparing = False
        self._steps = [self._step_now(number) for number in range(self._at)]
        self._fronts = {self.origin.timeline: ()}
        for step in self._steps:
            stream = step.stream or self.origin
            if (node := step.node_now(self.device)) is not None:
                if isinstance(step, LaunchStep):
                    self._after_homes(stream, node.keep)
                self.graph.register(node)
            self._fronts[stream.timeline] = step.front
        self._restore(self._mark_before(self._at))

    def _step_now(self, number: int) -> Step:
        known = self._tape.steps[number]
        step = copy(known)
        if isinstance(step, LaunchStep):
            for one, args, bound in self.bound:
                if one is known:
                    step.bind(args, bound)
        elif number in self.noted:
            step.change(*self.noted[number])
        return step

    def _note(self, stream: Stream, node: Node, kind: str, also: Sequence[str] = ()) -> None:  # type: ignore[override]
        if self._aside is None:
            super()._note(stream, node, kind, also)
        else:
            self._aside.append(node)

    def _facts(self, stream: Stream, noting: int) -> dict[str, Any]:
        """What a step says of the session behind it."""
        front = self._fronts[stream.timeline]
        return {
            "stream": None if stream.timeline is self.origin.timeline else stream,
            "node": self.graph[front[0]] if noting else None,
            "front": front,
            "mark": (self.arena.mark(), self.draws),
        }

    def _mark_before(self, number: int) -> Mark:
        return self._tape.steps[number - 1].mark if number else ((0, 0, 0), 0)

    def _restore(self, mark: Mark) -> None:
        taken, self.draws = mark
        self.arena.rewind(taken)


def _record_bytes(session: CaptureSession, stream: Stream, target: int, data: bytes, keep: tuple[object, ...]) -> None:
    CaptureSession.record_constant(session, stream, target, np.frombuffer(data, np.uint8), keep)


def _record_host(session: CaptureSession, stream: Stream, call: tuple[Any, ...]) -> None:
    CaptureSession.record_host(session, stream, call[0], call[1:])


def _record_graph(session: CaptureSession, stream: Stream, nodes: tuple[Any, ...]) -> None:
    CaptureSession.record_graph(session, stream, nodes)


def _device_memory(session: CaptureSession, stream: Stream, nbytes: int, _keep: tuple[object, ...]) -> DeviceBuffer:
    return CaptureSession.device_memory(session, stream, nbytes)


def _host_memory(session: CaptureSession, _stream: Stream, nbytes: int, _keep: tuple[object, ...]) -> Buffer:
    return CaptureSession.host_memory(session, nbytes)


_CHANGEABLE = frozenset({CaptureSession.record_fill, CaptureSession.record_copy, _record_bytes, _record_host})
"""What notes one node, which can be changed to one with other arguments."""
