"""quadpy on the CPU beside Taichi, Quadrants and numba: `python benchmarks/cpu.py --help`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from peers.environment import PEERS, SYSTEMS, EnvironmentFailure, default_folder, prepare
from peers.report import facts, markdown, write
from peers.runner import Plan, Row, note, run
from peers.workloads import FIRST_CALLS, IMPORT, WORKLOADS

NAMES = (*WORKLOADS, *FIRST_CALLS, IMPORT.name)
BUSY = 0.5


def main() -> int:
    """Runs what the command line asks for, prints the table, and returns the exit status."""
    options = _options()
    if os.getloadavg()[0] > BUSY:
        note(f"the load average is {os.getloadavg()[0]:.1f}: the machine is busy, and the times will show it")
    try:
        peers = prepare(options.env)
    except EnvironmentFailure as failure:
        print(failure, file=sys.stderr)
        return 2
    systems = tuple(system for system in SYSTEMS if system in options.systems)
    pythons = {system: peers if system in PEERS else Path(sys.executable) for system in systems}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="quadpy-benchmark-") as scratch:
        plan = Plan(
            pythons,
            tuple(options.only),
            options.rounds,
            options.threads,
            options.quick,
            Path(scratch),
            options.fastest,
            options.cpu_time,
        )
        about = facts(plan)
        for row in run(plan):
            rows.append(row)
            note(f"{row.title}{', fast math' if row.fast_math else ''}: {_brief(row)}")
    print(markdown(rows, systems, about))
    for path in options.out:
        write(path, rows, systems, about)
    return 1 if any(row.problems for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"workloads: {' '.join(NAMES)}")
    parser.add_argument(
        "--env", type=Path, default=default_folder(), help="folder of the peers' environment (%(default)s)"
    )
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="WORKLOAD")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--fastest", action="store_true", help="report the fastest round: for a busy machine")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="the processors' time, of all threads: for a busy machine, with --threads 1",
    )
    parser.add_argument("--out", type=Path, nargs="+", default=[], help="also write here: .json, or Markdown")
    return parser.parse_args()


def _brief(row: Row) -> str:
    times = [f"{system} {row.time(system) or 0:.3g} s" for system in row.seconds if system not in row.problems]
    return ", ".join(times + [f"{system}: {text}" for system, text in row.problems.items()])


if __name__ == "__main__":
    sys.exit(main())
