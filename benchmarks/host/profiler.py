"""What a profile costs the host for each launch, and what its events add to the times on a device."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import quadpy as qp

LAUNCHES = 2_000
MANY = 1 << 24
F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def scale(x: F32):
    for i in x:
        x[i] = x[i] * 0.5


def microseconds(call: Callable[[], object], count: int = LAUNCHES) -> float:
    """The best of several times of one call, in µs, without the wait at the end."""
    best = float("inf")
    for _ in range(5):
        qp.sync()
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, time.perf_counter() - start)
        qp.sync()
    return best / count * 1e6


def on_host(name: str, call: Callable[[], object]) -> None:
    """Print what a call costs the host, without and with a profile."""
    call()
    off = microseconds(call)
    with qp.profile():
        on = microseconds(call, LAUNCHES // 4)
    print(f"{name:28} off {off:7.2f} µs   on {on:7.2f} µs   more {on - off:7.2f} µs")


def on_device(name: str, call: Callable[[], object], **options: bool) -> None:
    """Print the times of a call's records on the device, and the time of many calls back to back."""
    call()
    whole = microseconds(call, 50)
    qp.sync()
    start = time.perf_counter()
    for _ in range(50):
        call()
    qp.sync()
    whole = (time.perf_counter() - start) / 50 * 1e6
    with qp.profile(**options) as p:
        for _ in range(50):
            call()
    times: dict[str, list[float]] = {}
    for record in p.records:
        if record.on_device and record.duration is not None:
            times.setdefault(f"{record.kind} {record.label}", []).append(record.duration * 1e3)
    shown = ", ".join(f"{key} {statistics.median(each):.2f}" for key, each in times.items())
    print(f"{name:28} {whole:8.2f} µs back to back; in the profile, µs: {shown}")


def main(words: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="run.py profiler", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=("cpu", "amdgpu", "cuda"), default="cpu")
    options = parser.parse_args(words)
    qp.init(arch=options.arch, cpu_max_num_threads=1)
    one, many = qp.ndarray(qp.f32, 1), qp.ndarray(qp.f32, MANY if options.arch != "cpu" else 1 << 20)
    with qp.graph.capture() as g:
        for _ in range(4):
            scale(many)
    run = g.instantiate()
    on_host("launch of one element", lambda: scale(one))
    on_host("launch of a graph", run.launch)
    on_device("kernel of one element", lambda: scale(one))
    on_device(f"kernel of {len(many)} elements", lambda: scale(many))
    on_device("graph of 4 kernels, by node", run.launch)
    on_device("graph of 4 kernels, whole", run.launch, nodes=False)
    with qp.profile() as p:
        scale(one)
    print(p.table().splitlines()[-1])
    return 0
