"""The parts of a profile, as data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from quadpy.core.source import Span

Kind: TypeAlias = Literal["kernel", "copy", "fill", "graph", "node", "call", "wait", "driver", "range", "memory"]
"""``kernel`` to ``node`` is work of a device; the rest happens on the host.

``kernel``  a task of a kernel: one of its offloaded loops, or what stands between them
``graph``   a launch of a graph, as a whole
``node``    a node of a graph, within its launch
``call``    a call of a kernel or the launch of a graph, as the host sees it
``wait``    the host waits for a device
``driver``  a call of the driver that may take long: it allocates, frees, loads code
``range``   the block that ``qp.profiler.range`` encloses
``memory``  memory is allocated or freed
"""

ON_DEVICE: Final[frozenset[Kind]] = frozenset(("kernel", "copy", "fill", "graph", "node"))


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of work.

    kind      see ``Kind``
    name      of the kernel, the copy, the range …
    task      the number of the task in its kernel; None if there is only one
    device    where it ran, such as ``"cpu"`` or ``"cuda:0"``; ``"host"`` for what the host does
    stream    the stream: the name of its variable where it was first used, or a number; empty on the host
    thread    the thread that requested it
    start     milliseconds since the profile began
    duration  milliseconds; None if it is not known, as the device was lost or the work never ran
    nbytes    bytes that a copy or fill moved; for memory, the bytes allocated, negative for freed ones
    used      for memory: the bytes in use on the device from then on; else None
    span      where the task is in the kernel's source; None for work without source
    call      the line of the program that requested it; None if quadpy itself did
    ranges    the ranges that were open on that thread, the outermost first
    graph     the graph of a node; else empty
    number    identifies the record
    cause     the number of the call that caused the work; 0 for none
    """

    kind: Kind
    name: str
    task: int | None
    device: str
    stream: str
    thread: str
    start: float
    duration: float | None
    nbytes: int
    used: int | None
    span: Span | None
    call: Span | None
    ranges: tuple[str, ...]
    graph: str
    number: int
    cause: int

    @property
    def on_device(self) -> bool:
        """Whether it is work of a device; the CPU counts as one."""
        return self.kind in ON_DEVICE

    @property
    def label(self) -> str:
        """The name, with the number of the task if there are several."""
        return self.name if self.task is None else f"{self.name} #{self.task}"


@dataclass(slots=True, eq=False)
class Work:
    """An unfinished record; ``begin`` and ``end`` are ns of ``time.perf_counter_ns``, None until they are known.

    submitted   when the host requested it
    """

    kind: Kind
    name: str
    device: str
    stream: str
    thread: str
    submitted: int
    begin: int | None = None
    end: int | None = None
    task: int | None = None
    nbytes: int = 0
    used: int | None = None
    span: Span | None = None
    call: Span | None = None
    ranges: tuple[str, ...] = ()
    graph: str = ""
    number: int = field(default_factory=itertools.count(1).__next__)
    cause: int = 0

    def record(self, origin: int) -> Record:
        """The finished record, with times since ``origin``."""
        begin, end = self.begin, self.end
        start = (self.submitted if begin is None else begin) - origin
        return Record(
            self.kind, self.name, self.task, self.device, self.stream, self.thread, start / 1e6,
            None if begin is None or end is None else (end - begin) / 1e6, self.nbytes, self.used, self.span, self.call,
            self.ranges, self.graph, self.number, self.cause,
        )  # fmt: skip
