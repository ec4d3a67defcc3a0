"""mpm88 in numba: one private grid per thread, written by hand, and merged in the grid step."""

import numba
import numpy as np

from cpu.with_numba.decorator import function, kernel
from cpu.workloads import MPM_DT, MPM_GRID, MPM_STEPS, Arrays, Bench

F32 = np.float32
DX = F32(1 / MPM_GRID)
INV_DX = F32(MPM_GRID)
DT = F32(MPM_DT)
VOLUME = F32((0.5 / MPM_GRID) ** 2)
MASS = VOLUME
GRAVITY = F32(9.8)
BOUND = 3
STRESS = F32(-MPM_DT * 4.0 * 400.0 * float(VOLUME) * MPM_GRID**2)
FOUR_INV_DX2 = F32(4.0 * MPM_GRID**2)
ZERO, HALF, ONE, THREE_HALVES, THREE_QUARTERS = F32(0), F32(0.5), F32(1), F32(1.5), F32(0.75)


@function
def weights(f):
    return HALF * (THREE_HALVES - f) ** 2, THREE_QUARTERS - (f - ONE) ** 2, HALF * (f - HALF) ** 2


@function
def cell(position):
    """The first of three grid lines around a coordinate, the offset from it, and the weights of the three."""
    scaled = position * INV_DX
    base = np.int32(scaled - HALF)
    offset = scaled - F32(base)
    return base, offset, weights(offset)


@function
def scatter(grid, position, velocity, gradient, expansion):
    (bi, fx, wx), (bj, fy, wy) = cell(position[0]), cell(position[1])
    stress = STRESS * (expansion - ONE)
    a00, a01 = stress + MASS * gradient[0, 0], MASS * gradient[0, 1]
    a10, a11 = MASS * gradient[1, 0], stress + MASS * gradient[1, 1]
    for i in range(3):
        for j in range(3):
            dpx, dpy = (F32(i) - fx) * DX, (F32(j) - fy) * DX
            weight = wx[i] * wy[j]
            grid[bi + i, bj + j, 0] += weight * (MASS * velocity[0] + a00 * dpx + a01 * dpy)
            grid[bi + i, bj + j, 1] += weight * (MASS * velocity[1] + a10 * dpx + a11 * dpy)
            grid[bi + i, bj + j, 2] += weight * MASS


@function
def bounded(k, side, component):
    """A velocity component, without its part that leaves the box."""
    if (k < BOUND and component < ZERO) or (k > side - BOUND and component > ZERO):
        return ZERO
    return component


@function
def merge(grids, i, j, side):
    """The velocity at a grid point, from all threads' momenta and masses."""
    vx = vy = m = ZERO
    for t in range(grids.shape[0]):
        vx += grids[t, i, j, 0]
        vy += grids[t, i, j, 1]
        m += grids[t, i, j, 2]
    if m > ZERO:
        vx /= m
        vy /= m
    return bounded(i, side, vx), bounded(j, side, vy - DT * GRAVITY)


@function
def gather(grid, position, velocity, gradient):
    (bi, fx, wx), (bj, fy, wy) = cell(position[0]), cell(position[1])
    vx = vy = c00 = c01 = c10 = c11 = ZERO
    for i in range(3):
        for j in range(3):
            dpx, dpy = (F32(i) - fx) * DX, (F32(j) - fy) * DX
            weight = wx[i] * wy[j]
            gx, gy = weight * grid[bi + i, bj + j, 0], weight * grid[bi + i, bj + j, 1]
            vx += gx
            vy += gy
            c00 += FOUR_INV_DX2 * gx * dpx
            c01 += FOUR_INV_DX2 * gx * dpy
            c10 += FOUR_INV_DX2 * gy * dpx
            c11 += FOUR_INV_DX2 * gy * dpy
    velocity[0], velocity[1] = vx, vy
    gradient[0, 0], gradient[0, 1], gradient[1, 0], gradient[1, 1] = c00, c01, c10, c11
    position[0] += DT * vx
    position[1] += DT * vy
    return ONE + DT * (c00 + c11)


@kernel
def substep(particles, gradients, expansion, grids, grid):
    x, v = particles
    threads, n, side = grids.shape[0], x.shape[0], grid.shape[0]
    for t in numba.prange(threads):
        grids[t] = ZERO
        for p in range(t * n // threads, (t + 1) * n // threads):
            scatter(grids[t], x[p], v[p], gradients[p], expansion[p])
    for i in numba.prange(side):
        for j in range(side):
            grid[i, j, 0], grid[i, j, 1] = merge(grids, i, j, side)
    for p in numba.prange(n):
        expansion[p] *= gather(grid, x[p], v[p], gradients[p])


def build_steps(steps: int, data: Arrays) -> Bench:
    n = data["x"].shape[0]
    x, v, gradients, expansion = data["x"].copy(), np.zeros((n, 2), F32), np.zeros((n, 2, 2), F32), np.ones(n, F32)
    grids = np.zeros((numba.get_num_threads(), MPM_GRID, MPM_GRID, 3), F32)
    grid = np.zeros((MPM_GRID, MPM_GRID, 2), F32)

    def reset() -> None:
        x[:], v[:], gradients[:], expansion[:] = data["x"], (0, -1), 0, 1

    def run() -> None:
        for _ in range(steps):
            substep((x, v), gradients, expansion, grids, grid)

    return Bench(run, lambda: {"x": x, "J": expansion}, reset)


BUILDERS = {
    "mpm88": lambda data: build_steps(MPM_STEPS, data),
    "first_mpm88": lambda data: build_steps(1, data),
}
