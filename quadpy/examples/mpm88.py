"""Water and jelly: a port of Taichi's well-known 88-line material point method.

Particles carry mass, momentum and deformation; a grid, rebuilt in each step, carries the forces (MLS-MPM: Hu et al., "A
Moving Least Squares Material Point Method", SIGGRAPH 2018).  The box has length 1, with (0, 0) at its lower left corner.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Floats, Picture, Sink

n_particles = 8192
n_grid = 128
dx = 1 / n_grid
dt = 2e-4
substeps = 3  # of time dt in each step that --steps counts
density = 1.0
volume = (dx / 2) ** 2  # of a particle: four fill a cell
mass = volume * density
gravity = 9.8
walls = 3  # thickness of the walls in cells
stiffness = 400.0  # of water against compression
shear, bulk = 60.0, 120.0  # Lamé's mu and lambda of jelly
WATER, JELLY = 0, 1

x = qp.Vector.field(2, qp.f32, shape=n_particles)  # position
v = qp.Vector.field(2, qp.f32, shape=n_particles)  # velocity
C = qp.Matrix.field(2, 2, qp.f32, shape=n_particles)  # velocity gradient (affine momentum)
F = qp.Matrix.field(2, 2, qp.f32, shape=n_particles)  # deformation gradient
material = qp.field(qp.i32, shape=n_particles)
grid_v = qp.Vector.field(2, qp.f32, shape=(n_grid, n_grid))  # momentum, then velocity
grid_m = qp.field(qp.f32, shape=(n_grid, n_grid))


@qp.func
def weights(fx: qp.math.vec2) -> list[qp.math.vec2]:
    """The quadratic B-spline at the three nodes around a particle, one vector for each node."""
    return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]


@qp.func
def rotation(A: qp.math.mat2) -> qp.math.mat2:
    """The rotation in the polar decomposition of A, which has a closed form in two dimensions."""
    r = qp.Vector([A[0, 0] + A[1, 1], A[1, 0] - A[0, 1]]).normalized()
    return qp.Matrix([[r[0], -r[1]], [r[1], r[0]]])


@qp.func
def kirchhoff_stress(A: qp.math.mat2, kind: qp.i32) -> qp.math.mat2:
    """Water has a pressure, jelly the fixed corotated model.  The determinant is the relative change of volume."""
    J = A.determinant()
    tau = qp.Matrix.identity(qp.f32, 2) * (stiffness * (J - 1.0))
    if kind == JELLY:
        tau = 2.0 * shear * (A - rotation(A)) @ A.transpose() + qp.Matrix.identity(qp.f32, 2) * (bulk * (J - 1.0) * J)
    return tau


@qp.kernel
def p2g() -> None:
    """Particles to grid: mass and momentum, with the impulse of the stress in this step."""
    for i, j in grid_m:
        grid_v[i, j] = [0.0, 0.0]
        grid_m[i, j] = 0.0
    for p in x:
        base = qp.cast(x[p] / dx - 0.5, qp.i32)
        fx = x[p] / dx - base
        w = weights(fx)
        stress = -dt * 4.0 * volume / dx**2 * kirchhoff_stress(F[p], material[p])
        affine = stress + mass * C[p]
        for i, j in qp.static(qp.ndrange(3, 3)):
            offset = qp.Vector([i, j])
            dpos = (offset - fx) * dx
            weight = w[i][0] * w[j][1]
            grid_v[base + offset] += weight * (mass * v[p] + affine @ dpos)
            grid_m[base + offset] += weight * mass


@qp.kernel
def update_grid() -> None:
    """Turn momentum into velocity, apply gravity, and stop material at the walls; it may slide along them."""
    for i, j in grid_m:
        if grid_m[i, j] > 0.0:
            u = grid_v[i, j] / grid_m[i, j]
            u[1] -= dt * gravity
            if i < walls:
                u[0] = qp.max(u[0], 0.0)
            if i > n_grid - walls:
                u[0] = qp.min(u[0], 0.0)
            if j < walls:
                u[1] = qp.max(u[1], 0.0)
            if j > n_grid - walls:
                u[1] = qp.min(u[1], 0.0)
            grid_v[i, j] = u


@qp.kernel
def g2p() -> None:
    """Grid to particles: velocity and its gradient, which move and deform the particles."""
    for p in x:
        base = qp.cast(x[p] / dx - 0.5, qp.i32)
        fx = x[p] / dx - base
        w = weights(fx)
        new_v = qp.Vector.zero(qp.f32, 2)
        new_C = qp.Matrix.zero(qp.f32, 2, 2)
        for i, j in qp.static(qp.ndrange(3, 3)):
            offset = qp.Vector([i, j])
            dpos = (offset - fx) * dx
            weight = w[i][0] * w[j][1]
            g_v = grid_v[base + offset]
            new_v += weight * g_v
            new_C += 4.0 * weight * g_v.outer_product(dpos) / dx**2
        v[p] = new_v
        C[p] = new_C
        x[p] += dt * new_v
        if material[p] == WATER:  # water only has its volume as state
            F[p][0, 0] = F[p][0, 0] * (1.0 + dt * new_C.trace())
        else:
            F[p] = (qp.Matrix.identity(qp.f32, 2) + dt * new_C) @ F[p]


@qp.kernel
def splat(
    radius: qp.f32, fastest: qp.f32, slow_colours: qp.Array1D[qp.math.vec3],
    fast_colours: qp.Array1D[qp.math.vec3],
    picture: qp.Array2D[qp.math.vec4],
) -> None:  # fmt: skip
    """Add each particle as a disc with a soft edge: colour times coverage, and coverage."""
    for p in x:
        pixel = x[p] * picture.shape[1]
        speed = qp.min(v[p].norm() / fastest, 1.0)
        colour = slow_colours[material[p]] * (1.0 - speed) + fast_colours[material[p]] * speed
        low = qp.cast(qp.floor(pixel - radius), qp.i32)
        high = qp.cast(qp.floor(pixel + radius), qp.i32) + 1
        for i, j in qp.ndrange((qp.max(low[0], 0), qp.min(high[0], picture.shape[1])),
                               (qp.max(low[1], 0), qp.min(high[1], picture.shape[0]))):  # fmt: skip
            distance = (qp.Vector([i, j]) + 0.5 - pixel).norm()
            cover = qp.min(qp.max(radius + 0.5 - distance, 0.0), 1.0)
            picture[picture.shape[0] - 1 - j, i] += cover * qp.Vector([colour[0], colour[1], colour[2], 1.0])


def start() -> None:
    """Water at both sides, twice as high on the right, and a block of jelly that falls in between."""
    count = n_particles // 4
    n = np.arange(count)[:, None]
    spread = (
        0.5 + n * [0.7548776662466927, 0.5698402910980532]
    ) % 1  # evenly but not on a lattice (Roberts' R2 sequence)
    rim, area, width = walls * dx, count * volume, 0.2
    left = rim + spread * [width, area / width]
    right = [1.0, 0.0] + left * [-1, 1]
    jelly = [0.36, 0.4] + spread * area**0.5
    x.from_numpy(np.concatenate([left, right, right + np.array([0, area / width]), jelly]).astype(np.float32))
    material.from_numpy(np.repeat(np.array([WATER, WATER, WATER, JELLY], np.int32), count))
    v.fill(0.0)
    C.fill(0.0)
    F.from_numpy(np.tile(np.eye(2, dtype=np.float32), (n_particles, 1, 1)))


def step() -> None:
    """One of the steps that ``--steps`` counts: enough time steps to see a movement."""
    for _ in range(substeps):
        p2g()
        update_grid()
        g2p()


SLOW: Floats = np.array([[30, 92, 190], [232, 92, 74]], np.float32)
FAST: Floats = np.array([[200, 238, 250], [255, 176, 96]], np.float32)
BACKGROUND: Floats = np.array([16, 22, 34], np.float32)


def draw(size: int) -> Picture:
    """The lower part of the box, water blue and jelly red; faster particles are lighter."""
    picture = np.zeros((size * 5 // 8, size, 4), np.float32)
    splat(0.7 * dx * size, 3.0, SLOW, FAST, picture)
    cover = picture[..., 3:]
    colour = picture[..., :3] / np.maximum(cover, 1e-6)
    return (BACKGROUND + (colour - BACKGROUND) * np.minimum(cover, 1)).astype(np.uint8)


def graph(size: int = 400) -> tuple[qp.graph.Graph, dict[str, Any]]:
    """One step and its picture, for ``quadpy save quadpy.examples.mpm88:graph``.

    The particles begin as ``start`` puts them, and each run moves them on.  ``picture`` has 250 x 400 pixels: colour times
    coverage, and coverage.
    """
    picture = qp.Vector.ndarray(4, qp.f32, shape=(size * 5 // 8, size))
    colours = [qp.Vector.ndarray(3, qp.f32, shape=2) for _ in range(2)]
    for array, values in zip(colours, (SLOW, FAST), strict=True):
        array.from_numpy(values)
    start()
    made = qp.graph.Graph()
    for _ in range(substeps):
        for kernel in (p2g, update_grid, g2p):
            made.add_kernel(kernel)
    made.add_memset(picture, 0)
    made.add_kernel(splat, 0.7 * dx * size, 3.0, *colours, picture)
    return made, {"bind": {"picture": picture}, "constants": colours}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(
        __doc__, out="mpm88.png", steps=500, steps_help=f"steps of {substeps * dt:g} s",
        size=800, size_help="width of the picture in pixels",
    )  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        start()
        play(args.steps, step, lambda: draw(args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
