"""Gravity among all pairs of bodies, one step."""

import math

import numba
import numpy as np

from peers.with_numba.decorator import kernel
from peers.workloads import NBODY_DT, SOFTENING, Arrays, Bench

F32 = np.float32
ZERO, SOFT = F32(0.0), F32(SOFTENING)


@kernel
def step(dt, position, velocity):
    n = position.shape[0]
    for i in numba.prange(n):
        px, py, pz = position[i, 0], position[i, 1], position[i, 2]
        ax = ay = az = ZERO
        for j in range(n):
            x = position[j, 0] - px
            y = position[j, 1] - py
            z = position[j, 2] - pz
            r2 = x * x + y * y + z * z + SOFT
            r3 = r2 * math.sqrt(r2)
            ax += x / r3
            ay += y / r3
            az += z / r3
        velocity[i, 0] += dt * ax
        velocity[i, 1] += dt * ay
        velocity[i, 2] += dt * az
    for i in numba.prange(n):
        for k in range(3):
            position[i, k] += dt * velocity[i, k]


def build_nbody(data: Arrays) -> Bench:
    position, velocity = data["position"].copy(), data["velocity"].copy()

    def reset() -> None:
        position[:] = data["position"]
        velocity[:] = data["velocity"]

    return Bench(lambda: step(F32(NBODY_DT), position, velocity), lambda: {"velocity": velocity}, reset)


BUILDERS = {"nbody": build_nbody}
