"""Rays through a field of distances: a picture of three shapes on a floor, with shadows. Vectors are tuples."""

import math

import numba
import numpy as np

from cpu.with_numba.decorator import function, kernel
from cpu.workloads import RAY_FAR, RAY_NEAR, RAY_STEPS, Arrays, Bench, sample

F32 = np.float32
NEAR, FAR, ZERO, ONE, TWO, THREE = F32(RAY_NEAR), F32(RAY_FAR), F32(0), F32(1), F32(2), F32(3)
FLAT, DIM, OFF, ZOOM, HEIGHT = F32(0.5), F32(0.3), F32(0.01), F32(1.6), F32(0.8)
BOX, BOX_SIZE = (F32(1.2), F32(-0.4), F32(0.3)), (F32(0.4), F32(0.6), F32(0.4))
TORUS, RING, TUBE = (F32(-1.2), F32(-0.3), F32(0.2)), F32(0.7), F32(0.2)
LIGHT = (F32(0.6), F32(0.7), F32(-0.4))


@function
def along(a, b, t):
    return a[0] + b[0] * t, a[1] + b[1] * t, a[2] + b[2] * t


@function
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@function
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@function
def normalized(a):
    scale = ONE / math.sqrt(dot(a, a))
    return a[0] * scale, a[1] * scale, a[2] * scale


@function
def box(p):
    x, y, z = abs(p[0]) - BOX_SIZE[0], abs(p[1]) - BOX_SIZE[1], abs(p[2]) - BOX_SIZE[2]
    outside = (max(x, ZERO), max(y, ZERO), max(z, ZERO))
    return math.sqrt(dot(outside, outside)) + min(max(x, y, z), ZERO)


@function
def torus(p):
    ring = math.sqrt(p[0] * p[0] + p[2] * p[2]) - RING
    return math.sqrt(ring * ring + p[1] * p[1]) - TUBE


@function
def distance(p):
    near = min(p[1] + ONE, math.sqrt(dot(p, p)) - FLAT)
    near = min(near, box(along(p, BOX, -ONE)))
    return min(near, torus(along(p, TORUS, -ONE)))


@function
def march(start, direction):
    t = ZERO
    for _ in range(RAY_STEPS):
        near = distance(along(start, direction, t))
        if near < NEAR or t > FAR:
            break
        t += near
    return t


@function
def normal(p):
    here = distance(p)
    x = distance((p[0] + NEAR, p[1], p[2])) - here
    y = distance((p[0], p[1] + NEAR, p[2])) - here
    z = distance((p[0], p[1], p[2] + NEAR)) - here
    return normalized((x, y, z))


@kernel
def draw(angle, image):
    for i in numba.prange(image.shape[0]):
        eye = (THREE * math.sin(angle), HEIGHT, -THREE * math.cos(angle))
        forward = normalized((-eye[0], -eye[1], -eye[2]))
        right = normalized(cross(forward, (ZERO, ONE, ZERO)))
        above = cross(right, forward)
        light = normalized(LIGHT)
        across = TWO * F32(i) / F32(image.shape[0]) - ONE
        for j in range(image.shape[1]):
            up = TWO * F32(j) / F32(image.shape[1]) - ONE
            ray = normalized(
                along(along((forward[0] * ZOOM, forward[1] * ZOOM, forward[2] * ZOOM), right, across), above, up)
            )
            shade = FLAT
            t = march(eye, ray)
            if t < FAR:
                p = along(eye, ray, t)
                n = normal(p)
                shade = max(dot(n, light), ZERO)
                if march(along(p, n, OFF), light) < FAR:
                    shade *= DIM
            image[i, j] = shade


def build_rays(data: Arrays) -> Bench:
    image = data["image"]
    return Bench(lambda: draw(F32(0.7), image), lambda: {"image": sample(image)})


BUILDERS = {"rays": build_rays}
