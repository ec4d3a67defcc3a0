"""quadpy on the CPU compared with Taichi, Quadrants and numba: one process for each workload, and results are compared."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from cpu.environment import PEERS, REQUIREMENTS, SYSTEMS, EnvironmentFailure, default_folder, prepare as prepare_peers
from cpu.workloads import ALL, FIRST_CALLS, IMPORT, WORKLOADS, CpuWorkload, difference
from harness.options import parser_of, report, rounds_of, scale_of
from harness.processes import BENCHMARKS, Child, Command, Options
from harness.report import cell, facts, heading, not_measured, processor, record, table
from harness.runner import Plan, Row, first_calls, imports, note, prepare, take_turns

BUSY = 0.5


def main(words: Sequence[str]) -> int:
    """Runs what the command line asks for; the exit status is 1 if something failed, 2 if the peers are missing."""
    options = _options(words)
    if os.getloadavg()[0] > BUSY:
        note(f"the load average is {os.getloadavg()[0]:.1f}: the machine is busy, and the times will show it")
    systems = [system for system in SYSTEMS if system in options.systems]
    try:
        peers = prepare_peers(options.env) if set(systems) & set(PEERS) else Path(sys.executable)
    except EnvironmentFailure as failure:
        print(failure, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="quadpy-benchmark-") as scratch:
        plan = _plan(options, systems, peers, Path(scratch))
        versions = REQUIREMENTS.read_text(encoding="utf-8").split()
        about = facts(plan, processor()) | {"threads": options.threads, "peers": " ".join(versions)}
        about["time"] = "fastest round" if options.fastest else "median of the rounds"
        rows = []
        for row in _run(plan):
            rows.append(row)
            note(row.brief() + ", fast math" * row.fast_math)
    data = {**about, "rows": [record(row, ratio=ratio(row)) for row in rows]}
    report(options, markdown(rows, systems, heading(about)), data)
    return 1 if any(row.problems for row in rows) else 0


def _plan(options: argparse.Namespace, systems: Sequence[str], peers: Path, scratch: Path) -> Plan:
    scale = scale_of(options)

    def command(system: str, cache: Path, *, fast_math: bool = False) -> Command:
        told = Options(
            system, "cpu.with_numba.system" if system == "numba" else "cpu.taichi_like.system", "cpu.workloads", "cpu",
            scale, str(cache), package=system, fast_math=fast_math, threads=options.threads, cpu_time=options.cpu_time,
        )  # fmt: skip
        variables = {"BENCHMARK_LANGUAGE": system, "BENCHMARK_FAST_MATH": str(int(fast_math))}
        for name in ("NUMBA", "QUADPY"):
            variables |= {f"{name}_NUM_THREADS": str(options.threads), f"{name}_CACHE_DIR": str(cache)}
        ours = system == "quadpy"
        return Command(told, variables, Path(sys.executable) if ours else peers, (str(BENCHMARKS.parent),) * ours)

    budget = 0.0 if options.check else 0.05 if options.quick else 0.3
    summary = min if options.fastest else statistics.median
    return Plan(systems, options.only, scale, rounds_of(options), budget, scratch, command, summary)


def _run(plan: Plan) -> Iterator[Row[CpuWorkload]]:
    """Every selected workload, strict and with fast math, as its row becomes known."""
    for fast_math in (False, True):
        for workload in WORKLOADS.values():
            if workload.name in plan.only:
                yield _steady(plan, workload, fast_math=fast_math)
    for workload in FIRST_CALLS.values():
        if workload.name in plan.only:
            yield from first_calls(plan, workload, plan.systems, plan.rounds)
    if IMPORT.name in plan.only:
        yield imports(plan, IMPORT)


def _steady(plan: Plan, workload: CpuWorkload, *, fast_math: bool) -> Row[CpuWorkload]:
    """Compiled once, compared, then measured in turns."""
    row = Row[CpuWorkload](workload, workload.label(plan.scale), workload.elements(plan.scale), fast_math, plan.summary)
    folder = plan.scratch / ("fast" if fast_math else "strict")
    with ExitStack() as stack:
        children = {
            system: stack.enter_context(closing(Child(plan.command(system, folder / system, fast_math=fast_math))))
            for system in plan.systems
        }
        ready = prepare(row, children, lambda system: str(folder / system / "results.npz"))
        found = {system: dict(np.load(folder / system / "results.npz")) for system in ready}
        for system in ready[1:]:
            if problem := difference(workload, found[ready[0]], found[system]):
                row.problems[system] = f"differs from {ready[0]}: {problem}"
        take_turns(plan, row, children, ready)
    return row


def ratio(row: Row[CpuWorkload]) -> float | None:
    """How many times faster than the best peer quadpy is; below 1 it is slower."""
    ours = row.time("quadpy")
    theirs = min([time for peer in PEERS if (time := row.time(peer)) is not None], default=None)
    return theirs / ours if ours and theirs else None


def markdown(rows: Sequence[Row[CpuWorkload]], systems: Sequence[str], head: str) -> str:
    """The whole report: machine, one table for each mode, what went wrong."""
    parts = [head]
    for fast_math in (False, True):
        chosen = [row for row in rows if row.fast_math == fast_math]
        if chosen:
            columns = ["workload", "unit", *systems, "best peer / quadpy"]
            lines = [
                [
                    row.title,
                    row.workload.unit,
                    *(cell(row, s) for s in systems),
                    f"{ratio(row):.2f}" if ratio(row) else "-",
                ]
                for row in chosen
            ]
            parts.append(f"`fast_math={fast_math}`\n\n" + table(columns, lines, 2))
    return "\n\n".join([*parts, *not_measured(rows, {})]) + "\n"


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = parser_of("cpu", __doc__, tuple(ALL), SYSTEMS)
    parser.add_argument(
        "--env", type=Path, default=default_folder(), help="folder of the peers' environment (%(default)s)"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fastest", action="store_true", help="report the fastest round: for a busy machine")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="the processors' time, of all threads: for a busy machine, with --threads 1",
    )
    return parser.parse_args(words)
