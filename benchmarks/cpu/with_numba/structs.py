"""Particles in one structured array, and in arrays of their own."""

import numba
import numpy as np

from cpu.with_numba.decorator import kernel
from cpu.workloads import PUSH_DT, Arrays, Bench, sample

PARTICLE = np.dtype([("x", np.float32, 3), ("v", np.float32, 3), ("mass", np.float32)])


@kernel
def push(particles, dt):
    for i in numba.prange(particles.shape[0]):
        p = particles[i]
        for k in range(3):
            p.v[k] *= np.float32(1.0) - dt * p.mass
            p.x[k] += dt * p.v[k]


@kernel
def push_arrays(x, v, mass, dt):
    for i in numba.prange(mass.shape[0]):
        for k in range(3):
            v[i, k] *= np.float32(1.0) - dt * mass[i]
            x[i, k] += dt * v[i, k]


@kernel
def copy(n, x, y):
    for i in numba.prange(n):
        y[i] = x[i]


def build_structs(data: Arrays) -> Bench:
    particles = np.zeros(len(data["mass"]), PARTICLE)
    for name in PARTICLE.names or ():
        particles[name] = data[name]
    dt = np.float32(PUSH_DT)
    return Bench(lambda: push(particles, dt), lambda: {"x": sample(particles["x"]), "v": sample(particles["v"])})


def build_arrays(data: Arrays) -> Bench:
    x, v, dt = data["x"].copy(), data["v"].copy(), np.float32(PUSH_DT)
    return Bench(lambda: push_arrays(x, v, data["mass"], dt), lambda: {"x": sample(x), "v": sample(v)})


def build_method(_: Arrays) -> Bench:
    x, y = np.ones(16, np.float32), np.ones(16, np.float32)
    return Bench(lambda: copy(0, x, y), lambda: {"y": y}, batch=1000)


BUILDERS = {"structs": build_structs, "structs_soa": build_arrays, "launch_method": build_method}
