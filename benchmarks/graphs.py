"""Steps of several tasks, by how they are launched, beside CUDA C, Quadrants, Triton and torch.

``python benchmarks/graphs.py --help``.  A time is that of one step until its result is there, and in brackets what of it
the host pays; ways of one system take turns in one process, and must leave the same bytes.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from gpu.cuda_c.library import CudaFailure, compile_all
from gpu.report import facts, write
from gpu.runner import Plan, note
from gpu.step_report import as_json, markdown
from gpu.step_runner import MeasuredSteps, run
from gpu.workloads import STEPS

SYSTEMS = ("CUDA C", "Quadrants", "Triton", "torch", "quadpy")

CUDA_C = ("graphs", "mpm88", "runtime")


def main() -> int:
    """Runs what the command line asks for and prints the tables; the exit status is 1 where quadpy failed."""
    options = _options()
    systems = [system for system in SYSTEMS if system in options.systems]
    absent: dict[str, str] = {}
    if options.arch != "cuda":
        absent = {s: f"it is measured on CUDA, not {options.arch}" for s in systems if s != "quadpy"}
        if options.arch == "cpu":
            absent.pop("Quadrants", None)
    with tempfile.TemporaryDirectory(prefix="quadpy-benchmark-") as folder:
        scratch = Path(folder)
        libraries = scratch / "cuda_c"
        libraries.mkdir()
        if "CUDA C" in systems and "CUDA C" not in absent:
            try:
                compile_all(libraries, options.nvcc_arch, CUDA_C)
            except CudaFailure as failure:
                absent["CUDA C"] = str(failure)
        scale = "tiny" if options.check or options.arch == "cpu" else "quick" if options.quick else "full"
        rounds = options.rounds or (1 if options.check else 3 if options.quick else 5)
        budget = 0.0 if options.check else 0.05 if options.quick else 0.1
        plan = Plan(options.arch, scale, systems, options.only, rounds, budget, libraries, scratch, options.path)
        about = facts(plan)
        measured = run(plan, absent)
    text = markdown(measured, about, _draw(measured, options.dots))
    print(text)
    if options.json:
        write(options.json, as_json(measured, about))
    if options.markdown:
        write(options.markdown, text)
    ours = {name for row in measured.rows for name in row.problems} | set(measured.absent)
    return 1 if any(name.startswith("quadpy") for name in ours) else 0


def _draw(measured: MeasuredSteps, folder: Path) -> dict[tuple[str, str], str]:
    """Writes the graphs that lost against launches one by one, for Graphviz; gives their files."""
    files = {}
    for row in measured.rows:
        for (_, way), picture in row.pictures.items():
            if picture:
                file = folder / f"{row.workload.name}-{re.sub('[^a-z]+', '-', way)}.dot"
                write(file, picture)
                files[row.title, way] = str(file)
    return files


def _among(known: tuple[str, ...], text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(known)}")
    return names


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=("cuda", "amdgpu", "cpu"), default="cuda", help="of quadpy")
    parser.add_argument(
        "--only", type=lambda text: _among(tuple(STEPS), text), default=tuple(STEPS), metavar="NAME,...",
        help=" ".join(STEPS),
    )  # fmt: skip
    parser.add_argument(
        "--systems", type=lambda text: _among(SYSTEMS, text), default=SYSTEMS, metavar="NAME,...",
        help=", ".join(SYSTEMS),
    )  # fmt: skip
    parser.add_argument("--path", default="", help="import path of quadpy and Quadrants alone")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--check", action="store_true", help="tiny sizes, once: are the results right?")
    parser.add_argument("--nvcc-arch", default="native", help="what nvcc compiles for (%(default)s)")
    parser.add_argument("--dots", type=Path, default=Path(), metavar="FOLDER", help="of graphs that lose (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    note("each step's line comes as it is done; the table comes last")
    sys.exit(main())
