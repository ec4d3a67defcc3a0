"""Loops over a plane: Jacobi sweeps, semi-Lagrangian advection, the Mandelbrot set. Rows are shared among threads."""

import numba
import numpy as np

from cpu.with_numba.decorator import kernel
from cpu.workloads import ADVECT_DT, ESCAPE_LIMIT, SWEEPS, Arrays, Bench, sample

F32 = np.float32
ZERO, ONE, TWO, THREE, FOUR = F32(0.0), F32(1.0), F32(2.0), F32(3.0), F32(4.0)


@kernel
def sweep(a, b):
    quarter = F32(0.25)
    for i in numba.prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = quarter * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@kernel
def advect(dt, q, u, v, out):
    last_x = F32(q.shape[0] - 1.001)
    last_y = F32(q.shape[1] - 1.001)
    for i in numba.prange(q.shape[0]):
        for j in range(q.shape[1]):
            x = min(max(F32(i) - dt * u[i, j], ZERO), last_x)
            y = min(max(F32(j) - dt * v[i, j], ZERO), last_y)
            i0 = np.int32(x)
            j0 = np.int32(y)
            s = x - F32(i0)
            t = y - F32(j0)
            near = (ONE - t) * q[i0, j0] + t * q[i0, j0 + 1]
            far = (ONE - t) * q[i0 + 1, j0] + t * q[i0 + 1, j0 + 1]
            out[i, j] = (ONE - s) * near + s * far


@kernel
def mandelbrot(limit, out):
    rows, columns = F32(out.shape[0]), F32(out.shape[1])
    for i in numba.prange(out.shape[0]):
        for j in range(out.shape[1]):
            c_re = -TWO + THREE * F32(j) / columns
            c_im = -F32(1.5) + THREE * F32(i) / rows
            re = ZERO
            im = ZERO
            count = 0
            while count < limit and re * re + im * im < FOUR:
                next_re = re * re - im * im + c_re
                im = TWO * re * im + c_im
                re = next_re
                count += 1
            out[i, j] = count


def build_jacobi(data: Arrays) -> Bench:
    a, b = data["x"].copy(), data["x"].copy()

    def run() -> None:
        for _ in range(SWEEPS // 2):
            sweep(a, b)
            sweep(b, a)

    return Bench(run, lambda: {"a": sample(a)})


def build_advection(data: Arrays) -> Bench:
    q, u, v = (data[name] for name in "quv")
    out = np.zeros_like(q)
    return Bench(lambda: advect(F32(ADVECT_DT), q, u, v, out), lambda: {"out": sample(out)})


def build_mandelbrot(data: Arrays) -> Bench:
    out = data["out"]
    return Bench(lambda: mandelbrot(ESCAPE_LIMIT, out), lambda: {"out": sample(out)})


BUILDERS = {"jacobi": build_jacobi, "advection": build_advection, "mandelbrot": build_mandelbrot}
