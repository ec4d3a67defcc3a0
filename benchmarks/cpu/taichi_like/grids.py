"""Loops over a plane: Jacobi sweeps, semi-Lagrangian advection, the Mandelbrot set."""

import numpy as np

from cpu.workloads import ADVECT_DT, ESCAPE_LIMIT, SWEEPS, Arrays, Bench, sample
from harness.language import array_of, pure_kernel, qp

floats = qp.types.ndarray(dtype=qp.f32, ndim=2)
ints = qp.types.ndarray(dtype=qp.i32, ndim=2)


@pure_kernel
def sweep(a: floats, b: floats):
    for i, j in qp.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@pure_kernel
def advect(dt: qp.f32, q: floats, u: floats, v: floats, out: floats):
    for i, j in qp.ndrange(q.shape[0], q.shape[1]):
        x = qp.min(qp.max(i - dt * u[i, j], 0.0), q.shape[0] - 1.001)
        y = qp.min(qp.max(j - dt * v[i, j], 0.0), q.shape[1] - 1.001)
        i0 = qp.i32(x)
        j0 = qp.i32(y)
        s = x - i0
        t = y - j0
        near = (1.0 - t) * q[i0, j0] + t * q[i0, j0 + 1]
        far = (1.0 - t) * q[i0 + 1, j0] + t * q[i0 + 1, j0 + 1]
        out[i, j] = (1.0 - s) * near + s * far


@pure_kernel
def mandelbrot(limit: qp.i32, out: ints):
    for i, j in qp.ndrange(out.shape[0], out.shape[1]):
        c_re = -2.0 + 3.0 * j / out.shape[1]
        c_im = -1.5 + 3.0 * i / out.shape[0]
        re = 0.0
        im = 0.0
        count = 0
        while count < limit and re * re + im * im < 4.0:
            next_re = re * re - im * im + c_re
            im = 2.0 * re * im + c_im
            re = next_re
            count += 1
        out[i, j] = count


def build_jacobi(data: Arrays) -> Bench:
    a, b = array_of(data["x"]), array_of(data["x"])

    def run() -> None:
        for _ in range(SWEEPS // 2):
            sweep(a, b)
            sweep(b, a)

    return Bench(run, lambda: {"a": sample(a.to_numpy())}, finish=qp.sync)


def build_advection(data: Arrays) -> Bench:
    q, u, v = (array_of(data[name]) for name in "quv")
    out = array_of(np.zeros_like(data["q"]))
    return Bench(lambda: advect(ADVECT_DT, q, u, v, out), lambda: {"out": sample(out.to_numpy())}, finish=qp.sync)


def build_mandelbrot(data: Arrays) -> Bench:
    out = array_of(data["out"])
    return Bench(lambda: mandelbrot(ESCAPE_LIMIT, out), lambda: {"out": sample(out.to_numpy())}, finish=qp.sync)


BUILDERS = {"jacobi": build_jacobi, "advection": build_advection, "mandelbrot": build_mandelbrot}
