"""The observer of work behind a profile: it is told of all requested work, and times the CPU's work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from quadpy.core.messages import counted
from quadpy.profiler.driver_probe import DriverProbe
from quadpy.profiler.recorder import Recorder
from quadpy.profiler.records import Kind, Work
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.life import Life
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.launch.observing import (
    NOT_NOTED,
    NodeTimer,
    ObservedCall,
    ObservedNode,
    ObservedStream,
    Observer,
    Submission,
    TaskTimes,
)


class _Call:
    """A call of a kernel, or a launch of a graph, until it returns."""

    __slots__ = ("_recorder", "_work", "node_timer", "task_times")

    def __init__(
        self, recorder: Recorder, work: Work, task_times: TaskTimes | None = None, node_timer: NodeTimer | None = None
    ) -> None:
        self._recorder, self._work, self.task_times, self.node_timer = recorder, work, task_times, node_timer
        recorder.thread.launching = work
        work.begin = time.perf_counter_ns()

    def done(self) -> None:
        """Like ``Submission.done``."""
        self._recorder.thread.launching = None
        self._work.end = time.perf_counter_ns()
        self._recorder.add(self._work)


class Watcher(Observer):
    """Tells ``recorder`` of all work; each GPU has a ``DriverProbe`` from the first work on it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._probes: dict[Life, DriverProbe] = {}
        self._lock: Final = new_lock()

    # devices

    def attach(self, device: object) -> DriverProbe | None:
        """Measure the work of ``device``; None for the CPU, which measures itself."""
        assert isinstance(device, Device)
        if "host" in device.driver.features:
            return None
        found = self._probes.get(device.life)
        if found is None or not found.attached:
            device.life.check()
            with self._lock:
                found = self._probes.get(device.life) or DriverProbe(self._recorder, device)
                self._probes[device.life] = found
                found.attach()
        return found

    def detach(self) -> None:
        """Measure nothing any more."""
        with self._lock:
            for probe in self._probes.values():
                probe.detach()
            self._probes.clear()

    def settle(self) -> None:
        """Wait until all works have their times."""
        for probe in tuple(self._probes.values()):
            probe.timer.settle(wait=True)

    @property
    def probes(self) -> tuple[DriverProbe, ...]:
        """The probes of the GPUs that were used."""
        return tuple(self._probes.values())

    # as an observer

    def launching(self, on: ObservedStream, call: ObservedCall) -> Submission:
        """Like ``Observer.launching``."""
        probe = self.attach(on.device)
        work = self._new_call(call.name)
        work.span = call.span
        if probe is not None:
            return _Call(self._recorder, work, node_timer=self._node_timer(probe))
        stream, tasks = self._recorder.stream(on.timeline), call.tasks()

        def task(number: int, begin: int, end: int) -> None:
            done = self._on_cpu("kernel", call.name, stream)
            done.task, done.span = number if len(tasks) > 1 else None, tasks[number] or call.span
            self._recorder.timed(done, begin, end)

        return _Call(self._recorder, work, task)

    def launching_graph(
        self, on: ObservedStream, graph: object, version: object, nodes: Callable[[], Sequence[ObservedNode]], *, overlap: bool
    ) -> Submission:  # fmt: skip
        """Like ``Observer.launching_graph``."""
        probe, known = self.attach(on.device), nodes()
        name = f"graph of {counted(len(known), 'node')}"
        work = self._new_call(name)
        work.span = known[0].span if known else None
        if probe is not None:
            return _Call(self._recorder, work, node_timer=self._node_timer(probe))
        stream = self._recorder.stream(on.timeline)

        def node(number: int, begin: int, end: int) -> None:
            if number < 0:
                done = self._on_cpu("graph", name, stream)
                done.span = work.span
            else:
                done = self._on_cpu("node", known[number].what or known[number].name, stream)
                done.graph, done.span = name, known[number].span
            self._recorder.timed(done, begin, end)

        return _Call(self._recorder, work, node)

    def reading(self, on: ObservedStream, source: ObservedAccess) -> None:
        """Like ``Observer.reading``; the host reads its own memory in place."""
        self.attach(on.device)

    def writing(self, on: ObservedStream, target: ObservedAccess, what: str) -> Submission:
        """Like ``Observer.writing``."""
        return self._moving(on, target, "fill" if what == "fill" else "copy", what)

    def copying(self, on: ObservedStream, source: ObservedAccess, target: ObservedAccess) -> Submission:
        """Like ``Observer.copying``."""
        return self._moving(on, target, "copy", "copy on the device")

    def device_synchronized(self, life: Life) -> None:
        """Like ``Observer.device_synchronized``: the device may be closed next."""
        if (probe := self._probes.get(life)) is not None:
            probe.timer.settle(wait=True)

    def _moving(self, on: ObservedStream, target: ObservedAccess, kind: Kind, name: str) -> Submission:
        if self.attach(on.device) is not None:
            return NOT_NOTED
        work = self._on_cpu(kind, name, self._recorder.stream(on.timeline))
        part = target.layout if target.where is None else target.layout.at(target.where)
        work.nbytes = part.size * part.dtype.itemsize
        return _Call(self._recorder, work)

    def _node_timer(self, probe: DriverProbe) -> DriverProbe | None:
        return probe if self._recorder.by_node else None

    def _new_call(self, name: str) -> Work:
        self._recorder.thread.launching = None  # one that an exception ended
        return self._recorder.made("call", name)

    def _on_cpu(self, kind: Kind, name: str, stream: str) -> Work:
        return self._recorder.made(kind, name, "cpu", stream)
