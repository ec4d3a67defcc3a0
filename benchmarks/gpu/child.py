"""The child process: one system. Prepares workloads, checks their results, and measures when the parent says so.

Standard input and output carry JSON lines; what the systems print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from gpu import options as command_line, steps
from gpu.bench import Bench, HostBench, OverlapBench, StepBench, Work
from gpu.options import Options
from gpu.workloads import STEPS, WORKLOADS, disagreement, inputs

MODULES = {
    "CUDA C": "gpu.cuda_c.system",
    "cuda-bindings": "gpu.with_bindings",
    "numba-cuda": "gpu.with_numba",
    "Quadrants": "gpu.qp_like.system",
    "quadpy": "gpu.qp_like.system",
    "quadpy fast": "gpu.qp_like.system",
    "torch": "gpu.with_torch",
    "Triton": "gpu.with_triton",
}
SAMPLE = 0.01  # seconds of runs between two readings of the clock, at least
MAX_BATCH = 1000
PROBE = 0.02  # seconds that one way of several is tried for


class Child:
    """What the process has in hand: a system, and the workload prepared last."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.system: Any = importlib.import_module(MODULES[options.system])
        self.system.start(options)
        self.bench: Any = None
        self.way: Work | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "prepare":
                return self.prepare(request["workload"])
            case "measure":
                return {"value": self.measure(request["budget"])}
            case "peak":
                return {"value": self.system.multiply_add_rate()}
            case "first":
                return {"value": self.first(request["workload"])}
            case "picture":
                return {"value": self.bench.ways[request["way"]].picture()}
            case _:
                self.bench = self.way = None
                gc.collect()
                self.system.synchronize()
                return {}

    def prepare(self, name: str) -> dict[str, Any]:
        """Builds a workload, runs it once, checks its results and chooses the fastest way to run it."""
        if name not in self.system.BUILDERS:
            return {"absent": True}
        data = inputs(name, (WORKLOADS | STEPS)[name].elements(self.options.scale))
        self.bench = self.system.BUILDERS[name](data)
        match self.bench:
            case HostBench():
                wrong = self.bench.check()
                self.system.synchronize()
                return {"problem": f"wrong result: {wrong}"} if wrong else {}
            case OverlapBench():
                self.bench.two()
                wrong = disagreement(name, data, self.bench.result())
                return {"problem": f"wrong result: {wrong}"} if wrong else {}
            case StepBench():
                return steps.prepare(self.bench, lambda found: disagreement(name, data, found), self.system.synchronize)
            case _:
                return self._choose(name, data)

    def _choose(self, name: str, data: Any) -> dict[str, Any]:
        ways, times, problem = self.bench.ways(), {}, ""
        for way, (run, trial) in ways.items():
            try:
                self.bench.reset()
                trial()
                self.system.synchronize()
                if wrong := disagreement(name, data, self.bench.result()):
                    problem = problem or f"wrong result: {wrong}"
                else:
                    times[way] = self._device(run, PROBE if len(ways) > 1 else 0.0)
            except Exception as error:  # noqa: PERF203 - another way may work
                if len(ways) == 1:
                    raise
                problem = problem or _text(error)
        if not times:
            return {"problem": problem}
        best = min(times, key=times.__getitem__)
        self.way = ways[best][0]
        return {"way": best, "ways": times, "note": problem}

    def measure(self, budget: float) -> Any:
        match self.bench:
            case StepBench():
                return steps.measure(self.bench, budget, self.system.synchronize)
            case HostBench():
                return _repeated(self._host, budget)
            case OverlapBench():
                return _repeated(lambda: _timed(self.bench.one) / _timed(self.bench.two), budget)
            case _:
                assert self.way
                return self._device(self.way, budget)

    def _device(self, run: Work, budget: float) -> float:
        """Seconds of one run on the device: the median of samples, each of so many runs that it can be timed."""
        timer = self.system.Timer()

        def sample(count: int) -> float:
            if self.bench.once:
                self.bench.reset()
                self.system.synchronize()
            timer.begin()
            for _ in range(count):
                run()
            return float(timer.end() / count)

        first = sample(1)
        count = 1 if self.bench.once else min(max(1, round(SAMPLE / max(first, 1e-7))), MAX_BATCH)
        return first if first > budget else _repeated(lambda: sample(count), budget)

    def _host(self) -> float:
        bench: HostBench = self.bench
        begin = time.perf_counter()
        own = bench.submit(bench.count)
        if bench.waits:
            self.system.synchronize()
        seconds = (time.perf_counter() - begin) / bench.count
        self.system.synchronize()
        return own if bench.inside and own is not None else seconds

    def first(self, name: str) -> float:
        """Seconds of the first trial of a workload, from a fresh process on."""
        bench: Bench = self.system.BUILDERS[name](
            inputs(name, WORKLOADS[name].elements("quick" if name == "mpm88" else "tiny"))
        )
        run, trial = next(iter(bench.ways().values()))
        del run
        self.system.synchronize()
        begin = time.perf_counter()
        bench.reset()
        trial()
        self.system.synchronize()
        return time.perf_counter() - begin


def _repeated(sample: Callable[[], float], budget: float) -> float:
    samples: list[float] = []
    end = time.perf_counter() + budget
    while len(samples) < 2 or time.perf_counter() < end:
        samples.append(sample())
    return statistics.median(samples)


def _timed(work: Work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _text(error: BaseException) -> str:
    """An exception in one line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip() if lines else ''}"


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    try:
        child = Child(command_line.parse())
    except Exception as error:  # noqa: BLE001 - the parent shows it
        reply({"problem": _text(error), "missing": isinstance(error, ImportError)})
        return
    reply({})
    for line in sys.stdin:
        try:
            reply(child.answer(json.loads(line)))
        except Exception as error:  # noqa: BLE001, PERF203 - likewise
            print(_text(error), file=sys.stderr)
            reply({"problem": _text(error), "raised": True})


if __name__ == "__main__":
    main()
