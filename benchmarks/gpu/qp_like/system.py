"""quadpy and Quadrants as systems: how to start, wait and measure; which module has which workload."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness import language
from harness.language import NAME, qp
from harness.processes import Options

_MODULES = {
    "copy": "loops",
    "saxpy": "loops",
    "reduction": "loops",
    "histogram": "loops",
    "transcendental": "loops",
    "stencil": "grids",
    "nbody": "nbody",
    "nbody_tiled": "nbody",
    "matmul": "matmul",
    "matmul_registers": "matmul",
    "histogram_shared": "histogram",
    "mpm88": "mpm88",
    "overlap": "overlap",
    **dict.fromkeys(("launch0", "launch2", "launch8", "step", "event", "event_host", "allocate", "array"), "launches"),
    "step20": "steps",
    "mpm88_steps": "mpm88_steps",
}
if NAME == "quadpy":
    _MODULES |= dict.fromkeys(("chain2", "chain20", "chain20_17", "chain20_20"), "chains")
    _MODULES |= dict.fromkeys(("cg_32", "cg_128", "cg_512"), "solver")
    _MODULES["decode"] = "decoder"


class _Builders(Mapping[str, Callable[..., Any]]):
    """A module is imported when its workload is first requested, so one that fails does not affect the others."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        builder: Callable[..., Any] = importlib.import_module(f"gpu.qp_like.{_MODULES[name]}").BUILDERS[name]
        return builder

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


BUILDERS = _Builders()


def start(options: Options) -> None:
    language.start(options.arch, options.cache, fast_math=options.fast_math)


def synchronize() -> None:
    qp.sync()


class Timer:
    """Seconds between two events; by the clock for Quadrants, whose events have no times."""

    def __init__(self) -> None:
        self._events = [qp.create_event(timing=True) for _ in range(2)] if NAME == "quadpy" else []
        self._begin = 0.0

    def begin(self) -> None:
        if self._events:
            self._events[0].record()
        else:
            self._begin = time.perf_counter()

    def end(self) -> float:
        if not self._events:
            qp.sync()
            return time.perf_counter() - self._begin
        begin, end = self._events
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3
