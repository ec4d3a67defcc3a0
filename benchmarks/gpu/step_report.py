"""Steps and the ways to launch them, as a table (Markdown) and as JSON."""

from __future__ import annotations

import json
from typing import Any

from gpu.report import SCALE, heading
from gpu.runner import SYSTEMS
from gpu.step_runner import MeasuredSteps, StepRow

ORDER = (
    "launches", "launches, forks", "host loop", "graph", "graph, no forks", "graph, other arrays", "replay",
    "replay, other arrays", "graph kernel", "graph kernel, other arrays", "graph kernel a step",
    "graph kernel, its loop", "fused", "fused, a step", "fused, its loop", "fuse='auto'",
)  # fmt: skip


def markdown(measured: MeasuredSteps, about: dict[str, Any], pictures: dict[tuple[str, str], str]) -> str:
    """The whole report; ``pictures`` are the files of graphs that lost, by title and way."""
    systems = [s for s in SYSTEMS if any(s == system for row in measured.rows for system, _ in row.times)]
    head = ["step", "launched as", "unit", *systems, "spread", "launches / this", "CUDA C / quadpy"]
    lines = [head, ["---", "---", "---", *["--:"] * (len(head) - 3)]]
    for row in measured.rows:
        named = {way for _, way in row.times}
        ways = [way for way in ORDER if way in named] + sorted(named - set(ORDER))
        lines += [_line(row, way, systems, first=not n) for n, way in enumerate(ways)]
    parts = [heading(about), "\n".join("| " + " | ".join(line) + " |" for line in lines)]
    remarks = [f"- {row.title}, {way}: {text}" for row in measured.rows for way, text in row.remarks.items()]
    if remarks:
        parts.append("What quadpy says:\n\n" + "\n".join(remarks))
    slower = [_slower(row, way, pictures) for row in measured.rows for _, way in row.slower()]
    if slower:
        parts.append("Slower than launches one by one:\n\n" + "\n".join(slower))
    missing = [f"- {system} is not there: {text}" for system, text in measured.absent.items()]
    missing += [f"- {row.title}, {name}: {text}" for row in measured.rows for name, text in row.problems.items()]
    if missing:
        parts.append("Not measured:\n\n" + "\n".join(missing))
    return "\n\n".join(parts) + "\n"


def as_json(measured: MeasuredSteps, about: dict[str, Any]) -> str:
    records = [
        {
            "workload": row.workload.name,
            "title": row.title,
            "ways": [
                {
                    "system": system,
                    "way": way,
                    "host": row.host(system, way),
                    "total": row.total(system, way),
                    "spread": row.spread(system, way),
                    "rounds": times,
                }
                for (system, way), times in row.times.items()
            ],
            "remarks": row.remarks,
            "problems": row.problems,
        }
        for row in measured.rows
    ]
    return json.dumps({**about, "absent": measured.absent, "rows": records}, indent=1) + "\n"


def _line(row: StepRow, way: str, systems: list[str], *, first: bool) -> list[str]:
    total, base, spread = row.total("quadpy", way), row.base("quadpy"), row.spread("quadpy", way)
    theirs = row.total("CUDA C", way) or row.total("CUDA C", "graph")
    return [
        row.title if first else "",
        way,
        row.workload.unit,
        *(_cell(row, system, way) for system in systems),
        "-" if spread is None else f"{spread:.0%}",
        f"{base / total:.2f}" if base and total else "-",
        f"{theirs / total:.2f}" if theirs and total else "-",
    ]


def _cell(row: StepRow, system: str, way: str) -> str:
    """The whole time, and in brackets what of it is the host's."""
    host, total = row.host(system, way), row.total(system, way)
    if host is None or total is None:
        return "failed" if f"{system}, {way}" in row.problems else "-"
    scale = SCALE[row.workload.unit]
    return f"{_number(total * scale)} ({_number(host * scale)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _slower(row: StepRow, way: str, pictures: dict[tuple[str, str], str]) -> str:
    file = pictures.get((row.title, way))
    return f"- {row.title}, {way}" + (f": its graph is in `{file}`" if file else "")
