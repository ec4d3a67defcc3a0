"""Gravity among all pairs of bodies, one step. One array per coordinate: with rows of three, numba's loop stays scalar."""

import math

import numba
import numpy as np

from cpu.with_numba.decorator import kernel
from cpu.workloads import NBODY_DT, SOFTENING, Arrays, Bench

F32 = np.float32
ZERO, ONE, SOFT = F32(0.0), F32(1.0), F32(SOFTENING)


@kernel
def step(dt, x, y, z, u, v, w):
    n = x.shape[0]
    for i in numba.prange(n):
        ax = ay = az = ZERO
        for j in range(n):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            r2 = dx * dx + dy * dy + dz * dz + SOFT
            inverse = ONE / (r2 * math.sqrt(r2))
            ax += dx * inverse
            ay += dy * inverse
            az += dz * inverse
        u[i] += dt * ax
        v[i] += dt * ay
        w[i] += dt * az
    for i in numba.prange(n):
        x[i] += dt * u[i]
        y[i] += dt * v[i]
        z[i] += dt * w[i]


def build_nbody(data: Arrays) -> Bench:
    position = tuple(data["position"].T.copy())
    velocity = tuple(data["velocity"].T.copy())

    def reset() -> None:
        for k in range(3):
            position[k][:] = data["position"][:, k]
            velocity[k][:] = data["velocity"][:, k]

    return Bench(
        lambda: step(F32(NBODY_DT), *position, *velocity), lambda: {"velocity": np.stack(velocity, axis=-1)}, reset
    )


BUILDERS = {"nbody": build_nbody}
