"""Rows as a table for people (Markdown) and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from peers.environment import PEERS, REQUIREMENTS
from peers.runner import Plan, Row

SCALE = {"ms": 1e3, "µs": 1e6}


def facts(plan: Plan) -> dict[str, object]:
    """What the numbers depend on: the machine, how busy it was, the versions."""
    return {
        "cpu": _cpu(),
        "python": platform.python_version(),
        "peers": REQUIREMENTS.read_text().split(),
        "threads": plan.threads,
        "rounds": plan.rounds,
        "quick": plan.quick,
        "time": "fastest round" if plan.fastest else "median of the rounds",
        "load": round(os.getloadavg()[0], 2),
    }


def best_peer(row: Row) -> float | None:
    """The shortest time among the peers."""
    times = [time for peer in PEERS if (time := row.time(peer)) is not None]
    return min(times, default=None)


def ratio(row: Row) -> float | None:
    """How many times faster than the best peer quadpy is; below 1 it is slower."""
    ours, theirs = row.time("quadpy"), best_peer(row)
    return theirs / ours if ours and theirs else None


def markdown(rows: Iterable[Row], systems: Sequence[str], about: dict[str, object]) -> str:
    """The whole report: machine, one table per mode, what went wrong."""
    rows = list(rows)
    parts = [", ".join(f"{name}: {_plain(value)}" for name, value in about.items())]
    for fast_math in (False, True):
        chosen = [row for row in rows if row.fast_math == fast_math]
        if chosen:
            parts.append(f"`fast_math={fast_math}`\n\n" + _table(chosen, systems))
    problems = [f"- {row.title}, {system}: {text}" for row in rows for system, text in row.problems.items()]
    return "\n\n".join(parts + ["\n".join(problems)] * bool(problems)) + "\n"


def write(path: Path, rows: Sequence[Row], systems: Sequence[str], about: dict[str, object]) -> None:
    """The report in the format that the file's name asks for: `.json`, or Markdown."""
    if path.suffix != ".json":
        path.write_text(markdown(rows, systems, about))
        return
    records = [
        {
            "workload": row.title,
            "fast_math": row.fast_math,
            "seconds": row.seconds,
            "time": {system: row.time(system) for system in systems},
            "ratio": ratio(row),
            "problems": row.problems,
        }
        for row in rows
    ]
    path.write_text(json.dumps({**about, "rows": records}, indent=1) + "\n")


def _table(rows: Sequence[Row], systems: Sequence[str]) -> str:
    compared = "quadpy" in systems
    head = ["workload", "unit", *systems] + ["best peer / quadpy"] * compared
    lines = [head, ["---", "---"] + ["---:"] * (len(head) - 2)]
    for row in rows:
        factor = ratio(row)
        times = [_number(row, system) for system in systems]
        lines.append([row.title, row.unit, *times] + [f"{factor:.2f}" if factor else "-"] * compared)
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "| " + " | ".join(_padded(cell, w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines
    )


def _padded(cell: str, width: int) -> str:
    # A separator of the table grows with its column.
    return cell.replace("-", "-" * (width - len(cell) + 1), 1) if cell.startswith("---") else cell.ljust(width)


def _number(row: Row, system: str) -> str:
    time = row.time(system)
    if time is None:
        return "differs" if row.problems.get(system, "").startswith("differs") else "failed"
    value = time * SCALE[row.unit]
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.machine()
