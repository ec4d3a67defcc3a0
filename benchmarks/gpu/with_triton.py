# ruff: noqa: N803 - Triton's users write compile-time parameters in capitals
"""The workloads in Triton: programs over blocks of elements; torch holds the arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from gpu.with_torch import DEVICE, Timer, steps_of, synchronize, to_device
from gpu.workloads import BINS, SMALL, SOFTENING, SPIN_THREADS, STEP, SWEEPS
from harness.bench import Arrays, Bench, HostBench, OverlapBench, StepBench
from harness.processes import Options

__all__ = ["BUILDERS", "Timer", "start", "synchronize"]


def start(options: Options) -> None:
    synchronize()


@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))


@triton.jit
def saxpy(a, x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, a * tl.load(x + i) + tl.load(y + i))


@triton.jit
def total_of(x, total, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        sums += tl.load(x + first + tl.arange(0, BLOCK))
    tl.atomic_add(total, tl.sum(sums))


@triton.jit
def sweep(a, b, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = (tl.program_id(1) * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[None, :]
    inside = (i > 0) & (i < n - 1) & (j > 0) & (j < n - 1)
    at = a + i * n + j
    up, down = tl.load(at - n, mask=inside), tl.load(at + n, mask=inside)
    left, right = tl.load(at - 1, mask=inside), tl.load(at + 1, mask=inside)
    tl.store(b + i * n + j, 0.25 * (up + down + left + right), mask=inside)


@triton.jit
def nbody(position, out, n, SOFT: tl.constexpr, BLOCK: tl.constexpr, OTHERS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    px, py, pz = tl.load(position + i * 4), tl.load(position + i * 4 + 1), tl.load(position + i * 4 + 2)
    ax = tl.zeros((BLOCK, OTHERS), tl.float32)
    ay = tl.zeros((BLOCK, OTHERS), tl.float32)
    az = tl.zeros((BLOCK, OTHERS), tl.float32)
    for first in range(0, n, OTHERS):
        other = position + (first + tl.arange(0, OTHERS)) * 4
        dx = tl.load(other)[None, :] - px[:, None]
        dy = tl.load(other + 1)[None, :] - py[:, None]
        dz = tl.load(other + 2)[None, :] - pz[:, None]
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + SOFT)
        pull = tl.load(other + 3)[None, :] * inverse * inverse * inverse
        ax += dx * pull
        ay += dy * pull
        az += dz * pull
    tl.store(out + i * 4, tl.sum(ax, 1))
    tl.store(out + i * 4 + 1, tl.sum(ay, 1))
    tl.store(out + i * 4 + 2, tl.sum(az, 1))
    tl.store(out + i * 4 + 3, tl.zeros((BLOCK,), tl.float32))


@triton.jit
def matmul(a, b, c, n, EDGE: tl.constexpr, DEPTH: tl.constexpr):
    i = tl.program_id(1) * EDGE + tl.arange(0, EDGE)
    j = tl.program_id(0) * EDGE + tl.arange(0, EDGE)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((EDGE, EDGE), tl.float32)
    for step in range(0, n, DEPTH):
        u = tl.load(a + i[:, None] * n + (step + k)[None, :])
        v = tl.load(b + (step + k)[:, None] * n + j[None, :])
        total = tl.dot(u, v, total, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], total)


@triton.jit
def histogram(keys, counts, n, BLOCK: tl.constexpr, KEYS: tl.constexpr):
    bins = tl.zeros((KEYS,), tl.int32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        bins += tl.histogram(tl.load(keys + first + tl.arange(0, BLOCK)), KEYS)
    tl.atomic_add(counts + tl.arange(0, KEYS), bins)


@triton.jit
def transcendental(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.sin(v) * tl.cos(v) + tl.exp(-v) + tl.log(v + 1.0) + libdevice.pow(v, 0.7))


@triton.jit
def launch0(n):
    pass


@triton.jit
def launch2(n, a, b):
    i = tl.arange(0, 128)
    tl.store(a + i, tl.load(b + i, mask=i < n), mask=i < n)


@triton.jit
def launch8(n, a, b, c, d, e, f, g, h):
    i = tl.arange(0, 128)
    m = i < n
    total = tl.load(b + i, mask=m) + tl.load(c + i, mask=m) + tl.load(d + i, mask=m) + tl.load(e + i, mask=m)
    total += tl.load(f + i, mask=m) + tl.load(g + i, mask=m) + tl.load(h + i, mask=m)
    tl.store(a + i, total, mask=m)


@triton.jit
def add(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def spin(steps, states, THREADS: tl.constexpr):
    state = tl.arange(0, THREADS).to(tl.uint32)
    for _ in range(steps):
        state = state * 1664525 + 1013904223
    tl.store(states + tl.arange(0, THREADS), state.to(tl.int32, bitcast=True))


def _map(kernel: Any, *, scale: bool = False, block: int = 1024) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        x = to_device(data["x"])
        y = to_device(data["y"]) if scale else torch.zeros_like(x)
        bound = kernel[x.numel() // block,]
        given = (2.0, x, y) if scale else (x, y)
        return Bench(lambda: bound(*given, BLOCK=block), lambda: {"y": y.cpu().numpy()})

    return build


def build_total(data: Arrays) -> Bench:
    x, total = to_device(data["x"]), torch.zeros(1, device=DEVICE)
    bound = total_of[min(132 * 16, x.numel() // 4096),]
    return Bench(
        lambda: bound(x, total, x.numel(), BLOCK=4096), lambda: {"total": total.cpu().numpy()}, reset=total.zero_
    )


def build_stencil(data: Arrays) -> Bench:
    a, b = to_device(data["x"]), to_device(data["x"])
    n = len(data["x"])

    def pairs(count: int, block: int, rows: int) -> None:
        bound = sweep[n // block, n // rows]
        for _ in range(count):
            bound(a, b, n, BLOCK=block, ROWS=rows)
            bound(b, a, n, BLOCK=block, ROWS=rows)

    def reset() -> None:
        a.copy_(to_device(data["x"]))

    shapes = ((1024, 1), (256, 8), (128, 16))
    return Bench(
        {f"{rows}x{block}": lambda block=block, rows=rows: pairs(SWEEPS // 2, block, rows) for block, rows in shapes},
        lambda: {"x": a.cpu().numpy()},
        trial={f"{rows}x{block}": lambda block=block, rows=rows: pairs(1, block, rows) for block, rows in shapes},
        reset=reset,
    )


def build_nbody(data: Arrays) -> Bench:
    position = to_device(data["position"])
    out, n = torch.full_like(position, torch.nan), len(position)

    def run(block: int, others: int, warps: int) -> None:
        nbody[n // block,](position, out, n, SOFT=SOFTENING, BLOCK=block, OTHERS=others, num_warps=warps)

    shapes = ((64, 32, 4), (128, 16, 4), (32, 64, 4))
    return Bench(
        {f"{shape[0]}x{shape[1]}": lambda shape=shape: run(*shape) for shape in shapes},
        lambda: {"acceleration": out.cpu().numpy()},
        reset=lambda: out.fill_(torch.nan),
    )


def build_matmul(data: Arrays) -> Bench:
    a, b = to_device(data["a"]), to_device(data["b"])
    c, n = torch.full_like(a, torch.nan), len(a)

    def run(edge: int, depth: int, warps: int) -> None:
        matmul[n // edge, n // edge](a, b, c, n, EDGE=edge, DEPTH=depth, num_warps=warps, num_stages=3)

    shapes = ((128, 16, 8), (64, 32, 4), (64, 16, 4))
    return Bench(
        {f"{shape[0]}x{shape[1]}": lambda shape=shape: run(*shape) for shape in shapes},
        lambda: {"c": c.cpu().numpy()},
        reset=lambda: c.fill_(torch.nan),
    )


def build_histogram(data: Arrays) -> Bench:
    keys, counts = to_device(data["keys"]), torch.zeros(BINS, dtype=torch.int32, device=DEVICE)
    bound = histogram[min(132 * 8, keys.numel() // 2048),]
    return Bench(
        lambda: bound(keys, counts, keys.numel(), BLOCK=2048, KEYS=BINS),
        lambda: {"counts": counts.cpu().numpy()},
        reset=counts.zero_,
    )


def _launch(kernel: Any, count: int) -> Callable[[Arrays], HostBench]:
    def build(_: Arrays) -> HostBench:
        arrays = [torch.full((16,), float(i), device=DEVICE) for i in range(count)]
        bound = kernel[1,]

        def submit(times: int) -> None:
            for _ in range(times):
                bound(1, *arrays)

        def check() -> str | None:
            submit(1)
            right = not arrays or float(arrays[0][0]) == sum(range(count))
            return None if right else "the sum is wrong"

        return HostBench(submit, check=check)

    return build


def build_step(_: Arrays) -> HostBench:
    x, y = torch.ones(SMALL, device=DEVICE), torch.zeros(SMALL, device=DEVICE)
    bound = add[SMALL // 128,]

    def submit(count: int) -> None:
        for _ in range(count * STEP):
            bound(x, y, BLOCK=128)

    def check() -> str | None:
        submit(1)
        return None if (y.cpu().numpy() == STEP).all() else "the sums are wrong"

    return HostBench(submit, count=50, waits=True, check=check)


def build_step20(_: Arrays) -> StepBench:
    x, y = torch.ones(SMALL, device=DEVICE), torch.zeros(SMALL, device=DEVICE)
    bound = add[SMALL // 128,]

    def run() -> None:
        for _ in range(STEP):
            bound(x, y, BLOCK=128)

    return steps_of(y, run)


def build_overlap(data: Arrays) -> OverlapBench:
    steps = int(data["spins"][0])
    first, second = (torch.zeros(SPIN_THREADS, dtype=torch.int32, device=DEVICE) for _ in range(2))
    here, there = torch.cuda.Stream(), torch.cuda.Stream()
    synchronize()

    def both(on: Any) -> None:
        for stream, states in ((here, first), (on, second)):
            with torch.cuda.stream(stream):
                spin[1,](steps, states, THREADS=SPIN_THREADS, num_warps=1)
        here.synchronize()
        there.synchronize()

    return OverlapBench(
        lambda: both(here),
        lambda: both(there),
        lambda: {"first": first.cpu().numpy(), "second": second.cpu().numpy()},
    )


BUILDERS = {
    "copy": _map(copy),
    "saxpy": _map(saxpy, scale=True),
    "reduction": build_total,
    "stencil": build_stencil,
    "nbody_tiled": build_nbody,
    "matmul_registers": build_matmul,
    "histogram_shared": build_histogram,
    "transcendental": _map(transcendental),
    "launch0": _launch(launch0, 0),
    "launch2": _launch(launch2, 2),
    "launch8": _launch(launch8, 8),
    "step": build_step,
    "step20": build_step20,
    "overlap": build_overlap,
}
