"""Taichi's profiler, by its names: a profile of the whole process, which ``qp.init(kernel_profiler=True)`` opens."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from quadpy.core.messages import one_of
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.profiler.profile import profile
from quadpy.profiler.records import Record
from quadpy.profiler.table import location
from quadpy.runtime.device.devices import open_devices


class KernelTimes(NamedTuple):
    """How often a kernel ran, and the times of its calls in milliseconds; all 0 for a kernel that did not run."""

    counter: int
    min: float
    max: float
    avg: float


class _Process:
    """The profile of the process; None while it is off."""

    profile: profile | None = None


@public
def set_kernel_profiler(enabled: bool) -> None:
    """Profile the whole process from now on if ``enabled``, or stop; records stay until it is turned on again."""
    before = _Process.profile
    if before is not None and before.is_open:
        before.__exit__(None, None, None)
    if enabled:
        _Process.profile = profile()
        _Process.profile.__enter__()


def _records() -> tuple[Record, ...]:
    if _Process.profile is None:
        warnings.warn(
            "the profiler of the process is off: call qp.init(kernel_profiler=True), or use `with qp.profile() as p:`",
            RuntimeWarning,
            stacklevel=3,
        )
        return ()
    return _Process.profile.records


@public
def print_kernel_profiler_info(mode: str = "count") -> None:
    """Print the work of the devices: ``"count"`` for a row for each task and kind of work, ``"trace"`` for each one.

    Raises:
        ArgumentError: ``mode`` is neither.
    """
    if mode not in ("count", "trace"):
        raise ArgumentError(
            f"the mode must be 'count' or 'trace', not {mode!r}", hint=one_of(str(mode), ("count", "trace"))
        )
    records = _records()
    if _Process.profile is None:
        return
    if mode == "count":
        _show(_Process.profile.table())
        return
    _show(f"{'start ms':>12}  {'time ms':>10}  {'kind':6}  {'stream':12}  {'name':24}  where")
    for each in records:
        if each.on_device and each.duration is not None:
            times = f"{each.start:12.3f}  {each.duration:10.4f}"
            _show(f"{times}  {each.kind:6}  {each.stream:12}  {each.label:24}  {location(each.span)}")


def _show(line: str) -> None:
    sys.stdout.write(line.rstrip() + "\n")


@public
def query_kernel_profiler_info(name: str) -> KernelTimes:
    """The times of all calls of the kernels called ``name``, each the sum of its tasks."""
    calls: dict[int, float] = {}
    for record in _kernels(_records()):
        if record.name == name:
            calls[record.cause] = calls.get(record.cause, 0) + (record.duration or 0)
    times = list(calls.values())
    return (
        KernelTimes(len(times), min(times), max(times), sum(times) / len(times)) if times else KernelTimes(0, 0, 0, 0)
    )


@public
def get_kernel_profiler_total_time() -> float:
    """The sum of the times of all kernels, in seconds."""
    return sum(record.duration or 0 for record in _kernels(_records())) / 1e3


@public
def clear_kernel_profiler_info() -> None:
    """Delete all records so far."""
    if _Process.profile is not None:
        _Process.profile.clear()


@public
def timeline_save(fn: str | Path) -> None:
    """Write what ran to the file ``fn``, which Perfetto and chrome://tracing show; see ``profile.to_chrome``."""
    _records()  # warns if nothing was profiled
    if _Process.profile is not None:
        _Process.profile.to_chrome(fn)


@public
def timeline_clear() -> None:
    """Like ``clear_kernel_profiler_info``."""
    clear_kernel_profiler_info()


@public
def set_kernel_profiler_toolkit(toolkit_name: str = "default") -> bool:
    """Whether quadpy has the toolkit ``toolkit_name``: the only one is ``"default"``."""
    return toolkit_name == "default"


@public
def print_scoped_profiler_info() -> None:
    """Print the time of each ``qp.profiler.range``, within those around it."""
    totals: dict[tuple[str, ...], tuple[int, float]] = {}
    for record in _records():
        if record.kind == "range":
            path = (*record.ranges, record.name)
            count, total = totals.get(path, (0, 0.0))
            totals[path] = count + 1, total + (record.duration or 0)
    for path, (count, total) in sorted(totals.items()):
        _show(f"{total:12.3f} ms  {count:6} times  {'  ' * (len(path) - 1)}{path[-1]}")


@public
def clear_scoped_profiler_info() -> None:
    """Like ``clear_kernel_profiler_info``."""
    clear_kernel_profiler_info()


@public
def print_memory_profiler_info() -> None:
    """Print how much memory of each open device quadpy holds."""
    for device in open_devices():
        held = device.memory_stats()
        sizes = ", ".join(f"{name} {getattr(held, name) / 2**20:.1f} MiB" for name in ("used", "peak", "reserved"))
        _show(f"{device}: {sizes}, {held.blocks} allocations")


def _kernels(records: Iterable[Record]) -> Iterable[Record]:
    """Tasks of kernels, including those in graphs."""
    return (r for r in records if r.kind in ("kernel", "node") and r.name not in ("copy", "fill", "host function"))
