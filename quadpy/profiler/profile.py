"""``qp.profile``: the work of a program in a block, with the time of each piece; and its picture."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadpy.core.completion import shows
from quadpy.core.importing import import_late
from quadpy.core.public import public, require_switch
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.profiler.chrome import write_chrome
from quadpy.profiler.recorder import RECORDER, Log
from quadpy.profiler.table import Sort, rows_of, table_of
from quadpy.profiler.tracks import tracks_of
from quadpy.profiler.watcher import Watcher
from quadpy.runtime.device.blocks import Block, whole
from quadpy.runtime.device.devices import open_devices
from quadpy.runtime.device.life import refuse_in_host_function
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.memory.accounting import Accounting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from quadpy.profiler.records import Record, Work


class _Switch:
    """Watches the process while any profile is open."""

    def __init__(self) -> None:
        self._lock: Final = new_lock()
        self._watcher: Watcher | None = None

    def follow(self, ending: Log | None = None) -> None:
        """Pass all works on while there are logs other than the one that is ``ending``; may be repeated."""
        with self._lock:
            if any(log is not ending for log in tuple(RECORDER.logs.values())):
                self._begin()
            elif (watcher := self._watcher) is not None:
                CAPTURES.observe("watcher", None)
                Accounting.told = None
                watcher.detach()
                self._watcher = None

    def _begin(self) -> None:
        if self._watcher is None:
            self._watcher = Watcher(RECORDER)
        devices = open_devices()
        for device in devices:
            self._watcher.attach(device)
        if Accounting.told is None:
            RECORDER.begin_memory(devices)
            Accounting.told = RECORDER.memory_changed
        CAPTURES.observe("watcher", self._watcher)

    def settle(self) -> None:
        """Wait until all works have their times."""
        if (watcher := self._watcher) is not None:
            watcher.settle()

    def overheads(self) -> dict[str, tuple[int, int]]:
        """For each GPU, in nanoseconds: the time that its events add, and the largest shift of its times."""
        probes = () if self._watcher is None else self._watcher.probes
        return {probe.name: (probe.timer.empty, probe.timer.error) for probe in probes}


_SWITCH: Final = _Switch()
RECORDER.unwanted = _SWITCH.follow  # after an interrupt that came before the end of a block could do so


@shows("clear", "duration", "is_open", "plot", "records", "table", "to_chrome", "to_json")
class profile(Block, contextlib.ContextDecorator):  # noqa: N801 - used like a statement, so lower case
    """``with qp.profile() as p:`` measures what the block does, and what other threads do meanwhile.

    At its end it waits for the work that is pending, even if the block raises an exception; then ``p.table()`` is a
    summary, ``p.to_chrome("trace.json")`` a timeline for https://ui.perfetto.dev, ``p.plot()`` the same as a picture,
    and ``p.records`` has everything as data.  Profiles may be nested: each has what happens while it is open.

    Every task, copy, fill and launch of a graph is timed: on a GPU between two events on its stream, on the CPU with the
    clock.  While a profile is open, kernels are launched by Python and task by task, so each call costs some
    microseconds more; while none is open, profiling costs nothing.

    Graphs are shown by node: on the CPU as they run; on a GPU as a copy of the graph, with an event before and after each
    node, and graph kernels as a launch for each task.  With ``nodes=False`` they run as they are, and have one time each.
    """

    @public
    def __init__(self, *, nodes: bool = True) -> None:
        require_switch(nodes, "nodes")
        self.by_node = bool(nodes)
        self._works: list[Work] = []
        self._first = self._last = 0
        self._overheads: dict[str, tuple[int, int]] = {}

    @public
    def __enter__(self) -> Self:
        refuse_in_host_function()
        if self.is_open:
            raise ArgumentError("this profile is already open", hint="make another one: profiles may be nested")
        _SWITCH.follow()  # an interrupt may have left the watcher of an earlier block
        self._works, self._last = [], 0
        self._first = time.perf_counter_ns()
        RECORDER.logs.add(self._begin(), self)
        whole(_SWITCH.follow, partial(_SWITCH.follow, self))
        return self

    def _end(self, about: object, *exception: object) -> None:
        try:
            self._last = time.perf_counter_ns()
            self._overheads = _SWITCH.overheads()
            _SWITCH.settle()
        finally:
            whole(partial(_SWITCH.follow, self))

    def _recreate_cm(self) -> Self:
        return self

    def add(self, work: Work) -> None:
        """Like ``Log.add``."""
        self._works.append(work)

    @property
    def is_open(self) -> bool:
        """Whether its block is running."""
        return any(log is self for log in tuple(RECORDER.logs.values()))

    @property
    def records(self) -> tuple[Record, ...]:
        """Everything so far, by the time at which it began; inside the block, this waits for the work that is pending."""
        if self.is_open:
            _SWITCH.settle()
        return tuple(sorted((work.record(self._first) for work in tuple(self._works)), key=lambda each: each.start))

    def clear(self) -> None:
        """Delete all records so far."""
        if self.is_open:
            _SWITCH.settle()
        self._works = []

    @property
    def duration(self) -> float:
        """Milliseconds from the beginning of the block to its end, or until now."""
        end = time.perf_counter_ns() if self.is_open else self._last or self._first
        return (end - self._first) / 1e6

    @public
    def table(self, sort: Sort = "total", limit: int | None = None) -> str:
        """A summary of the devices' work: one row for each task, kind of copy, graph and node of a graph.

        ``sort`` is one of "total", "mean", "calls" and "name"; ``limit`` is the largest number of rows.

        Raises:
            ArgumentError: there is no such order, or ``limit`` is negative.
        """
        overheads = _SWITCH.overheads() if self.is_open else self._overheads
        return table_of(self.records, self.duration, overheads, sort, limit)

    @public
    def to_json(self) -> list[dict[str, Any]]:
        """The rows of the table as JSON data; times in milliseconds."""
        return [row.to_json() for row in rows_of(self.records)]

    @public
    def to_chrome(self, file: str | Path) -> None:
        """Write a timeline to ``file`` in Chrome's trace format, which https://ui.perfetto.dev and chrome://tracing open.

        Each stream and each thread is a track; memory in use is a counter; arrows lead from calls to their work.
        """
        write_chrome(self.records, Path(file))

    @public
    def plot(self, ax: Any = None) -> Any:
        """Draw the timeline with matplotlib, a line for each stream; the axes, ``ax`` or new ones.

        Raises:
            QuadpyError: matplotlib is not installed.
        """
        return plot_records(self.records, ax)

    def __repr__(self) -> str:
        state = "open, " if self.is_open else ""
        return f"<profile, {state}{len(self._works)} records>"


_MOST: Final = 10
"""Colours of names; the rest is grey."""


def plot_records(records: Sequence[Record], ax: Any = None) -> Any:
    """Like ``profile.plot``."""
    try:
        plt = import_late("matplotlib.pyplot")
    except ImportError as error:
        hint = "pip install matplotlib; table() and to_chrome() need nothing"
        raise QuadpyError("a profile is plotted with matplotlib, which is not installed", hint=hint) from error
    tracks = tracks_of(records)
    if ax is None:
        _, ax = plt.subplots(figsize=(12, 1 + 0.5 * max(1, len(tracks))), layout="constrained")
    colours: dict[str, Any] = {}
    for name in _longest(records):
        colours[name] = plt.get_cmap("tab10")(len(colours))
    for line, track in enumerate(tracks):
        for record in track.records:
            bars = [(record.start, record.duration)]
            colour = colours.get(record.label, "0.7") if record.on_device else "0.85"
            ax.broken_barh(bars, (line - 0.4, 0.8), facecolors=colour, edgecolor="white", linewidth=0.3)
    ax.set_yticks(range(len(tracks)), [f"{track.device}, {track.name}" for track in tracks])
    ax.invert_yaxis()
    ax.set_xlabel("ms")
    if colours:
        patches = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
        ax.legend(patches, colours, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def _longest(records: Sequence[Record]) -> list[str]:
    """The names that take the most time on devices."""
    totals: dict[str, float] = {}
    for record in records:
        if record.on_device:
            totals[record.label] = totals.get(record.label, 0) + (record.duration or 0)
    return sorted(totals, key=lambda name: -totals[name])[:_MOST]
