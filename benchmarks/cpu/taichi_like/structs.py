"""Particles as structs, in one array and in arrays of their own, and a kernel that is a method."""

from collections.abc import Callable

import numpy as np

from cpu.workloads import PUSH_DT, Arrays, Bench, sample
from harness.language import qp

vec3 = qp.types.vector(3, qp.f32)
Particle = qp.types.struct(x=vec3, v=vec3, mass=qp.f32)


@qp.kernel
def push(particles: qp.template(), dt: qp.f32):
    for i in particles:
        particles[i].v *= 1.0 - dt * particles[i].mass
        particles[i].x += dt * particles[i].v


@qp.data_oriented
class Adder:
    def __init__(self, x, y):
        self.n = 0
        self.x = qp.field(qp.f32, shape=len(x))
        self.y = qp.field(qp.f32, shape=len(y))
        self.x.from_numpy(x)
        self.y.from_numpy(y)

    @qp.kernel
    def add(self):
        for i in range(self.n):
            self.y[i] = self.x[i]


def build_particles(layout: str) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        particles = Particle.field(shape=len(data["mass"]), layout=getattr(qp.Layout, layout))
        for name in ("x", "v", "mass"):
            getattr(particles, name).from_numpy(data[name])
        return Bench(
            lambda: push(particles, PUSH_DT),
            lambda: {"x": sample(particles.x.to_numpy()), "v": sample(particles.v.to_numpy())},
            finish=qp.sync,
        )

    return build


def build_method(_: Arrays) -> Bench:
    ones = np.ones(16, np.float32)
    adder = Adder(ones, ones)
    return Bench(lambda: adder.add(), lambda: {"y": adder.y.to_numpy()}, batch=1000)  # noqa: PLW0108 - the attribute is part of the call


BUILDERS = {
    "structs": build_particles("AOS"),
    "structs_soa": build_particles("SOA"),
    "launch_method": build_method,
}
