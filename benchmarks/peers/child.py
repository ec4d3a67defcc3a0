"""The child process: one system, one workload. Says when it is ready, then measures whenever the parent says so.

Standard output carries JSON lines to the parent and nothing else; what the systems print goes to standard error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import IO

import numpy as np

from peers.workloads import FIRST_CALLS, WORKLOADS, Arrays, Bench, inputs


def main() -> None:
    options = _options()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if options.workload == "import":
        _reply(replies, value=_timed(lambda: importlib.import_module(options.system)))
        return
    workload = (WORKLOADS | FIRST_CALLS)[options.workload]
    size = workload.elements(quick=options.quick)
    _start(options)
    kernels = importlib.import_module(f"peers.{_package(options.system)}.{workload.module}")
    bench: Bench = kernels.BUILDERS[workload.name](inputs(workload.name, size))
    if workload.name in FIRST_CALLS:
        first = _timed(lambda: (bench.run(), bench.finish()))
        np.savez(options.result, allow_pickle=False, **bench.result())
        _reply(replies, value=first)
        return
    np.savez(options.result, allow_pickle=False, **_result(bench))
    _reply(replies, ready=True)
    for line in sys.stdin:
        _reply(
            replies, value=_measure(bench, float(line), time.process_time if options.cpu_time else time.perf_counter)
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("workload")
    parser.add_argument("--fast-math", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--result")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu-time", action="store_true")
    return parser.parse_args()


def _package(system: str) -> str:
    return "with_numba" if system == "numba" else "taichi_like"


def _start(options: argparse.Namespace) -> None:
    """Gets the system ready. It reads the environment when it is imported, and kernels are imported after this."""
    os.environ["BENCHMARK_SYSTEM"] = options.system
    os.environ["BENCHMARK_LANGUAGE"] = options.system  # of kernels that the GPU benchmark has, too
    os.environ["BENCHMARK_FAST_MATH"] = str(int(options.fast_math))
    for system in ("NUMBA", "QUADPY"):
        os.environ[f"{system}_NUM_THREADS"] = str(options.threads)
        os.environ[f"{system}_CACHE_DIR"] = options.cache
    if options.system != "numba":
        from peers.taichi_like.language import start

        start(fast_math=options.fast_math, threads=options.threads, cache=options.cache)


def _result(bench: Bench) -> Arrays:
    bench.reset()
    bench.run()
    bench.finish()
    return bench.result()


def _measure(bench: Bench, budget: float, clock: Callable[[], float]) -> float:
    """Seconds per call: the median of as many samples as fit into `budget` seconds."""
    samples: list[float] = []
    end = time.perf_counter() + budget
    while not samples or time.perf_counter() < end:
        bench.reset()
        samples.append(_timed(lambda: _batch(bench), clock) / bench.batch)
    return statistics.median(samples)


def _batch(bench: Bench) -> None:
    run = bench.run
    for _ in range(bench.batch):
        run()
    bench.finish()


def _timed(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    function()
    return clock() - start


def _reply(stream: IO[str], **message: object) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
