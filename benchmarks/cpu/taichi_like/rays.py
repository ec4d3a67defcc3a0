"""Rays through a field of distances: a picture of three shapes on a floor, with shadows."""

from cpu.workloads import RAY_FAR, RAY_NEAR, RAY_STEPS, Arrays, Bench, sample
from harness.language import qp


@qp.func
def box(p, size):
    q = abs(p) - size
    return qp.max(q, 0.0).norm() + qp.min(qp.max(q[0], q[1], q[2]), 0.0)


@qp.func
def torus(p):
    ring = qp.sqrt(p[0] * p[0] + p[2] * p[2]) - 0.7
    return qp.sqrt(ring * ring + p[1] * p[1]) - 0.2


@qp.func
def distance(p):
    near = qp.min(p[1] + 1.0, p.norm() - 0.5)
    near = qp.min(near, box(p - qp.Vector([1.2, -0.4, 0.3]), qp.Vector([0.4, 0.6, 0.4])))
    return qp.min(near, torus(p - qp.Vector([-1.2, -0.3, 0.2])))


@qp.func
def march(start, direction):
    t = 0.0
    step = 0
    while step < RAY_STEPS:
        near = distance(start + direction * t)
        if near < RAY_NEAR or t > RAY_FAR:
            break
        t += near
        step += 1
    return t


@qp.func
def normal(p):
    here = distance(p)
    slope = qp.Vector([0.0, 0.0, 0.0])
    for k in qp.static(range(3)):
        q = p
        q[k] += RAY_NEAR
        slope[k] = distance(q) - here
    return slope.normalized()


@qp.kernel
def draw(angle: qp.f32, image: qp.types.ndarray(dtype=qp.f32, ndim=2)):
    for i, j in qp.ndrange(image.shape[0], image.shape[1]):
        eye = qp.Vector([3.0 * qp.sin(angle), 0.8, -3.0 * qp.cos(angle)])
        forward = (-eye).normalized()
        right = forward.cross(qp.Vector([0.0, 1.0, 0.0])).normalized()
        across = 2.0 * i / image.shape[0] - 1.0
        up = 2.0 * j / image.shape[1] - 1.0
        ray = (forward * 1.6 + right * across + right.cross(forward) * up).normalized()
        light = qp.Vector([0.6, 0.7, -0.4]).normalized()
        shade = 0.5
        t = march(eye, ray)
        if t < RAY_FAR:
            p = eye + ray * t
            n = normal(p)
            shade = qp.max(n.dot(light), 0.0)
            if march(p + n * 0.01, light) < RAY_FAR:
                shade *= 0.3
        image[i, j] = shade


def build_rays(data: Arrays) -> Bench:
    image = qp.ndarray(qp.f32, shape=data["image"].shape)
    return Bench(lambda: draw(0.7, image), lambda: {"image": sample(image.to_numpy())}, finish=qp.sync)


BUILDERS = {"rays": build_rays}
