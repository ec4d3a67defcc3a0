"""quadpy on a GPU beside CUDA C, Quadrants, numba-cuda, Triton and torch: `python benchmarks/gpu.py --help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from gpu.cuda_c.library import CudaFailure, compile_all
from gpu.report import as_json, facts, markdown, write
from gpu.runner import SYSTEMS, Plan, note, run
from gpu.workloads import FIRST_CALLS, WORKLOADS

NAMES = (*WORKLOADS, *FIRST_CALLS)


def main() -> int:
    """Runs what the command line asks for and prints the tables; the exit status is 1 where quadpy or CUDA C failed."""
    options = _options()
    scale = "tiny" if options.check or options.arch == "cpu" else "quick" if options.quick else "full"
    systems = [system for system in SYSTEMS if system in options.systems]
    if options.arch == "cpu":
        systems = [system for system in systems if system.startswith("quadpy")]
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="quadpy-benchmark-") as folder:
        scratch = Path(folder)
        libraries = scratch / "cuda_c"
        libraries.mkdir()
        if {"CUDA C", "cuda-bindings"} & set(systems):
            try:
                compile_all(libraries, options.nvcc_arch)
            except CudaFailure as failure:
                absent = dict.fromkeys(("CUDA C", "cuda-bindings"), str(failure))
        rounds = options.rounds or (1 if options.check else 3 if options.quick else 5)
        budget = 0.0 if options.check else 0.04 if options.quick else 0.1
        plan = Plan(options.arch, scale, systems, options.only, rounds, budget, libraries, scratch, options.path)
        about = facts(plan)
        measured = run(plan, absent)
    text = markdown(measured, about)
    print(text)
    if options.json:
        write(options.json, as_json(measured, about))
    if options.markdown:
        write(options.markdown, text)
    ours = {system for row in measured.rows for system in row.problems} | set(measured.absent)
    return 1 if {"quadpy", "quadpy fast", "CUDA C"} & ours - set(absent) else 0


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"there is no workload {name!r}; there are {', '.join(NAMES)}")
    return names


def _systems(text: str) -> list[str]:
    for name in text.split(","):
        if name not in SYSTEMS:
            raise argparse.ArgumentTypeError(f"there is no system {name!r}; there are {', '.join(SYSTEMS)}")
    return text.split(",")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", choices=("cuda", "amdgpu", "cpu"), default="cuda", help="of quadpy")
    parser.add_argument("--only", type=_names, default=NAMES, metavar="NAME,...", help=" ".join(NAMES))
    parser.add_argument("--systems", type=_systems, default=SYSTEMS, metavar="NAME,...", help=", ".join(SYSTEMS))
    parser.add_argument("--path", default="", help="import path of quadpy and Quadrants alone")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    parser.add_argument("--check", action="store_true", help="tiny sizes, once: are the results right?")
    parser.add_argument("--nvcc-arch", default="native", help="what nvcc compiles for (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    note("each workload's line comes as it is done; the tables come last")
    sys.exit(main())
