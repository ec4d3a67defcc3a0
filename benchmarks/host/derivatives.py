"""Backward kernels beside forward ones: times, their ratio, and a check sum of the gradients' bits, for a GPU and the CPU."""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import quadpy as qp

F32_2D = qp.types.ndarray(dtype=qp.f32, ndim=2)
Vectors2 = qp.types.ndarray(dtype=qp.types.vector(2, qp.f32), ndim=1)
Vectors3 = qp.types.ndarray(dtype=qp.types.vector(3, qp.f32), ndim=1)
Matrices = qp.types.ndarray(dtype=qp.types.matrix(2, 2, qp.f32), ndim=1)
Grid2 = qp.types.ndarray(dtype=qp.types.vector(2, qp.f32), ndim=2)


@qp.kernel
def stencil(u: F32_2D, out: F32_2D):
    for i, j in qp.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        near = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + 0.2 * (near - 4.0 * u[i, j])


@qp.kernel
def to_grid(x: Vectors2, v: Vectors2, mass: F32_2D, momentum: Grid2):
    for p in x:
        at = x[p] * mass.shape[0]
        base = qp.floor(at - 0.5, qp.i32)
        f = at - base
        w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1.0) ** 2, 0.5 * (f - 0.5) ** 2]
        for a, b in qp.static(qp.ndrange(3, 3)):
            weight = w[a][0] * w[b][1]
            mass[base[0] + a, base[1] + b] += weight
            momentum[base[0] + a, base[1] + b] += weight * v[p]


@qp.kernel
def forces(x: Vectors3, out: Vectors3):
    for i in x:
        total = qp.Vector([qp.f32(0.0), qp.f32(0.0), qp.f32(0.0)])
        for j in range(x.shape[0]):
            r = x[j] - x[i]
            near = qp.rsqrt(r.dot(r) + qp.f32(1e-3))
            total += r * (near * near * near)
        out[i] = total


@qp.kernel
def particles(x: Vectors2, v: Vectors2, c: Matrices, mass: F32_2D, momentum: Grid2):
    for p in x:
        at = x[p] * mass.shape[0]
        base = qp.floor(at - 0.5, qp.i32)
        f = at - base
        w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1.0) ** 2, 0.5 * (f - 0.5) ** 2]
        for a, b in qp.static(qp.ndrange(3, 3)):
            weight = w[a][0] * w[b][1]
            apart = (qp.Vector([a, b]) - f) / mass.shape[0]
            mass[base[0] + a, base[1] + b] += weight
            momentum[base[0] + a, base[1] + b] += weight * (v[p] + c[p] @ apart)


@qp.kernel
def cells(mass: F32_2D, momentum: Grid2, velocity: Grid2):
    for i, j in mass:
        velocity[i, j] = momentum[i, j] / (mass[i, j] + qp.f32(1e-6)) - qp.Vector([qp.f32(0.0), qp.f32(1e-3)])


@qp.kernel
def back_to_particles(x: Vectors2, velocity: Grid2, new_x: Vectors2, new_v: Vectors2, new_c: Matrices):
    for p in x:
        n = velocity.shape[0]
        at = x[p] * n
        base = qp.floor(at - 0.5, qp.i32)
        f = at - base
        w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1.0) ** 2, 0.5 * (f - 0.5) ** 2]
        speed = qp.Vector([qp.f32(0.0), qp.f32(0.0)])
        turn = qp.Matrix([[qp.f32(0.0), qp.f32(0.0)], [qp.f32(0.0), qp.f32(0.0)]])
        for a, b in qp.static(qp.ndrange(3, 3)):
            weight = w[a][0] * w[b][1]
            near = velocity[base[0] + a, base[1] + b]
            speed += weight * near
            turn += weight * near.outer_product(qp.Vector([a, b]) - f) * (4.0 * n)
        new_x[p] = x[p] + qp.f32(1e-4) * speed
        new_v[p] = speed
        new_c[p] = turn


class Program(NamedTuple):
    """Calls with their arrays; ``inputs`` are those whose gradients are compared."""

    calls: list[tuple[Any, tuple[Any, ...]]]
    inputs: list[Any]
    results: list[Any]


def made(dtype: Any, shape: Any, values: Any = None) -> Any:
    array = qp.ndarray(dtype, shape, needs_grad=True)
    if values is not None:
        array.from_numpy(np.asarray(values, np.float32))
    return array


def programs(scale: int) -> dict[str, Callable[[], Program]]:
    """Programs of about ``scale`` million operations for each array element or particle."""
    random = np.random.default_rng(0)
    vector2, vector3, matrix = qp.types.vector(2, qp.f32), qp.types.vector(3, qp.f32), qp.types.matrix(2, 2, qp.f32)

    def of_stencil() -> Program:
        n = 1024 * scale
        u, out = made(qp.f32, (n, n), random.standard_normal((n, n))), made(qp.f32, (n, n))
        return Program([(stencil, (u, out))], [u], [out])

    def of_grid() -> Program:
        n, cells = 50_000 * scale * scale, 128 * scale
        x, v = made(vector2, n, random.uniform(0.1, 0.9, (n, 2))), made(vector2, n, random.standard_normal((n, 2)))
        mass, momentum = made(qp.f32, (cells, cells)), made(vector2, (cells, cells))
        return Program([(to_grid, (x, v, mass, momentum))], [x, v], [mass, momentum])

    def of_bodies() -> Program:
        n = 2048 * scale
        x, out = made(vector3, n, random.standard_normal((n, 3))), made(vector3, n)
        return Program([(forces, (x, out))], [x], [out])

    def of_material() -> Program:
        n, m = 50_000 * scale * scale, 128 * scale
        x, v = made(vector2, n, random.uniform(0.1, 0.9, (n, 2))), made(vector2, n, random.standard_normal((n, 2)))
        c = made(matrix, n, random.standard_normal((n, 2, 2)))
        mass, momentum, velocity = made(qp.f32, (m, m)), made(vector2, (m, m)), made(vector2, (m, m))
        new = made(vector2, n), made(vector2, n), made(matrix, n)
        steps = [
            (particles, (x, v, c, mass, momentum)),
            (cells, (mass, momentum, velocity)),
            (back_to_particles, (x, velocity, *new)),
        ]
        return Program(steps, [x, v, c], list(new))

    return {"stencil": of_stencil, "particles to grid": of_grid, "n-body": of_bodies, "MPM step": of_material}


def milliseconds(run: Callable[[], None], rounds: int) -> float:
    """The best of several times, each of several runs."""
    run()
    qp.sync()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(5):
            run()
        qp.sync()
        best = min(best, (time.perf_counter() - start) / 5)
    return best * 1e3


def measured(program: Program, rounds: int) -> tuple[float, float, str]:
    """Milliseconds forward and backward, and a check sum of the gradients after one backward pass."""
    for result in program.results:
        numbers = np.random.default_rng(1).standard_normal(result.grad.to_numpy().shape)
        result.grad.from_numpy(numbers.astype(np.float32))
    for kernel, args in program.calls:
        kernel(*args)
    for kernel, args in reversed(program.calls):
        kernel.grad(*args)
    digest = hashlib.sha256(b"".join(each.grad.to_numpy().tobytes() for each in program.inputs)).hexdigest()[:12]
    run = [
        milliseconds(lambda: [kernel(*args) for kernel, args in program.calls], rounds),  # type: ignore[func-returns-value]
        milliseconds(lambda: [kernel.grad(*args) for kernel, args in reversed(program.calls)], rounds),
    ]
    return run[0], run[1], digest


def main(words: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="run.py derivatives", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", nargs="+", choices=("cpu", "amdgpu", "cuda"), default=["cpu"])
    parser.add_argument("--scale", type=int, default=1, help="2: twice as long along each axis")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(words)
    print(f"{'program':18} {'backend':8} {'sums':7} {'forward':>10} {'backward':>10} {'ratio':>6}  bits")
    for name in programs(options.scale):
        for arch in options.arch:
            for fast in (False, True):
                qp.init(arch=arch, fast_math=fast)
                forward, backward, digest = measured(programs(options.scale)[name](), options.rounds)
                sums = "atomic" if fast else "fixed"
                ratio = backward / forward
                print(
                    f"{name:18} {arch:8} {sums:7} {forward:7.3f} ms {backward:7.3f} ms {ratio:6.2f}  {digest}",
                    flush=True,
                )
    return 0
