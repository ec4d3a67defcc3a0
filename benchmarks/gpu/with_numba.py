"""The workloads in numba-cuda, as its users write them: kernels over threads, sizes of blocks and grids by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it, NumPy 2.5 has it no more
    np.row_stack = np.vstack  # noqa: NPY201

from numba import cuda, float32, int32, uint32
from numba.cuda import libdevice

from gpu.workloads import (
    ALLOCATION,
    BINS,
    MPM_DT,
    MPM_GRID,
    MPM_STEPS,
    MPM_TRIAL,
    SMALL,
    SOFTENING as _SOFTENING,
    SPIN_THREADS,
    STEP,
    SWEEPS,
)
from harness.bench import Arrays, Bench, HostBench, OverlapBench
from harness.processes import Options

F32 = np.float32
SOFTENING = F32(_SOFTENING)
QUARTER, ONE, POWER = F32(0.25), F32(1), F32(0.7)
BLOCK = 256
TILE = 16
WIDE = 32

kernel = cuda.jit(cache=True)
function = cuda.jit(device=True)


def start(options: Options) -> None:
    cuda.synchronize()


def synchronize() -> None:
    cuda.synchronize()


class Timer:
    """Seconds on the device between two events."""

    def __init__(self) -> None:
        self._begin, self._end = cuda.event(), cuda.event()

    def begin(self) -> None:
        self._begin.record()

    def end(self) -> float:
        self._end.record()
        self._end.synchronize()
        return float(self._begin.elapsed_time(self._end)) * 1e-3


@kernel
def copy(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]


@kernel
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@kernel
def total_of(x, total):
    sums = cuda.shared.array(BLOCK, float32)
    lane = cuda.threadIdx.x
    part = F32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        part += x[i]
    sums[lane] = part
    cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if lane < step:
            sums[lane] += sums[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        cuda.atomic.add(total, 0, sums[0])


@kernel
def sweep(a, b):
    j, i = cuda.grid(2)
    if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
        b[i, j] = QUARTER * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@kernel
def nbody(position, out):
    i = cuda.grid(1)
    px, py, pz = position[i, 0], position[i, 1], position[i, 2]
    ax = ay = az = F32(0)
    for j in range(position.shape[0]):
        dx, dy, dz = position[j, 0] - px, position[j, 1] - py, position[j, 2] - pz
        inverse = libdevice.rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING)
        pull = position[j, 3] * inverse * inverse * inverse
        ax += dx * pull
        ay += dy * pull
        az += dz * pull
    out[i, 0], out[i, 1], out[i, 2], out[i, 3] = ax, ay, az, F32(0)


@kernel
def nbody_tiled(position, out):
    tile = cuda.shared.array((BLOCK, 4), float32)
    i, lane = cuda.grid(1), cuda.threadIdx.x
    px, py, pz = position[i, 0], position[i, 1], position[i, 2]
    ax = ay = az = F32(0)
    for t in range(position.shape[0] // BLOCK):
        for k in range(4):
            tile[lane, k] = position[t * BLOCK + lane, k]
        cuda.syncthreads()
        for j in range(BLOCK):
            dx, dy, dz = tile[j, 0] - px, tile[j, 1] - py, tile[j, 2] - pz
            inverse = libdevice.rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING)
            pull = tile[j, 3] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        cuda.syncthreads()
    out[i, 0], out[i, 1], out[i, 2], out[i, 3] = ax, ay, az, F32(0)


@kernel
def matmul_16(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), float32)
    b_tile = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    j, i = cuda.threadIdx.x, cuda.threadIdx.y
    total = F32(0)
    for step in range(a.shape[1] // TILE):
        a_tile[i, j] = a[row, step * TILE + j]
        b_tile[i, j] = b[step * TILE + i, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += a_tile[i, k] * b_tile[k, j]
        cuda.syncthreads()
    c[row, column] = total


@kernel
def matmul_32(a, b, c):
    a_tile = cuda.shared.array((WIDE, WIDE), float32)
    b_tile = cuda.shared.array((WIDE, WIDE), float32)
    column, row = cuda.grid(2)
    j, i = cuda.threadIdx.x, cuda.threadIdx.y
    total = F32(0)
    for step in range(a.shape[1] // WIDE):
        a_tile[i, j] = a[row, step * WIDE + j]
        b_tile[i, j] = b[step * WIDE + i, column]
        cuda.syncthreads()
        for k in range(WIDE):
            total += a_tile[i, k] * b_tile[k, j]
        cuda.syncthreads()
    c[row, column] = total


@kernel
def histogram(keys, counts):
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(counts, keys[i], 1)


@kernel
def histogram_shared(keys, counts):
    bins = cuda.shared.array(BINS, int32)
    lane = cuda.threadIdx.x
    bins[lane] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, keys[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, lane, bins[lane])


@kernel
def transcendental(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        y[i] = math.sin(v) * math.cos(v) + math.exp(-v) + math.log(v + ONE) + math.pow(v, POWER)


@kernel
def launch0(n):
    pass


@kernel
def launch2(n, a, b):
    i = cuda.grid(1)
    if i < n:
        a[i] = b[i]


@kernel
def launch8(n, a, b, c, d, e, f, g, h):
    i = cuda.grid(1)
    if i < n:
        a[i] = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]


@kernel
def add(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] + y[i]


@kernel
def spin(steps, states):
    state = uint32(cuda.threadIdx.x)
    for _ in range(steps):
        state = uint32(state * uint32(1664525) + uint32(1013904223))
    states[cuda.threadIdx.x] = state


DX, INV_DX, DT = F32(1 / MPM_GRID), F32(MPM_GRID), F32(MPM_DT)
MASS = F32((0.5 / MPM_GRID) ** 2)
FALL = F32(MPM_DT * 9.8)
BOUND = 3
STRESS = F32(-MPM_DT * 4.0 * 400.0 * (0.5 / MPM_GRID) ** 2 * MPM_GRID**2)
FOUR_INV_DX2 = F32(4.0 * MPM_GRID**2)
ZERO, HALF, THREE_HALVES, THREE_QUARTERS = F32(0), F32(0.5), F32(1.5), F32(0.75)


@function
def cell(position):
    """The first of three grid lines around a coordinate, and the offset from it."""
    scaled = position * INV_DX
    base = int32(scaled - HALF)
    return base, scaled - F32(base)


@function
def weight(k, f):
    if k == 0:
        return HALF * (THREE_HALVES - f) * (THREE_HALVES - f)
    if k == 1:
        return THREE_QUARTERS - (f - ONE) * (f - ONE)
    return HALF * (f - HALF) * (f - HALF)


@kernel
def clear(grid_v, grid_m):
    j, i = cuda.grid(2)
    grid_v[i, j, 0] = ZERO
    grid_v[i, j, 1] = ZERO
    grid_m[i, j] = ZERO


@kernel
def to_grid(x, v, C, J, grid_v, grid_m):  # noqa: N803 - as the method calls them
    p = cuda.grid(1)
    if p >= x.shape[0]:
        return
    bi, fx = cell(x[p, 0])
    bj, fy = cell(x[p, 1])
    stress = STRESS * (J[p] - ONE)
    a00, a01 = stress + MASS * C[p, 0], MASS * C[p, 1]
    a10, a11 = MASS * C[p, 2], stress + MASS * C[p, 3]
    for i in range(3):
        for j in range(3):
            dx, dy = (F32(i) - fx) * DX, (F32(j) - fy) * DX
            w = weight(i, fx) * weight(j, fy)
            cuda.atomic.add(grid_v, (bi + i, bj + j, 0), w * (MASS * v[p, 0] + a00 * dx + a01 * dy))
            cuda.atomic.add(grid_v, (bi + i, bj + j, 1), w * (MASS * v[p, 1] + a10 * dx + a11 * dy))
            cuda.atomic.add(grid_m, (bi + i, bj + j), w * MASS)


@kernel
def on_grid(grid_v, grid_m):
    j, i = cuda.grid(2)
    u, w, m = grid_v[i, j, 0], grid_v[i, j, 1], grid_m[i, j]
    if m > ZERO:
        u /= m
        w /= m
    w -= FALL
    if (i < BOUND and u < ZERO) or (i > MPM_GRID - BOUND and u > ZERO):
        u = ZERO
    if (j < BOUND and w < ZERO) or (j > MPM_GRID - BOUND and w > ZERO):
        w = ZERO
    grid_v[i, j, 0] = u
    grid_v[i, j, 1] = w


@kernel
def to_particles(x, v, C, J, grid_v):  # noqa: N803
    p = cuda.grid(1)
    if p >= x.shape[0]:
        return
    bi, fx = cell(x[p, 0])
    bj, fy = cell(x[p, 1])
    vx = vy = c00 = c01 = c10 = c11 = ZERO
    for i in range(3):
        for j in range(3):
            dx, dy = (F32(i) - fx) * DX, (F32(j) - fy) * DX
            w = weight(i, fx) * weight(j, fy)
            gx, gy = grid_v[bi + i, bj + j, 0], grid_v[bi + i, bj + j, 1]
            scaled = FOUR_INV_DX2 * w
            vx += w * gx
            vy += w * gy
            c00 += scaled * gx * dx
            c01 += scaled * gx * dy
            c10 += scaled * gy * dx
            c11 += scaled * gy * dy
    v[p, 0], v[p, 1] = vx, vy
    x[p, 0] += DT * vx
    x[p, 1] += DT * vy
    J[p] *= ONE + DT * (c00 + c11)
    C[p, 0], C[p, 1], C[p, 2], C[p, 3] = c00, c01, c10, c11


def _blocks(n: int, block: int = BLOCK) -> int:
    return (n + block - 1) // block


def _map(launched: Any, *, scale: bool = False) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        n = len(data["x"])
        x, y = cuda.to_device(data["x"]), cuda.to_device(data.get("y", np.zeros_like(data["x"])))
        bound = launched[_blocks(n), BLOCK]
        given = (F32(2.0), x, y) if scale else (x, y)
        return Bench(
            lambda: bound(*given),
            lambda: {"y": y.copy_to_host()},
            reset=lambda: y.copy_to_device(data["y"]) if scale else None,
        )

    return build


def build_total(data: Arrays) -> Bench:
    x, total = cuda.to_device(data["x"]), cuda.to_device(np.zeros(1, F32))
    bound = total_of[min(132 * 8, _blocks(len(data["x"]))), BLOCK]
    return Bench(
        lambda: bound(x, total),
        lambda: {"total": total.copy_to_host()},
        reset=lambda: total.copy_to_device(np.zeros(1, F32)),
    )


def build_stencil(data: Arrays) -> Bench:
    a, b = cuda.to_device(data["x"]), cuda.to_device(data["x"])
    n = len(data["x"])
    bound = sweep[(_blocks(n, 32), _blocks(n, 8)), (32, 8)]

    def pair() -> None:
        bound(a, b)
        bound(b, a)

    def run() -> None:
        for _ in range(SWEEPS // 2):
            pair()

    return Bench(run, lambda: {"x": a.copy_to_host()}, trial=pair, reset=lambda: a.copy_to_device(data["x"]))


def _bodies(launched: Any) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        position, out = cuda.to_device(data["position"]), cuda.to_device(np.full_like(data["position"], np.nan))
        bound = launched[len(data["position"]) // BLOCK, BLOCK]
        return Bench(lambda: bound(position, out), lambda: {"acceleration": out.copy_to_host()})

    return build


def build_matmul(data: Arrays) -> Bench:
    a, b, c = cuda.to_device(data["a"]), cuda.to_device(data["b"]), cuda.to_device(np.full_like(data["a"], np.nan))
    n = len(data["a"])
    narrow, wide = matmul_16[(n // TILE, n // TILE), (TILE, TILE)], matmul_32[(n // WIDE, n // WIDE), (WIDE, WIDE)]
    return Bench(
        {"matmul_16": lambda: narrow(a, b, c), "matmul_32": lambda: wide(a, b, c)},
        lambda: {"c": c.copy_to_host()},
        reset=lambda: c.copy_to_device(np.full_like(data["a"], np.nan)),
    )


def _counts(launched: Any, most: int) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        keys, counts = cuda.to_device(data["keys"]), cuda.to_device(np.zeros(BINS, np.int32))
        bound = launched[min(most, _blocks(len(data["keys"]))), BINS]
        return Bench(
            lambda: bound(keys, counts),
            lambda: {"counts": counts.copy_to_host()},
            reset=lambda: counts.copy_to_device(np.zeros(BINS, np.int32)),
        )

    return build


def build_mpm88(data: Arrays) -> Bench:
    n = len(data["x"])
    x, v, C, J = (cuda.to_device(np.zeros(shape, F32)) for shape in ((n, 2), (n, 2), (n, 4), n))
    grid_v, grid_m = (cuda.to_device(np.zeros((MPM_GRID, MPM_GRID, *last), F32)) for last in ((2,), ()))
    square = ((MPM_GRID // 32, MPM_GRID // 8), (32, 8))
    bound = (clear[square], to_grid[_blocks(n, 64), 64], on_grid[square], to_particles[_blocks(n, 64), 64])

    def reset() -> None:
        x.copy_to_device(data["x"])
        v.copy_to_device(np.tile(np.array([0, -1], F32), (n, 1)))
        C.copy_to_device(np.zeros((n, 4), F32))
        J.copy_to_device(np.ones(n, F32))

    def steps(count: int) -> None:
        for _ in range(count):
            bound[0](grid_v, grid_m)
            bound[1](x, v, C, J, grid_v, grid_m)
            bound[2](grid_v, grid_m)
            bound[3](x, v, C, J, grid_v)

    return Bench(
        lambda: steps(MPM_STEPS),
        lambda: {"x": x.copy_to_host(), "J": J.copy_to_host()},
        trial=lambda: steps(MPM_TRIAL),
        reset=reset,
        once=True,
    )


def _launch(launched: Any, count: int) -> Callable[[Arrays], HostBench]:
    def build(_: Arrays) -> HostBench:
        arrays = [cuda.to_device(np.full(16, i, F32)) for i in range(count)]
        bound = launched[1, 128]

        def submit(times: int) -> None:
            for _ in range(times):
                bound(1, *arrays)

        def check() -> str | None:
            submit(1)
            right = not arrays or arrays[0].copy_to_host()[0] == sum(range(count))
            return None if right else "the sum is wrong"

        return HostBench(submit, check=check)

    return build


def build_step(_: Arrays) -> HostBench:
    x, y = cuda.to_device(np.ones(SMALL, F32)), cuda.to_device(np.zeros(SMALL, F32))
    bound = add[_blocks(SMALL, 128), 128]

    def submit(count: int) -> None:
        for _ in range(count * STEP):
            bound(x, y)

    def check() -> str | None:
        submit(1)
        return None if (y.copy_to_host() == STEP).all() else "the sums are wrong"

    return HostBench(submit, count=50, waits=True, check=check)


def build_event(_: Arrays) -> HostBench:
    here, there, event = cuda.stream(), cuda.stream(), cuda.event(timing=False)

    def submit(count: int) -> None:
        for _ in range(count):
            event.record(here)
            event.wait(there)

    return HostBench(submit)


def build_event_host(_: Arrays) -> HostBench:
    stream, event = cuda.stream(), cuda.event(timing=False)

    def submit(count: int) -> None:
        for _ in range(count):
            event.record(stream)
            event.synchronize()

    return HostBench(submit)


def build_array(_: Arrays) -> HostBench:
    def submit(count: int) -> None:
        for _ in range(count):
            cuda.device_array(ALLOCATION // 4, F32)

    return HostBench(submit, count=20)


def build_overlap(data: Arrays) -> OverlapBench:
    steps = int(data["spins"][0])
    first, second = (cuda.to_device(np.zeros(SPIN_THREADS, np.uint32)) for _ in range(2))
    here, there = cuda.stream(), cuda.stream()

    def both(on: Any) -> None:
        spin[1, SPIN_THREADS, here](steps, first)
        spin[1, SPIN_THREADS, on](steps, second)
        here.synchronize()
        there.synchronize()

    return OverlapBench(
        lambda: both(here),
        lambda: both(there),
        lambda: {"first": first.copy_to_host(), "second": second.copy_to_host()},
    )


BUILDERS = {
    "copy": _map(copy),
    "saxpy": _map(saxpy, scale=True),
    "reduction": build_total,
    "stencil": build_stencil,
    "nbody": _bodies(nbody),
    "nbody_tiled": _bodies(nbody_tiled),
    "matmul": build_matmul,
    "histogram": _counts(histogram, 1 << 30),
    "histogram_shared": _counts(histogram_shared, 132 * 8),
    "mpm88": build_mpm88,
    "transcendental": _map(transcendental),
    "launch0": _launch(launch0, 0),
    "launch2": _launch(launch2, 2),
    "launch8": _launch(launch8, 8),
    "step": build_step,
    "event": build_event,
    "event_host": build_event_host,
    "array": build_array,
    "overlap": build_overlap,
}
