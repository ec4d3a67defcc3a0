"""Collects what all open profiles record, from all threads and devices."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from quadpy.core.source import Span
from quadpy.hazards.sites import call_place, name_of_stream
from quadpy.profiler.records import Kind, Work
from quadpy.runtime.device.blocks import Lasting
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import Driver, StreamHandle
from quadpy.runtime.streams.timeline import Timeline


class Log(Protocol):
    """Takes works as they come; see ``profile``.

    ``by_node`` says whether it wants the nodes of graphs.
    """

    @property
    def by_node(self) -> bool: ...
    def add(self, work: Work) -> None: ...


class _Thread(threading.local):
    """The state of the calling thread.

    ranges     the names of its open ranges, the innermost last
    marked     how many of them other profilers know
    launching  its call of a kernel, or launch of a graph; None outside of one
    """

    def __init__(self) -> None:
        self.ranges: Lasting[str] = Lasting()
        self.marked = 0
        self.launching: Work | None = None


class Recorder:
    """Makes works for the ``logs`` that are open, the innermost last; it is cheap only if none is open.

    ``unwanted`` is called for a work for which there is no log.
    """

    def __init__(self) -> None:
        self.logs: Lasting[Log] = Lasting()
        self.unwanted: Callable[[], None] = lambda: None
        self.thread: Final = _Thread()
        self._streams: weakref.WeakKeyDictionary[Timeline, str] = weakref.WeakKeyDictionary()
        self._names: set[str] = set()
        self._used: dict[str, int] = {}

    @property
    def by_node(self) -> bool:
        """Whether any profile wants the nodes of graphs."""
        return any(log.by_node for log in tuple(self.logs.values()))

    def made(self, kind: Kind, name: str, device: str = "host", stream: str = "") -> Work:
        """A work that the calling thread requests now."""
        thread = self.thread
        return Work(
            kind, name, device, stream, threading.current_thread().name, time.perf_counter_ns(),
            call=_place() if thread.launching is None else thread.launching.call, ranges=tuple(thread.ranges.values()),
            cause=0 if thread.launching is None else thread.launching.number,
        )  # fmt: skip

    def add(self, work: Work) -> None:
        """Pass ``work`` to all open profiles."""
        logs = tuple(self.logs.values())
        for log in logs:
            log.add(work)
        if not logs:
            self.unwanted()

    def timed(self, work: Work, begin: int, end: int) -> None:
        """Pass ``work``, whose times are known, to all open profiles."""
        work.begin, work.end = begin, end
        self.add(work)

    def on_host(self, kind: Kind, name: str, begin: int) -> None:
        """Note what the calling thread did from ``begin`` until now."""
        work = self.made(kind, name)
        self.timed(work, begin, work.submitted)

    def stream(self, timeline: Timeline) -> str:
        """The name of a stream: the variable in the line that first uses it, or a number."""
        found = self._streams.get(timeline)
        if found is None:
            plain = type(timeline) is Timeline and timeline.stream is None and not timeline.handle
            name = "default" if plain else name_of_stream(timeline) or f"stream {len(self._streams) + 1}"
            found, number = name, 2
            while found in self._names and not plain:
                found, number = f"{name} ({number})", number + 1
            self._names.add(found)
            self._streams[timeline] = found
        return found

    def stream_at(self, device: Device, handle: StreamHandle) -> str:
        """The name of a stream, by handle."""
        timeline = device.timelines.live.get(handle)
        return f"stream {handle:#x}" if timeline is None else self.stream(timeline)

    def begin_memory(self, devices: Iterable[Device]) -> None:
        """Count from the memory that is in use now."""
        self._used = {device_name(device.driver): device.memory.stats().used for device in devices}

    def memory_changed(self, driver: Driver | None, nbytes: int, stream: StreamHandle) -> None:
        """Like ``MemoryChange``; the CPU's own allocations by address are memory of the host, and counted there."""
        if not self.logs or (driver is not None and "host" in driver.features):
            return
        device = "cpu" if driver is None else device_name(driver)
        work = self.made("memory", "allocation" if nbytes > 0 else "free", device)
        if nbytes < 0:  # wherever garbage is collected
            work.call, work.cause = None, 0
        work.nbytes, work.used = nbytes, self._used.get(device, 0) + nbytes
        self._used[device] = work.used
        self.timed(work, work.submitted, work.submitted)


def _place() -> Span | None:
    file, line = call_place()
    return Span(file, line) if line else None


def device_name(driver: Driver) -> str:
    """The name of a device for users."""
    return "cpu" if "host" in driver.features else f"{driver.name}:{driver.ordinal}"


RECORDER: Final = Recorder()
