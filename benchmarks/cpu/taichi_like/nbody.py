"""Gravity among all pairs of bodies, one step."""

from cpu.workloads import NBODY_DT, SOFTENING, Arrays, Bench
from harness.language import qp


@qp.kernel
def step(dt: qp.f32, position: qp.template(), velocity: qp.template()):
    for i in range(position.shape[0]):
        p = position[i]
        acceleration = qp.Vector([0.0, 0.0, 0.0])
        for j in range(position.shape[0]):
            d = position[j] - p
            r2 = d.dot(d) + SOFTENING
            acceleration += d * (1.0 / (r2 * qp.sqrt(r2)))
        velocity[i] += dt * acceleration
    for i in range(position.shape[0]):
        position[i] += dt * velocity[i]


def build_nbody(data: Arrays) -> Bench:
    position = qp.Vector.field(3, qp.f32, shape=len(data["position"]))
    velocity = qp.Vector.field(3, qp.f32, shape=len(data["position"]))

    def reset() -> None:
        position.from_numpy(data["position"])
        velocity.from_numpy(data["velocity"])

    return Bench(
        lambda: step(NBODY_DT, position, velocity), lambda: {"velocity": velocity.to_numpy()}, reset, finish=qp.sync
    )


BUILDERS = {"nbody": build_nbody}
