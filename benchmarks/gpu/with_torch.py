"""The workloads that torch has operations for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gpu.workloads import ALLOCATION, BINS, SMALL, STEP
from harness.bench import Array, Arrays, Bench, HostBench, StepBench, Way
from harness.processes import Options

DEVICE = "cuda"


def start(options: Options) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    synchronize()


def synchronize() -> None:
    torch.cuda.synchronize()


class Timer:
    """Seconds on the device between two events."""

    def __init__(self) -> None:
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def begin(self) -> None:
        self._begin.record()

    def end(self) -> float:
        self._end.record()
        self._end.synchronize()
        return float(self._begin.elapsed_time(self._end)) * 1e-3


def to_device(values: Array) -> Any:
    return torch.from_numpy(values).to(DEVICE)


def build_copy(data: Arrays) -> Bench:
    x = to_device(data["x"])
    y = torch.zeros_like(x)
    return Bench(lambda: y.copy_(x), lambda: {"y": y.cpu().numpy()})


def build_saxpy(data: Arrays) -> Bench:
    x, y = to_device(data["x"]), to_device(data["y"])
    return Bench(lambda: y.add_(x, alpha=2.0), lambda: {"y": y.cpu().numpy()})


def build_reduction(data: Arrays) -> Bench:
    x = to_device(data["x"])
    total = torch.zeros((), device=DEVICE)
    return Bench(lambda: torch.sum(x, 0, out=total), lambda: {"total": total.cpu().numpy().reshape(1)})


def build_matmul(data: Arrays) -> Bench:
    a, b = to_device(data["a"]), to_device(data["b"])
    c = torch.full_like(a, torch.nan)
    return Bench(lambda: torch.mm(a, b, out=c), lambda: {"c": c.cpu().numpy()})


def build_histogram(data: Arrays) -> Bench:
    keys, found = to_device(data["keys"]), {}

    def run() -> None:
        found["counts"] = torch.bincount(keys, minlength=BINS)

    return Bench(run, lambda: {"counts": found["counts"].cpu().numpy()})


def build_transcendental(data: Arrays) -> Bench:
    x, found = to_device(data["x"]), {}

    def run() -> None:
        found["y"] = torch.sin(x) * torch.cos(x) + torch.exp(-x) + torch.log(x + 1.0) + x**0.7

    return Bench(run, lambda: {"y": found["y"].cpu().numpy()})


def build_step(_: Arrays) -> HostBench:
    x, y = torch.ones(SMALL, device=DEVICE), torch.zeros(SMALL, device=DEVICE)

    def submit(count: int) -> None:
        for _ in range(count * STEP):
            y.add_(x)

    def check() -> str | None:
        submit(1)
        return None if (y.cpu().numpy() == STEP).all() else "the sums are wrong"

    return HostBench(submit, count=50, waits=True, check=check)


def captured(run: Callable[[], object]) -> Callable[[], object]:
    """`run` as a graph that torch replays; it runs first on another stream, as torch requires."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    replay: Callable[[], object] = graph.replay
    return replay


def steps_of(y: Any, run: Callable[[], object]) -> StepBench:
    """`run`, STEP launches that add 1 to y, one by one and as a graph."""
    ways = {"launches": run, "graph": captured(run)}
    return StepBench({name: Way(call, lambda: {"y": y.cpu().numpy()}, y.zero_) for name, call in ways.items()})


def build_step20(_: Arrays) -> StepBench:
    x, y = torch.ones(SMALL, device=DEVICE), torch.zeros(SMALL, device=DEVICE)

    def run() -> None:
        for _ in range(STEP):
            y.add_(x)

    return steps_of(y, run)


def build_event(_: Arrays) -> HostBench:
    here, there, event = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()

    def submit(count: int) -> None:
        for _ in range(count):
            event.record(here)
            event.wait(there)

    return HostBench(submit)


def build_event_host(_: Arrays) -> HostBench:
    stream, event = torch.cuda.Stream(), torch.cuda.Event()

    def submit(count: int) -> None:
        for _ in range(count):
            event.record(stream)
            event.synchronize()

    return HostBench(submit)


def _made(make: Callable[..., Any]) -> Callable[[Arrays], HostBench]:
    def build(_: Arrays) -> HostBench:
        def submit(count: int) -> None:
            for _ in range(count):
                make(ALLOCATION // 4, device=DEVICE)

        return HostBench(submit)

    return build


BUILDERS = {
    "copy": build_copy,
    "saxpy": build_saxpy,
    "reduction": build_reduction,
    "matmul_registers": build_matmul,
    "histogram": build_histogram,
    "transcendental": build_transcendental,
    "step": build_step,
    "step20": build_step20,
    "event": build_event,
    "event_host": build_event_host,
    "allocate": _made(torch.empty),
    "array": _made(torch.zeros),
}
