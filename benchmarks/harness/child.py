"""The child process: one system.  It prepares workloads, checks their results, and measures on the parent's request.

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

import numpy as np

from harness import steps
from harness.bench import Bench, HostBench, OverlapBench, StepBench, Work
from harness.processes import Options

SAMPLE = 0.01  # seconds of runs between two readings of a device's clock, at least
MAX_BATCH = 1000
PROBE = 0.02  # seconds that one way of several is tried for


class Child:
    """The state of the process: a system, and the workload prepared last.

    A system is a module with `start`, `synchronize`, `BUILDERS` of benches by name, and a `Timer` of its device, which
    is None if the host's clock times the work.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.import_seconds = _timed(lambda: importlib.import_module(options.package)) if options.package else 0.0
        self.workloads: Any = importlib.import_module(options.workloads)
        self.start_seconds = self.import_seconds + _timed(self._start)
        self.bench: Any = None
        self.way: Work | None = None

    def _start(self) -> None:
        self.system: Any = importlib.import_module(self.options.module)
        self.system.start(self.options)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "prepare":
                return self.prepare(request["workload"], request.get("results"))
            case "measure":
                return {"value": self.measure(request["budget"])}
            case "peak":
                return {"value": self.system.multiply_add_rate()}
            case "first":
                return {"value": self.first(request["workload"])}
            case "picture":
                return {"value": self.bench.ways[request["way"]].picture()}
            case "drop":
                self.bench = self.way = None
                gc.collect()
                self.system.synchronize()
                return {}
            case other:
                raise ValueError(f"unknown request {other!r}")

    def prepare(self, name: str, results: str | None) -> dict[str, Any]:
        """Builds a workload, runs it once, and checks its results, or leaves them in the file `results`."""
        if name not in self.system.BUILDERS:
            return {"absent": True}
        data = self._data(name)
        self.bench = self.system.BUILDERS[name](data)

        def wrong(found: Any) -> str | None:
            text: str | None = self.workloads.disagreement(name, data, found)
            return text

        match self.bench:
            case HostBench():
                problem = self.bench.check()
                self.system.synchronize()
            case OverlapBench():
                self.bench.two()
                problem = wrong(self.bench.result())
            case StepBench():
                return steps.prepare(self.bench, wrong, self.system.synchronize)
            case _ if results:
                ((self.way, trial),) = self.bench.ways().values()
                self._try(trial)
                np.savez(results, allow_pickle=False, **self.bench.result())
                return {}
            case _:
                return self._choose(wrong)
        return {"problem": f"wrong result: {problem}"} if problem else {}

    def measure(self, budget: float) -> Any:
        match self.bench:
            case StepBench():
                return steps.measure(self.bench, budget, self.system.synchronize)
            case HostBench():
                return _repeated(self._host, budget, least=2)
            case OverlapBench():
                return _repeated(lambda: _timed(self.bench.one) / _timed(self.bench.two), budget, least=2)
            case _:
                assert self.way
                return self._device(self.way, budget) if self.system.Timer else _repeated(self._clocked, budget)

    def first(self, name: str) -> float:
        """Seconds of the first trial of a workload, from a fresh process on."""
        build = self.system.BUILDERS.get(name) or self.system.BUILDERS[name.removeprefix("first_")]
        self.bench = build(self._data(name))
        ((_, trial), *_) = self.bench.ways().values()
        self.system.synchronize()
        return _timed(lambda: self._try(trial))

    def _data(self, name: str) -> Any:
        return self.workloads.inputs(name, self.workloads.ALL[name].elements(self.options.scale))

    def _try(self, trial: Work) -> None:
        self.bench.reset()
        trial()
        self.bench.finish()
        self.system.synchronize()

    def _choose(self, wrong: Callable[[Any], str | None]) -> dict[str, Any]:
        """Tries each way, and takes the fastest whose results are right."""
        ways, times, problem = self.bench.ways(), {}, ""
        for way, (run, trial) in ways.items():
            try:
                self._try(trial)
                if text := wrong(self.bench.result()):
                    problem = problem or f"wrong result: {text}"
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

    def _device(self, run: Work, budget: float) -> float:
        """Seconds of one run on the device: the median of samples, each of enough runs to be timed."""
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
        return first if first > budget else _repeated(lambda: sample(count), budget, least=2)

    def _clocked(self) -> float:
        """Seconds of one run by the host's clock, or by the processor's."""
        bench: Bench = self.bench
        bench.reset()
        return _timed(self._batch, time.process_time if self.options.cpu_time else time.perf_counter) / bench.batch

    def _batch(self) -> None:
        run, finish = self.way, self.bench.finish
        assert run
        for _ in range(self.bench.batch):
            run()
        finish()

    def _host(self) -> float:
        bench: HostBench = self.bench
        begin = time.perf_counter()
        own = bench.submit(bench.count)
        if bench.waits:
            self.system.synchronize()
        seconds = (time.perf_counter() - begin) / bench.count
        self.system.synchronize()
        return own if bench.inside and own is not None else seconds


def _repeated(sample: Callable[[], float], budget: float, least: int = 1) -> float:
    """The median of as many samples as fit into `budget` seconds."""
    samples: list[float] = []
    end = time.perf_counter() + budget
    while len(samples) < least or time.perf_counter() < end:
        samples.append(sample())
    return statistics.median(samples)


def _timed(work: Work, clock: Callable[[], float] = time.perf_counter) -> float:
    begin = clock()
    work()
    return clock() - begin


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
        child = Child(Options(**json.loads(sys.argv[1])))
    except Exception as error:  # noqa: BLE001 - the parent shows it
        reply({"raised": _text(error)})
        return
    reply({"import": child.import_seconds, "start": child.start_seconds})
    for line in sys.stdin:
        try:
            reply(child.answer(json.loads(line)))
        except Exception as error:  # noqa: BLE001, PERF203 - likewise
            print(_text(error), file=sys.stderr)
            reply({"raised": _text(error)})


if __name__ == "__main__":
    main()
