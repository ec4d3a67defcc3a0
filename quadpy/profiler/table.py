"""A profile as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from quadpy.core.messages import one_of
from quadpy.core.source import Span
from quadpy.errors import ArgumentError
from quadpy.profiler.records import Record

Sort: TypeAlias = Literal["total", "mean", "calls", "name"]


@dataclass(slots=True)
class Row:
    """Works of one name; times in milliseconds.  ``parts`` are the nodes of a graph."""

    label: str
    kind: str
    where: str
    device: str
    times: list[float] = field(default_factory=list)
    nbytes: int = 0
    parts: list[Row] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How often it ran."""
        return len(self.times)

    @property
    def total(self) -> float:
        """The sum of all times."""
        return sum(self.times)

    @property
    def mean(self) -> float:
        """The mean time."""
        return self.total / len(self.times)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data."""
        names = ("kind", "label", "where", "device", "calls", "total", "mean", "nbytes")
        facts = {name: getattr(self, name) for name in names}
        return {
            **facts,
            "min": min(self.times),
            "max": max(self.times),
            "parts": [part.to_json() for part in self.parts],
        }


_KEYS: Final = {
    "total": lambda row: (-row.total, row.label),
    "mean": lambda row: (-row.mean, row.label),
    "calls": lambda row: (-row.calls, row.label),
    "name": lambda row: (row.label, row.where),
}


def rows_of(records: Iterable[Record], sort: Sort = "total") -> list[Row]:
    """A row for each kind of work on a device; nodes of graphs are within the rows of their graphs.

    Raises:
        ArgumentError: there is no such order.
    """
    if sort not in _KEYS:
        raise ArgumentError(f"a profile cannot be sorted by {sort!r}", hint=one_of(str(sort), get_args(Sort)))
    shown = [record for record in records if record.on_device and record.duration is not None]
    found: dict[tuple[str, ...], Row] = {}
    graphs: dict[int, Row] = {}
    for record in shown:
        if record.kind != "node":
            row = _enter(found, record)
            if record.kind == "graph":
                graphs[record.cause] = row
    inner: dict[int, dict[tuple[str, ...], Row]] = {}
    for record in shown:
        if record.kind == "node" and (owner := graphs.get(record.cause)) is not None:
            _enter(inner.setdefault(id(owner), {}), record)
    for owner in graphs.values():
        owner.parts = sorted(inner.get(id(owner), {}).values(), key=_KEYS[sort])
    return sorted(found.values(), key=_KEYS[sort])


def _enter(rows: dict[tuple[str, ...], Row], record: Record) -> Row:
    where = location(record.span)
    key = record.kind, record.label, where, record.device
    row = rows.get(key)
    if row is None:
        row = rows[key] = Row(record.label, record.kind, where, record.device)
    row.times.append(record.duration or 0)
    row.nbytes += record.nbytes
    return row


def table_of(
    records: Sequence[Record], duration: float, overheads: Mapping[str, tuple[int, int]], sort: Sort, limit: int | None
) -> str:
    """Like ``profile.table``."""
    if limit is not None and limit < 0:
        raise ArgumentError(f"a table shows 0 or more rows, not {limit}", hint="leave limit out for all rows")
    rows = rows_of(records, sort)
    busy = sum(row.total for row in rows)
    head: tuple[str, ...] = (
        "share",
        "total ms",
        "calls",
        "mean us",
        "min us",
        "max us",
        "kind",
        "name",
        "where",
        "device",
    )
    lines = [head]
    for row in rows[:limit]:
        lines.append(_cells(row, busy))
        lines += [_cells(part, busy, "  ") for part in row.parts]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [_joined(line, widths) for line in lines]
    text.insert(1, "-" * max(map(len, text)))
    if limit is not None and len(rows) > limit:
        text.append(f"... and {len(rows) - limit} more rows")
    text.append(f"devices were busy for {busy:.3f} ms of {duration:.3f} ms")
    text += _notes(records, overheads)
    return "\n".join(text)


def _notes(records: Sequence[Record], overheads: Mapping[str, tuple[int, int]]) -> Iterable[str]:
    if waits := [r.duration for r in records if r.kind == "wait" and r.duration is not None]:
        yield f"the host waited {sum(waits):.3f} ms in {len(waits)} calls"
    peaks: dict[str, int] = {}
    for record in records:
        if record.used is not None:
            peaks[record.device] = max(peaks.get(record.device, 0), record.used)
    for device, peak in peaks.items():
        yield f"{device}: at most {peak / 2**20:.1f} MiB in use"
    if unknown := sum(record.on_device and record.duration is None for record in records):
        yield f"{unknown} records have no time: the device was lost, or the work never ran"
    for device, (empty, error) in overheads.items():
        yield (
            f"{device}: each time includes about {empty / 1e3:.1f} us between its two events; "
            f"starts are known to {error / 1e3:.0f} us"
        )


def _cells(row: Row, busy: float, indent: str = "") -> tuple[str, ...]:
    share = f"{100 * row.total / busy:.1f}%" if busy else ""
    times = [f"{1e3 * t:.1f}" for t in (row.mean, min(row.times), max(row.times))] if row.times else ["", "", ""]
    rate = ""
    if row.nbytes and row.total:
        rate = f" ({row.nbytes / row.total / 1e6:.1f} GB/s)"
    return (
        indent + share, f"{row.total:.3f}", str(row.calls), *times, row.kind, indent + row.label + rate, row.where, row.device,
    )  # fmt: skip


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(cells[:6], widths, strict=False)]
    texts = [cell.ljust(width) for cell, width in zip(cells[6:], widths[6:], strict=True)]
    return "  ".join([*numbers, *texts]).rstrip()


def location(span: Span | None) -> str:
    """``file:line``, with the name of the file alone; empty for None."""
    return "" if span is None else f"{Path(span.file).name}:{span.line}"
