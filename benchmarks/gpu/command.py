"""quadpy on a GPU compared with CUDA C, Quadrants, numba-cuda, Triton and torch: one process for each system."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gpu.report import DEVICE, as_json, markdown
from gpu.systems import SYSTEMS, gpu_parser, planned, started
from gpu.workloads import FIRST_CALLS, WORKLOADS, GpuWorkload
from harness.options import report
from harness.processes import MEASURE, Child
from harness.report import facts, first_line
from harness.runner import Plan, Row, clear, first_calls, note, prepare, take_turns

NAMES = (*WORKLOADS, *FIRST_CALLS)
FIRST = ("Quadrants", "numba-cuda", "Triton", "quadpy")


def main(words: Sequence[str]) -> int:
    """Runs what the command line asks for and prints the tables; the exit status is 1 if quadpy or CUDA C failed."""
    options = _options(words)
    if options.arch == "cpu":
        options.systems = [system for system in options.systems if system.startswith("quadpy")]
    absent: dict[str, str] = {}
    note("each workload's line comes as it is done; the tables come last")
    with planned(options, 0.04, absent) as plan:
        not_compiled = set(absent)
        about = facts(plan, first_line(*DEVICE) or options.arch) | {"nvcc": first_line("nvcc", "--version", last=True)}
        rows, multiply_adds = _run(plan, absent)
    report(options, markdown(rows, multiply_adds, absent, about), as_json(rows, multiply_adds, absent, about))
    failed = {system for row in rows for system in row.problems} | set(absent)
    return 1 if {"quadpy", "quadpy fast", "CUDA C"} & failed - not_compiled else 0


def _run(plan: Plan, absent: dict[str, str]) -> tuple[list[Row[GpuWorkload]], float | None]:
    """All rows, and the rate of fused multiply-adds where CUDA C could measure it."""
    rows, rate = [], None
    with started(plan, absent) as children:
        if "CUDA C" in children:
            rate = children["CUDA C"].ask("peak", MEASURE)["value"]
        rows += [_measure(plan, WORKLOADS[name], children) for name in plan.only if name in WORKLOADS]
    for name in plan.only:
        if name in FIRST_CALLS:
            takers = [s for s in plan.systems if s in FIRST and s not in absent]
            rows += first_calls(plan, FIRST_CALLS[name], takers, min(plan.rounds, 2))
    return rows, rate


def _measure(plan: Plan, workload: GpuWorkload, children: dict[str, Child]) -> Row[GpuWorkload]:
    row = Row(workload, workload.label(plan.scale), workload.elements(plan.scale))
    taking_part = {s: c for s, c in children.items() if s != "quadpy fast" or workload.modes}
    take_turns(plan, row, taking_part, prepare(row, taking_part))
    clear(row, taking_part)
    note(row.brief())
    return row


def _options(words: Sequence[str]) -> argparse.Namespace:
    return gpu_parser("gpu", __doc__, NAMES, SYSTEMS).parse_args(words)
