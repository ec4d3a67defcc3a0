"""What events, streams, small arrays and reads cost on a GPU, compared with Quadrants, torch and the driver's own calls."""

from __future__ import annotations

import argparse
import functools
import importlib
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import quadpy as qp
from harness.report import table
from harness.timing import Work, in_turns, repeat
from quadpy.runtime.device import devices

CALLS = 100
BIG = 1 << 26
ROWS = (
    "make and destroy an event",
    "make and destroy a stream",
    "record an event",
    "make and drop an array of 4 KiB, zeroed",
    "make and drop an array of 4 KiB, not zeroed",
    "read one element",
    "write one element",
    "sum 2^26 floats, result on the host",
)


@qp.kernel
def total(x: qp.types.ndarray(dtype=qp.f32, ndim=1)) -> qp.f32:
    found = 0.0
    for i in x:
        found += x[i]
    return found


def of_quadpy() -> dict[str, Work]:
    event, small, big = qp.create_event(), qp.ndarray(qp.f32, 64), qp.ndarray(qp.f32, BIG)
    small.fill(1.0)
    big.fill(1.0)
    calls: tuple[Work | None, ...] = (
        lambda: qp.create_event().destroy(),
        lambda: qp.create_stream().destroy(),
        event.record,
        lambda: qp.ndarray(qp.f32, 1024),
        None,  # quadpy's arrays are always zeroed
        lambda: small[3],
        lambda: small.__setitem__(3, 2.0),
        lambda: total(big),
    )
    return _named(calls)


def _named(calls: Sequence[Work | None]) -> dict[str, Work]:
    """``calls`` by their rows, without those that a system lacks."""
    return {name: call for name, call in zip(ROWS, calls, strict=False) if call}


def of_torch() -> dict[str, Work]:
    torch: Any = importlib.import_module("torch")
    event, small, big = torch.cuda.Event(), torch.ones(64, device="cuda"), torch.ones(BIG, device="cuda")

    def recorded() -> None:
        torch.cuda.Event().record()  # torch makes its event when it is first recorded

    calls: tuple[Work | None, ...] = (
        recorded,
        None,  # its streams come from a pool of 32 and are never destroyed
        event.record,
        lambda: torch.zeros(1024, device="cuda"),
        lambda: torch.empty(1024, device="cuda"),
        small[3].item,
        lambda: small.__setitem__(3, 2.0),
        lambda: big.sum().item(),
    )
    return _named(calls)


def of_quadrants() -> dict[str, Work]:
    qd: Any = importlib.import_module("quadrants")
    qd.init(arch=qd.cuda, log_level="error")
    event, small = qd.create_event(), qd.ndarray(qd.f32, (64,))
    small.fill(1.0)
    calls: tuple[Work | None, ...] = (
        lambda: qd.create_event().destroy(),
        lambda: qd.create_stream().destroy(),
        event.record,
        lambda: qd.ndarray(qd.f32, (1024,)),
        None,
        lambda: small[3],
        lambda: small.__setitem__(3, 2.0),
    )
    return _named(calls)


def of_driver() -> dict[str, Work]:
    cuda: Any = importlib.import_module("cuda.bindings.driver")
    disabled = cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING
    event = cuda.cuEventCreate(disabled)[1]

    def array(*, zeroed: bool) -> None:
        pointer = cuda.cuMemAllocAsync(4096, 0)[1]
        if zeroed:
            cuda.cuMemsetD8Async(pointer, 0, 4096, 0)
        cuda.cuMemFreeAsync(pointer, 0)

    calls = (
        lambda: cuda.cuEventDestroy(cuda.cuEventCreate(disabled)[1]),
        lambda: cuda.cuStreamDestroy(cuda.cuStreamCreate(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)[1]),
        lambda: cuda.cuEventRecord(event, 0),
        lambda: array(zeroed=True),
        lambda: array(zeroed=False),
    )
    return _named(calls)


SYSTEMS: dict[str, Callable[[], dict[str, Work]]] = {
    "quadpy": of_quadpy, "Quadrants": of_quadrants, "torch": of_torch, "the driver, by cuda-bindings": of_driver,
}  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Print a table of µs; returns 1 if the machine has no such device."""
    parser = argparse.ArgumentParser(prog="run.py handles", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=("amdgpu", "cuda"), default="cuda")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args(words)
    qp.init(arch=options.arch, enable_fallback=False, log_level="error")
    try:
        device = devices.current_device()
    except qp.NoDeviceError as error:
        print(error, file=sys.stderr)
        return 1
    wanted = SYSTEMS if options.arch == "cuda" else {"quadpy": of_quadpy}
    systems = {name: works for name, made in wanted.items() if (works := _if_there(name, made))}
    print(f"{device.driver.info.name}, µs a call, medians of {options.rounds} rounds of {CALLS}\n")
    lines = []
    for row in ROWS:
        works = {name: functools.partial(repeat, calls[row], CALLS) for name, calls in systems.items() if row in calls}
        times = in_turns(works, options.rounds // (10 if row is ROWS[-1] else 1), device.synchronize)
        found = {name: statistics.median(rounds) / CALLS * 1e6 for name, rounds in times.items()}
        lines.append([row, *(f"{found[name]:.2f}" if name in found else "-" for name in systems)])
    print(table(["", *systems], lines, 1))
    return 0


def _if_there(name: str, made: Callable[[], dict[str, Work]]) -> dict[str, Work]:
    try:
        return made()
    except ImportError as error:
        print(f"{name} is not there: {error}", file=sys.stderr)
        return {}
