"""Steps that can be launched in several ways, in a child process: whether all are right, and what each costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from harness.bench import Arrays, StepBench, Way, Work

INSIDE = 20  # runs of one sample that a way measures itself
LEAST, MOST = 3, 1000  # samples
SHORT, ROW = (
    1e-3,
    10,
)  # shorter steps run some times in a row, as they do in a program: by then their code is in the caches


def prepare(bench: StepBench, wrong: Callable[[Arrays], str | None], wait: Work) -> dict[str, Any]:
    """Runs each way; one that raises, or whose results are wrong or are not those of the first, is left out."""
    problems: dict[str, str] = {}
    first: list[bytes] | None = None
    for name, way in bench.ways.items():
        try:
            found = _tried(way, wait)
        except Exception as error:  # noqa: BLE001 - the others are measured
            problems[name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            continue
        contents = [found[key].tobytes() for key in sorted(found)]
        first = first or contents
        if text := wrong(found):
            problems[name] = f"wrong result: {text}"
        elif bench.exact and contents != first:
            problems[name] = "wrong result: not the bytes of the first way"
    for name in problems:
        del bench.ways[name]
    pictures = [name for name, way in bench.ways.items() if way.picture]
    answer = {"problems": problems, "remarks": dict(bench.remarks), "steps": bench.steps, "pictures": pictures}
    return answer if bench.ways else {"problem": "; ".join(dict.fromkeys(problems.values()))}


def _tried(way: Way, wait: Work) -> Arrays:
    way.reset()
    wait()
    (way.trial or way.run)()
    wait()
    return way.result()


def measure(bench: StepBench, budget: float, wait: Work) -> dict[str, list[float]]:
    """The host's seconds and all seconds of a step in each way: medians of samples in which the ways take turns."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in bench.ways}
    end = time.perf_counter() + budget * len(bench.ways)
    count = 0
    while count < (LEAST if budget else 1) or (time.perf_counter() < end and count < MOST):
        for name, way in bench.ways.items():
            samples[name].append(_sample(way, bench, wait))
        count += 1
    return {
        name: [statistics.median(times) / bench.steps for times in zip(*taken, strict=True)]
        for name, taken in samples.items()
    }


def _sample(way: Way, bench: StepBench, wait: Work) -> tuple[float, float]:
    if bench.once:
        way.reset()
        wait()
    if way.inside:
        return way.inside(INSIDE)
    runs = [_timed(way, wait)]
    if not bench.once and runs[0][1] < SHORT:
        runs += [_timed(way, wait) for _ in range(ROW - 1)]
    host, whole = (statistics.median(times) for times in zip(*runs, strict=True))
    return host, whole


def _timed(way: Way, wait: Work) -> tuple[float, float]:
    begin = time.perf_counter()
    way.run()
    submitted = time.perf_counter()
    wait()
    return submitted - begin, time.perf_counter() - begin
