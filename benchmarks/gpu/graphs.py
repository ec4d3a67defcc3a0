"""Steps of several tasks, by how they are launched, compared with CUDA C, Quadrants, Triton and torch.

A time is that of one step until its result is there, and in brackets what of it the host pays; ways of one system take
turns in one process, and must leave the same bytes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from gpu.report import DEVICE
from gpu.step_row import StepRow
from gpu.systems import SYSTEMS, gpu_parser, planned, started
from gpu.workloads import STEPS, GpuWorkload
from harness.options import report, write
from harness.processes import MEASURE, Child
from harness.report import bullets, facts, first_line, heading, not_measured, scaled, table
from harness.runner import Plan, clear, note, prepare, take_turns

TAKING_PART = ("CUDA C", "Quadrants", "Triton", "torch", "quadpy")
CUDA_C = ("graphs", "mpm88", "runtime")
ORDER = (
    "launches", "launches, forks", "host loop", "graph", "graph, no forks", "graph, other arrays", "replay",
    "replay, other arrays", "graph kernel", "graph kernel, other arrays", "graph kernel a step",
    "graph kernel, its loop", "fused", "fused, a step", "fused, its loop", "fuse='auto'",
)  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Runs what the command line asks for and prints the tables; the exit status is 1 if quadpy failed."""
    options = _options(words)
    absent: dict[str, str] = {}
    if options.arch != "cuda":
        peers = [s for s in options.systems if s != "quadpy" and (s, options.arch) != ("Quadrants", "cpu")]
        absent = dict.fromkeys(peers, f"it is measured on CUDA, not {options.arch}")
    note("each step's line comes as it is done; the table comes last")
    with planned(options, 0.05, absent, CUDA_C) as plan:
        about = facts(plan, first_line(*DEVICE) or options.arch) | {"nvcc": first_line("nvcc", "--version", last=True)}
        with started(plan, absent) as children:
            rows = [_measure(plan, STEPS[name], children) for name in plan.only]
    text = markdown(rows, absent, heading(about), _draw(rows, options.dots))
    report(options, text, {**about, "absent": absent, "rows": [row.record() for row in rows]})
    failed = {name for row in rows for name in row.problems} | set(absent)
    return 1 if any(name.startswith("quadpy") for name in failed) else 0


def _measure(plan: Plan, workload: GpuWorkload, children: dict[str, Child]) -> StepRow:
    row = StepRow(workload, workload.label(plan.scale))
    take_turns(plan, row, children, prepare(row, children))
    for system, way in row.slower():
        if (system, way) in row.pictures:
            row.pictures[system, way] = children[system].ask("picture", MEASURE, way=way)["value"]
    clear(row, children)
    note(f"{row.title}: " + ", ".join(f"{s} {w} {(row.total(s, w) or 0) * 1e6:.1f}" for s, w in row.times) + " [µs]")
    return row


def _draw(rows: Sequence[StepRow], folder: Path) -> dict[tuple[str, str], str]:
    """Writes the graphs that are slower than separate launches, for Graphviz; returns their files."""
    files = {}
    for row in rows:
        for (_, way), picture in row.pictures.items():
            if picture:
                file = folder / f"{row.workload.name}-{re.sub('[^a-z]+', '-', way)}.dot"
                write(file, picture)
                files[row.title, way] = str(file)
    return files


def markdown(rows: Sequence[StepRow], absent: dict[str, str], head: str, pictures: dict[tuple[str, str], str]) -> str:
    """The whole report; `pictures` are the files of the slower graphs, by title and way."""
    systems = [s for s in SYSTEMS if any(s == system for row in rows for system, _ in row.times)]
    lines = []
    for row in rows:
        named = {way for _, way in row.times}
        ways = [way for way in ORDER if way in named] + sorted(named - set(ORDER))
        lines += [_line(row, way, systems, first=not n) for n, way in enumerate(ways)]
    columns = ["step", "launched as", "unit", *systems, "spread", "launches / this", "CUDA C / quadpy"]
    remarks = [f"{row.title}, {way}: {text}" for row in rows for way, text in row.remarks.items()]
    slower = [_slower(row, way, pictures) for row in rows for _, way in row.slower()]
    parts = [head, table(columns, lines, 3), *bullets("What quadpy says", remarks)]
    return (
        "\n\n".join([*parts, *bullets("Slower than launches one by one", slower), *not_measured(rows, absent)]) + "\n"
    )


def _line(row: StepRow, way: str, systems: Sequence[str], *, first: bool) -> list[str]:
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
    """The whole time, with the host's share in brackets."""
    if (system, way) not in row.times:
        return "failed" if f"{system}, {way}" in row.problems else "-"
    return f"{scaled(row.total(system, way), row.workload.unit)} ({scaled(row.host(system, way), row.workload.unit)})"


def _slower(row: StepRow, way: str, pictures: dict[tuple[str, str], str]) -> str:
    file = pictures.get((row.title, way))
    return f"{row.title}, {way}" + (f": its graph is in `{file}`" if file else "")


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = gpu_parser("graphs", __doc__, tuple(STEPS), TAKING_PART)
    parser.add_argument(
        "--dots",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="the folder for drawings of slower graphs (%(default)s)",
    )
    return parser.parse_args(words)
