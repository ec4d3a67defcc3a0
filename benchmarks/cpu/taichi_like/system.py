"""quadpy, Taichi and Quadrants on the CPU as systems: how to start, and which module has which workload."""

from __future__ import annotations

from cpu.workloads import Builders
from harness import language
from harness.processes import Options

BUILDERS = Builders("cpu.taichi_like")
Timer = None


def start(options: Options) -> None:
    language.start("cpu", options.cache, fast_math=options.fast_math, threads=options.threads)


def synchronize() -> None:
    """Each bench has its own `finish`."""
