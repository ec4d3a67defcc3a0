"""Measures the calls of one driver while a profile is open.

The driver's methods are replaced on the object itself, and restored at the end: a driver that is not profiled has no
overhead.

The times of work are those of events around it, on the clock of the host.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadpy.errors import DriverError
from quadpy.profiler.recorder import Recorder, device_name
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.device.reaper import Owner
from quadpy.runtime.drivers.driver import Address, Dim3, EventHandle, FunctionHandle, StreamHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quadpy.profiler.records import Kind, Work
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.graph_driver import ExecHandle
    from quadpy.runtime.launch.observing import TimedNode

_WAITS: Final = {
    "stream_synchronize": "wait for a stream", "event_synchronize": "wait for an event", "synchronize": "wait for the device",
}  # fmt: skip
_SLOW: Final = {
    "alloc": "allocate", "alloc_async": "allocate from the pool", "free": "free", "alloc_pinned": "allocate pinned memory",
    "free_pinned": "free pinned memory", "module_load": "load code",
}  # fmt: skip
"""Calls that may take long; most of them cause no work on the device."""
_COPIES: Final = {"copy_in": "copy to the device", "copy_out": "copy to the host", "copy_within": "copy on the device"}


class DriverProbe:
    """Reports the work of the GPU ``device`` to ``recorder``, and sets the times of the works."""

    def __init__(self, recorder: Recorder, device: Device) -> None:
        self._recorder, self._device = recorder, device
        self.name = device_name(device.driver)
        self.timer = DeviceTimer(device)
        self._apart: dict[StreamHandle, tuple[Work, Mark | None]] = {}
        """Cooperative launches: events wait for them only after the fill that follows them."""
        self.attached = False

    def attach(self) -> None:
        """Measure all calls from now on; twice does nothing, and after an interrupt does the rest."""
        if self.attached:
            return
        self.detach()
        driver = self._device.driver
        replaced: dict[str, Callable[..., Any]] = {
            "launch": self._launching(driver.launch),
            "launch_cooperative": self._launching(
                driver.launch_cooperative, apart="cooperative-apart" in driver.features
            ),
            "fill": self._filling(driver.fill),
            **{verb: self._copying(getattr(driver, verb), name) for verb, name in _COPIES.items()},
            **{verb: self._on_host(getattr(driver, verb), "wait", name) for verb, name in _WAITS.items()},
            **{verb: self._on_host(getattr(driver, verb), "driver", name) for verb, name in _SLOW.items()},
        }
        vars(driver).update(replaced)
        if (graphs := getattr(driver, "graphs", None)) is not None:
            vars(graphs)["launch"] = self._launching_graph(graphs.launch)
        self.attached = True

    def detach(self) -> None:
        """Restore the driver."""
        self.attached = False
        driver = self._device.driver
        for verb in ("launch", "launch_cooperative", "fill", *_COPIES, *_WAITS, *_SLOW):
            vars(driver).pop(verb, None)
        if (graphs := getattr(driver, "graphs", None)) is not None:
            vars(graphs).pop("launch", None)

    def settle(self) -> None:
        """Like ``NodeTimer.settle``."""
        self.timer.settle(wait=True)

    def launched(self, nodes: Sequence[TimedNode], stream: StreamHandle) -> None:
        """Like ``NodeTimer.launched``."""
        call, labels = self._recorder.thread.launching, self._device.modules.labels
        for node in nodes:
            work = self._work("node", node.name, stream, node.nbytes)
            work.span, work.graph = node.span, "graph" if call is None else call.name
            if node.function is not None:
                work.name, work.task, work.span = labels[node.function]
            self._recorder.add(work)
            self.timer.add(work, node.begin._take(), node.end._take(), ours=False)  # noqa: SLF001 - lives while it is read

    def _work(self, kind: Kind, name: str, stream: StreamHandle, nbytes: int = 0) -> Work:
        work = self._recorder.made(kind, name, self.name, self._recorder.stream_at(self._device, stream))
        work.nbytes = nbytes
        return work

    def _measured(self, work: Work, stream: StreamHandle, submit: Callable[..., None], *arguments: object) -> None:
        begin = self.timer.mark(stream)
        submit(*arguments)
        self._recorder.add(work)
        self.timer.add(work, begin, self.timer.mark(stream))

    def _launching(self, launch: Callable[..., None], *, apart: bool = False) -> Callable[..., None]:
        labels = self._device.modules.labels

        def measured(
            function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle, arguments: object
        ) -> None:
            label = labels[function]
            work = self._work("kernel", label.name, stream)
            work.task, work.span = label.task, label.span
            call = function, grid, block, shared, stream, arguments
            if not apart:
                self._measured(work, stream, launch, *call)
                return
            begin = self.timer.mark(stream)
            launch(*call)
            self._recorder.add(work)
            self._apart[stream] = work, begin

        return measured

    def _filling(self, fill: Callable[..., None]) -> Callable[..., None]:
        def measured(target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
            if (launched := self._apart.pop(stream, None)) is not None:
                fill(target, value, nbytes, stream)
                self.timer.add(*launched, self.timer.mark(stream))
            else:
                self._measured(self._work("fill", "fill", stream, nbytes), stream, fill, target, value, nbytes, stream)

        return measured

    def _copying(self, copy: Callable[..., None], name: str) -> Callable[..., None]:
        def measured(target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
            self._measured(self._work("copy", name, stream, nbytes), stream, copy, target, source, nbytes, stream)

        return measured

    def _launching_graph(self, launch: Callable[..., None]) -> Callable[..., None]:
        def measured(exec_: ExecHandle, stream: StreamHandle) -> None:
            call = self._recorder.thread.launching
            work = self._work("graph", "graph" if call is None else call.name, stream)
            work.span = None if call is None else call.span
            self._measured(work, stream, launch, exec_, stream)

        return measured

    def _on_host(self, call: Callable[..., Any], kind: Kind, name: str) -> Callable[..., Any]:
        def measured(*arguments: object) -> Any:
            began = time.perf_counter_ns()
            try:
                return call(*arguments)
            finally:
                self._recorder.on_host(kind, name, began)

        return measured


_TRIES: Final = 5
"""Repetitions of a measurement; the shortest one counts."""
_MANY: Final = 512
"""When this many works wait for their times, the complete ones get them."""

Mark = Owner[EventHandle]
"""The event of a point in a stream's work."""


class _Timed(NamedTuple):
    """``ours`` says whether the marks may be used again; else they are a graph's."""

    work: Work
    begin: Mark
    end: Mark
    ours: bool


class DeviceTimer:
    """Works of ``device``, each between two events.

    empty  nanoseconds between two events with nothing between them, which the device itself adds to each time
    error  the largest shift, in nanoseconds, of the device's times against the host's
    """

    def __init__(self, device: Device) -> None:
        self._device, self._driver = device, device.driver
        self._spare: list[Mark] = []
        self._pending: deque[_Timed] = deque()
        self._lock: Final = new_lock()
        self._record = self._driver.event_record  # before it is replaced
        self._wait = self._driver.event_synchronize
        self.empty = self.error = 0
        self._origin, self._origin_ns = self._calibrated()

    def mark(self, stream: StreamHandle) -> Mark | None:
        """A point after the work so far on ``stream``; None if the driver refuses, as in another library's capture."""
        event = self._event()
        try:
            self._record(event.handle, stream)
        except DriverError:
            return None
        return event

    def add(self, work: Work, begin: Mark | None, end: Mark | None, *, ours: bool = True) -> None:
        """Note that ``work`` runs between two marks, which belong to the timer only if they are ``ours``."""
        if begin is None or end is None:
            return
        self._pending.append(_Timed(work, begin, end, ours))
        if len(self._pending) > _MANY:
            self.settle(wait=False)

    def settle(self, *, wait: bool) -> None:
        """Give the works that are complete their times; with ``wait``, all of them."""
        with self._lock:
            while self._pending:
                timed = self._pending.popleft()  # first, as a finalizer may come here, too
                if self._device.life.ended is not None:
                    continue
                try:
                    if wait:
                        self._wait(timed.end.handle)
                    elif not self._driver.event_query(timed.end.handle):
                        self._pending.appendleft(timed)
                        return
                    self._set(timed)
                except DriverError:  # a lost device, or a record in another library's capture: its time stays unknown
                    continue
                if timed.ours:
                    self._spare += timed.begin, timed.end

    def _set(self, timed: _Timed) -> None:
        """Durations are exact to the events' resolution; starts, to the resolution of a float of milliseconds."""
        begin = self._origin_ns + self._ns(self._origin, timed.begin)
        timed.work.begin, timed.work.end = begin, begin + self._ns(timed.begin, timed.end)

    def _ns(self, start: Mark, end: Mark) -> int:
        return round(self._driver.event_elapsed(start.handle, end.handle) * 1e6)

    def _event(self) -> Mark:
        try:
            return self._spare.pop()
        except IndexError:
            create = functools.partial(self._driver.event_create, timing=True)
            return self._device.reaper.own(self._driver.event_destroy, create)

    def _calibrated(self) -> tuple[Mark, int]:
        """An event, and when it took place on the host's clock; it is recorded on a stream that has no other work."""
        driver = self._driver
        stream = self._device.reaper.own(driver.stream_destroy, driver.stream_create, 0)
        found: list[tuple[int, int, Mark]] = []
        gaps: list[int] = []
        for _ in range(_TRIES):
            mark, after = self._event(), self._event()
            began = time.perf_counter_ns()
            self._record(mark.handle, stream.handle)
            self._wait(mark.handle)
            took = time.perf_counter_ns() - began
            found.append((took, began + took // 2, mark))
            between = self._event()
            self._record(between.handle, stream.handle)
            self._record(after.handle, stream.handle)
            self._wait(after.handle)
            gaps.append(self._ns(between, after))
        took, moment, mark = min(found, key=lambda each: each[0])
        self.empty, self.error = min(gaps), took // 2
        return mark, moment
