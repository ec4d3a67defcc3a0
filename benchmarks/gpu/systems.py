"""The systems on a GPU, how their processes are started, and the options that both comparisons have."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from gpu.cuda_c.library import CudaFailure, compile_all
from harness.options import parser_of, rounds_of, scale_of
from harness.processes import BENCHMARKS, Child, Command, Options
from harness.runner import Plan, start

MODULES = {
    "CUDA C": "gpu.cuda_c.system",
    "cuda-bindings": "gpu.with_bindings",
    "Quadrants": "gpu.qp_like.system",
    "numba-cuda": "gpu.with_numba",
    "Triton": "gpu.with_triton",
    "torch": "gpu.with_torch",
    "quadpy": "gpu.qp_like.system",
    "quadpy fast": "gpu.qp_like.system",
}
SYSTEMS = tuple(MODULES)
PEERS = tuple(system for system in SYSTEMS if not system.startswith("quadpy"))


def gpu_parser(name: str, about: str | None, names: Sequence[str], systems: Sequence[str]) -> argparse.ArgumentParser:
    parser = parser_of(name, about, names, systems)
    parser.add_argument("--arch", choices=("cuda", "amdgpu", "cpu"), default="cuda", help="the backend of quadpy")
    parser.add_argument("--path", default="", help="an import path for quadpy and Quadrants only")
    parser.add_argument("--nvcc-arch", default="native", help="the architecture that nvcc compiles for (%(default)s)")
    return parser


@contextmanager
def planned(
    options: argparse.Namespace, quick_budget: float, absent: dict[str, str], sources: Collection[str] = ()
) -> Iterator[Plan]:
    """What to run, in a temporary folder; CUDA C is compiled, or `absent` says why it is missing."""
    systems = [system for system in SYSTEMS if system in options.systems]
    scale = "tiny" if options.arch == "cpu" else scale_of(options)
    with tempfile.TemporaryDirectory(prefix="quadpy-benchmark-") as folder:
        scratch, libraries = Path(folder), Path(folder) / "cuda_c"
        libraries.mkdir()
        compiled = [s for s in ("CUDA C", "cuda-bindings") if s in systems and s not in absent]
        try:
            if compiled:
                compile_all(libraries, options.nvcc_arch, sources)
        except CudaFailure as failure:
            absent |= dict.fromkeys(compiled, str(failure))

        def command(system: str, cache: Path, *, fast_math: bool = False) -> Command:
            ours = system.startswith("quadpy")
            arch = options.arch if ours or options.arch == "cpu" else "cuda"
            told = Options(
                system, MODULES[system], "gpu.workloads", arch, scale, str(cache),
                fast_math=fast_math or system == "quadpy fast",
            )  # fmt: skip
            caches = ("QUADPY_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH")
            variables = {name: str(cache / name.split("_")[0].lower()) for name in caches}
            variables |= {
                "BENCHMARK_LANGUAGE": "quadrants" if system == "Quadrants" else "quadpy",
                "BENCHMARK_CUDA_C": str(libraries),
                "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",
            }
            own = options.path if ours or system == "Quadrants" else ""
            paths = (str(BENCHMARKS.parent), own, os.environ.get("PYTHONPATH", ""))
            return Command(
                told, variables, paths=paths, dropped=("QUADPY_", "QD_", "NUMBA_", "PYTHONDONTWRITEBYTECODE")
            )

        budget = 0.0 if options.check else quick_budget if options.quick else 0.1
        yield Plan(systems, options.only, scale, rounds_of(options), budget, scratch, command)


@contextmanager
def started(plan: Plan, absent: dict[str, str]) -> Iterator[dict[str, Child]]:
    """A child for each system that is not in `absent`; systems that turn out to be missing are added to it."""
    with ExitStack() as stack:
        children = {
            system: stack.enter_context(closing(Child(plan.command(system, plan.scratch / "cache"))))
            for system in plan.systems
            if system not in absent
        }
        absent |= start(children)
        yield children
