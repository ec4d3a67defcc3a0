"""The limits on the time of a row, and the tables that compare times with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu.systems import PEERS, SYSTEMS
from gpu.workloads import GpuWorkload
from harness.report import bullets, cell, heading, not_measured, record, scaled, table
from harness.runner import Row

DEVICE = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")


def copy_rate(rows: Sequence[Row[GpuWorkload]]) -> float | None:
    """Bytes per second of the fastest copy that any system made, read and written: the limit for work that memory bounds."""
    for row in rows:
        times = [time for system in SYSTEMS if (time := row.time(system))]
        if row.workload.name == "copy" and row.workload.moved and times:
            return row.workload.moved(row.size) / min(times)
    return None


def limit(row: Row[GpuWorkload], copied: float | None, multiply_adds: float | None) -> float | None:
    """A lower bound for the seconds of a run: bytes over a copy's rate, or operations over that of multiply-adds."""
    if row.workload.moved and copied:
        return row.workload.moved(row.size) / copied
    if row.workload.done and multiply_adds:
        return row.workload.done(row.size) / multiply_adds
    return None


def best_peer(row: Row[GpuWorkload]) -> float | None:
    """The shortest time among the peers except CUDA C, which has its own ratio."""
    return min([time for peer in PEERS[1:] if (time := row.time(peer)) is not None], default=None)


def markdown(
    rows: list[Row[GpuWorkload]], multiply_adds: float | None, absent: dict[str, str], about: dict[str, Any]
) -> str:
    """The whole report."""
    copied = copy_rate(rows)
    limits = [f"copy {copied / 1e12:.3f} TB/s, read and written"] if copied else []
    limits += [f"multiply-adds {multiply_adds / 1e12:.1f} TFLOP/s"] if multiply_adds else []
    parts = [heading(about)] + [f"Limits measured in the same run: {', '.join(limits)}."] * bool(limits)
    first = [row for row in rows if "first" in row.workload.name]
    device = [row for row in rows if row.workload.kind == "device" and row not in first]
    host = [row for row in rows if row.workload.kind != "device"]
    parts += [_table(device, copied, multiply_adds)] if device else []
    parts += [_table(kind) for kind in (host, first) if kind]
    ways = [f"{row.title}, {s}: {_ways(row.ways[s])}" for row in rows for s in row.ways]
    parts += bullets("Variants tried (ms); the first was chosen", ways)
    return "\n\n".join([*parts, *not_measured(rows, absent)]) + "\n"


def as_json(
    rows: list[Row[GpuWorkload]], multiply_adds: float | None, absent: dict[str, str], about: dict[str, Any]
) -> dict[str, Any]:
    copied = copy_rate(rows)
    records = [record(row, limit=limit(row, copied, multiply_adds)) for row in rows]
    return {**about, "limits": {"copy": copied, "multiply_adds": multiply_adds}, "absent": absent, "rows": records}


def _table(rows: Sequence[Row[GpuWorkload]], *limits: float | None) -> str:
    """One table; of work on the device with the limits of its time."""
    systems = [s for s in SYSTEMS if any(s in row.seconds or s in row.problems for row in rows)]
    more = ["limit", "rate", "limit / quadpy"] if limits else []
    head = ["workload", "unit", *systems, "spread", *more, "CUDA C / quadpy", "best peer / quadpy"]
    return table(head, [_line(row, systems, limits) for row in rows], 2)


def _line(row: Row[GpuWorkload], systems: Sequence[str], limits: tuple[float | None, ...]) -> list[str]:
    ours, spread, unit = [row.time("quadpy"), row.time("quadpy fast")], row.spread("quadpy"), row.workload.unit
    cells = [row.title, unit, *(cell(row, system) for system in systems), "-" if spread is None else f"{spread:.1%}"]
    if limits:
        bound = limit(row, *limits)
        cells += [scaled(bound, unit), _rate(row), _ratios(bound, ours)]
    if row.workload.kind == "overlap":
        return [*cells, "-", "-"]
    return [*cells, _ratios(row.time("CUDA C"), ours), _ratios(best_peer(row), ours)]


def _ratios(reference: float | None, ours: Sequence[float | None]) -> str:
    """How many times faster than `reference` quadpy is: strict, then with fast_math where that was run."""
    return " ; ".join(f"{reference / time:.2f}" for time in ours if time and reference) or "-"


def _rate(row: Row[GpuWorkload]) -> str:
    time, work = row.time("quadpy"), row.workload.moved or row.workload.done
    if not (time and work):
        return "-"
    return f"{work(row.size) / time / 1e9:,.0f} {'GB/s' if row.workload.moved else 'GFLOP/s'}"


def _ways(ways: dict[str, float]) -> str:
    return ", ".join(f"{name} {time * 1e3:.3g}" for name, time in ways.items())
