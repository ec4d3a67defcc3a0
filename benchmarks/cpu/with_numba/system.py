"""numba as a system: it takes its options from the environment, and no call returns before its work is done."""

from __future__ import annotations

from cpu.workloads import Builders
from harness.processes import Options

BUILDERS = Builders("cpu.with_numba")
Timer = None


def start(_: Options) -> None:
    pass


def synchronize() -> None:
    pass
