"""Particles move in a field while the field is advanced."""

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def step(field: F32, current: F32, place: F32, speed: F32):
    with qp.stream_parallel():
        for p in place:
            cell = int(place[p]) % field.shape[0]
            speed[p] += 0.01 * field[cell]
            place[p] += 0.01 * speed[p]
    # fixed to: if True:
    with qp.stream_parallel():
        for i in field:
            field[i] = field[i] - 0.01 * current[i]


field, current = qp.ndarray(qp.f32, 64), qp.ndarray(qp.f32, 64)
place, speed = qp.ndarray(qp.f32, 4096), qp.ndarray(qp.f32, 4096)
step(field, current, place, speed)
