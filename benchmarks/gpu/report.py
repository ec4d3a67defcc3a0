"""Rows as tables for people (Markdown) and as JSON for programs."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.runner import PEERS, SYSTEMS, Measured, Plan, Row

SCALE = {"ms": 1e3, "µs": 1e6, "x": 1.0}
PACKAGES = ("quadpy", "llvmlite", "cuda-bindings", "quadrants", "numba", "numba-cuda", "triton", "torch", "numpy")
DEVICE = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")


def facts(plan: Plan) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "date": dt.datetime.now(tz=dt.timezone.utc).strftime("%d %B %Y").lstrip("0"),
        "device": _first_line(*DEVICE) or plan.arch,
        "nvcc": _first_line("nvcc", "--version", last=True),
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "rounds": plan.rounds,
        "scale": plan.scale,
    }


def copy_rate(measured: Measured) -> float | None:
    """Bytes a second of the fastest copy that any system made, read and written: the ceiling of what memory bounds."""
    for row in measured.rows:
        if row.workload.name == "copy" and row.workload.moved:
            times = [time for system in SYSTEMS if (time := row.time(system))]
            return row.workload.moved(row.size) / min(times) if times else None
    return None


def limit(row: Row, measured: Measured) -> float | None:
    """The seconds below which no run can be: bytes over a copy's rate, or operations over that of multiply-adds."""
    rate = copy_rate(measured)
    if row.workload.moved and rate:
        return row.workload.moved(row.size) / rate
    if row.workload.done and measured.multiply_adds:
        return row.workload.done(row.size) / measured.multiply_adds
    return None


def best_peer(row: Row) -> float | None:
    """The shortest time among the peers, but for CUDA C, which has a ratio of its own."""
    times = [time for peer in PEERS[1:] if (time := row.time(peer)) is not None]
    return min(times, default=None)


def markdown(measured: Measured, about: dict[str, Any]) -> str:
    """The whole report."""
    head = heading(about)
    limits = []
    if rate := copy_rate(measured):
        limits.append(f"copy {rate / 1e12:.3f} TB/s, read and written")
    if measured.multiply_adds:
        limits.append(f"multiply-adds {measured.multiply_adds / 1e12:.1f} TFLOP/s")
    parts = [head] + [f"Limits measured in the same run: {', '.join(limits)}."] * bool(limits)
    device = [row for row in measured.rows if row.workload.kind == "device" and "first" not in row.workload.name]
    first = [row for row in measured.rows if "first" in row.workload.name]
    host = [row for row in measured.rows if row.workload.kind != "device"]
    parts += [_table(rows, measured, throughput=rows is device) for rows in (device, host, first) if rows]
    ways = [f"- {row.title}, {s}: {_ways(row.ways[s])}" for row in measured.rows for s in row.ways]
    if ways:
        parts.append("Ways tried, the first was taken (ms):\n\n" + "\n".join(ways))
    problems = [f"- {system} is not there: {text}" for system, text in measured.absent.items()]
    problems += [f"- {row.title}, {system}: {text}" for row in measured.rows for system, text in row.problems.items()]
    if problems:
        parts.append("Not measured:\n\n" + "\n".join(problems))
    return "\n\n".join(parts) + "\n"


def heading(about: dict[str, Any]) -> str:
    """When and with what it was measured."""
    things = [about["device"], about["nvcc"], f"Python {about['python']}"]
    things += [f"{name} {version}" for name, version in about["packages"].items()]
    scale = f", scale {about['scale']}" * (about["scale"] != "full")
    return f"{about['date']}: {', '.join(filter(None, things))}; medians of {about['rounds']} rounds{scale}."


def as_json(measured: Measured, about: dict[str, Any]) -> str:
    records = [
        {
            "workload": row.workload.name,
            "title": row.title,
            "size": row.size,
            "unit": row.workload.unit,
            "seconds": row.seconds,
            "time": {system: row.time(system) for system in row.seconds},
            "spread": {system: row.spread(system) for system in row.seconds},
            "limit": limit(row, measured),
            "ways": row.ways,
            "problems": row.problems,
        }
        for row in measured.rows
    ]
    limits = {"copy": copy_rate(measured), "multiply_adds": measured.multiply_adds}
    return json.dumps({**about, "limits": limits, "absent": measured.absent, "rows": records}, indent=1) + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _table(rows: Sequence[Row], measured: Measured, *, throughput: bool) -> str:
    systems = [s for s in SYSTEMS if any(s in row.seconds or s in row.problems for row in rows)]
    more = ["limit", "rate", "limit / quadpy"] if throughput else []
    head = ["workload", "unit", *systems, "spread", *more, "CUDA C / quadpy", "best peer / quadpy"]
    lines = [head, ["---", "---", *["--:"] * (len(head) - 2)]]
    lines += [_line(row, systems, measured, throughput=throughput) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _line(row: Row, systems: Sequence[str], measured: Measured, *, throughput: bool) -> list[str]:
    bound, ours = limit(row, measured), [row.time("quadpy"), row.time("quadpy fast")]
    spread = row.spread("quadpy")
    cells = [row.title, row.workload.unit, *(_number(row, system) for system in systems)]
    cells.append("-" if spread is None else f"{spread:.1%}")
    if throughput:
        cells += [_scaled(bound, row), _rate(row), _ratios(bound, ours)]
    if row.workload.kind == "overlap":
        return [*cells, "-", "-"]
    return [*cells, _ratios(row.time("CUDA C"), ours), _ratios(best_peer(row), ours)]


def _ratios(reference: float | None, ours: Sequence[float | None]) -> str:
    """How many times faster than `reference` quadpy is: strict, then with fast_math where that was run."""
    shown = [f"{reference / time:.2f}" for time in ours if time and reference]
    return " ; ".join(shown) or "-"


def _rate(row: Row) -> str:
    time = row.time("quadpy")
    work = row.workload.moved or row.workload.done
    if not (time and work):
        return "-"
    return f"{work(row.size) / time / 1e9:,.0f} {'GB/s' if row.workload.moved else 'GFLOP/s'}"


def _number(row: Row, system: str) -> str:
    if system in row.problems:
        return "wrong" if row.problems[system].startswith("wrong") else "failed"
    return _scaled(row.time(system), row)


def _scaled(time: float | None, row: Row) -> str:
    if time is None:
        return "-"
    value = time * SCALE[row.workload.unit]
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _ways(ways: dict[str, float]) -> str:
    return ", ".join(f"{name} {time * 1e3:.3g}" for name, time in ways.items())


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _first_line(*words: str, last: bool = False) -> str:
    if not shutil.which(words[0]):
        return ""
    lines = subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip().splitlines()
    return lines[-1 if last else 0].strip() if lines else ""
