"""A profile as a file in Chrome's trace format.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from quadpy.profiler.records import Record
from quadpy.profiler.tracks import tracks_of

_HOST: Final = "host"


def write_chrome(records: Sequence[Record], file: Path) -> None:
    """Write ``records`` to ``file``."""
    content = {"displayTimeUnit": "ns", "traceEvents": list(trace_events(records))}
    file.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")


def trace_events(records: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """The events of the file: a process for the host and each device, a thread for each track."""
    tracks = tracks_of(records)
    devices = dict.fromkeys([_HOST, *(track.device for track in tracks), *(r.device for r in records)])
    numbers = {device: number for number, device in enumerate(devices)}
    for device, number in numbers.items():
        yield _meta("process_name", number, 0, name=device)
        yield _meta("process_sort_index", number, 0, sort_index=number)
    at: dict[int, dict[str, Any]] = {}
    for number, track in enumerate(tracks, 1):
        process = numbers[track.device]
        yield _meta("thread_name", process, number, name=track.name)
        yield _meta("thread_sort_index", process, number, sort_index=number)
        for record in track.records:
            at[record.number] = event = _complete(record, process, number)
            yield event
    yield from _arrows(records, at)
    for record in records:
        if record.used is not None:
            where = {"ph": "C", "pid": numbers[record.device], "tid": 0, "ts": 1e3 * record.start}
            yield where | {"name": "memory", "args": {"bytes": record.used}}


def _meta(what: str, process: int, thread: int, **args: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": args}


def _complete(record: Record, process: int, thread: int) -> dict[str, Any]:
    return {
        "ph": "X", "name": record.label, "cat": record.kind, "pid": process, "tid": thread, "ts": 1e3 * record.start,
        "dur": 1e3 * (record.duration or 0), "args": _details(record),
    }  # fmt: skip


def _details(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if record.span is not None:
        found["kernel"] = f"{record.span.file}:{record.span.line}"
    if record.call is not None:
        found["called at"] = f"{record.call.file}:{record.call.line}"
    if record.nbytes:
        found["bytes"] = record.nbytes
        if record.duration:
            found["GB/s"] = record.nbytes / record.duration / 1e6
    if record.ranges:
        found["ranges"] = " / ".join(record.ranges)
    if record.on_device:
        found["thread"] = record.thread
    return found


def _arrows(records: Sequence[Record], at: dict[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """From each call of the host to the work that it caused on another track."""
    for record in records:
        start, end = at.get(record.cause), at.get(record.number)
        if start is not None and end is not None:
            both = {"name": "launch", "cat": "launch", "id": record.number}
            yield {"ph": "s", **both, "pid": start["pid"], "tid": start["tid"], "ts": start["ts"]}
            yield {"ph": "f", "bp": "e", **both, "pid": end["pid"], "tid": end["tid"], "ts": end["ts"]}
