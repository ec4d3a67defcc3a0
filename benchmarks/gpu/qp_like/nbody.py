"""Gravity among all pairs of bodies: straight from memory, and by tiles in shared memory."""

import numpy as np

from gpu.workloads import SOFTENING
from harness.bench import Arrays, Bench
from harness.language import array_of, qp

vec4 = qp.types.vector(4, qp.f32)
bodies = qp.types.ndarray(dtype=vec4, ndim=1)  # x, y, z, mass

TILE = 256


@qp.kernel
def nbody(position: bodies, acceleration: bodies):
    for i in range(position.shape[0]):
        p = position[i]
        ax = 0.0
        ay = 0.0
        az = 0.0
        for j in range(position.shape[0]):
            q = position[j]
            dx = q[0] - p[0]
            dy = q[1] - p[1]
            dz = q[2] - p[2]
            inverse = qp.rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            pull = q[3] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        acceleration[i] = qp.Vector([ax, ay, az, 0.0])


@qp.kernel
def nbody_tiled(position: bodies, acceleration: bodies):
    qp.loop_config(block_dim=TILE)
    for i in range(position.shape[0]):
        tile = qp.simt.block.SharedArray((TILE, 4), qp.f32)
        lane = i % TILE
        p = position[i]
        ax = 0.0
        ay = 0.0
        az = 0.0
        for t in range(position.shape[0] // TILE):
            body = position[t * TILE + lane]
            for k in qp.static(range(4)):
                tile[lane, k] = body[k]
            qp.simt.block.sync()
            for j in range(TILE):
                dx = tile[j, 0] - p[0]
                dy = tile[j, 1] - p[1]
                dz = tile[j, 2] - p[2]
                inverse = qp.rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
                pull = tile[j, 3] * inverse * inverse * inverse
                ax += dx * pull
                ay += dy * pull
                az += dz * pull
            qp.simt.block.sync()
        acceleration[i] = qp.Vector([ax, ay, az, 0.0])


def _builder(kernel):
    def build(data: Arrays) -> Bench:
        position = array_of(data["position"], vec4)
        acceleration = array_of(np.full_like(data["position"], np.nan), vec4)
        return Bench(lambda: kernel(position, acceleration), lambda: {"acceleration": acceleration.to_numpy()})

    return build


BUILDERS = {"nbody": _builder(nbody), "nbody_tiled": _builder(nbody_tiled)}
