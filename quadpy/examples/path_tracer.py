"""Spheres in daylight by path tracing: matt, metal and glass, with soft shadows and light that bounces.

From each pixel, paths follow the light backwards.  At a surface a path goes on in one random direction, and takes on its
colour; where it leaves the scene, it brings the light of the sky (J. Kajiya, "The Rendering Equation", SIGGRAPH 1986).
Glass reflects as much as Schlick's formula says.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.examples._common import parser, play, run
from quadpy.examples._pictures import Picture, Sink

vec3 = qp.math.vec3
MATT, METAL, GLASS = 0, 1, 2
bounces = 12
nearest, farthest = 1e-3, 1e9  # of what a ray may hit


@qp.dataclass
class Sphere:
    centre: vec3
    radius: qp.f32
    colour: vec3
    surface: qp.i32 = MATT
    rough: qp.f32 = 0.0  # of metal: how far reflections spread
    index: qp.f32 = 1.5  # of refraction, of glass

    @qp.func
    def distance(self, ray: Ray) -> qp.f32:
        """The distance along the ray to the first hit; ``farthest`` if there is none.

        The root is found as c / q, which loses no digits where the sphere is large and the ray begins close to it.
        """
        to = ray.origin - self.centre
        b, c = to.dot(ray.direction), to.norm_sqr() - self.radius**2
        discriminant, t = b * b - c, farthest
        if discriminant > 0.0:
            q = -b + qp.math.sign(-b) * qp.sqrt(discriminant)
            low, high = qp.min(q, c / q), qp.max(q, c / q)
            if low > nearest:
                t = low
            elif high > nearest:
                t = high
        return t


@qp.dataclass
class Ray:
    origin: vec3
    direction: vec3

    @qp.func
    def at(self, t: qp.f32) -> vec3:
        return self.origin + t * self.direction


@qp.func
def random_direction() -> vec3:
    """Evenly over the sphere."""
    z, angle = 2.0 * qp.random() - 1.0, 2.0 * math.pi * qp.random()
    r = qp.sqrt(qp.max(0.0, 1.0 - z * z))
    return vec3(r * qp.cos(angle), r * qp.sin(angle), z)


@qp.func
def through_glass(direction: vec3, normal: vec3, index: qp.f32) -> vec3:
    """Refracted or reflected, at random, in the right proportion; the normal points outwards."""
    entering = direction.dot(normal) < 0.0
    facing, ratio = normal, 1.0 / index
    if not entering:
        facing, ratio = -normal, index
    cosine = qp.min(-direction.dot(facing), 1.0)
    r0 = ((1.0 - index) / (1.0 + index)) ** 2
    sine_sqr = ratio**2 * (1.0 - cosine**2)
    slanted = cosine if entering else qp.sqrt(qp.max(0.0, 1.0 - sine_sqr))  # the angle on the side of the air
    result = qp.math.reflect(direction, facing)
    if sine_sqr < 1.0 and qp.random() > r0 + (1.0 - r0) * (1.0 - slanted) ** 5:
        result = ratio * direction + (ratio * cosine - qp.sqrt(1.0 - sine_sqr)) * facing
    return result


@qp.func
def scattered(ray: Ray, t: qp.f32, sphere: Sphere) -> Ray:
    """The ray along which the path goes on."""
    point = ray.at(t)
    normal = (point - sphere.centre) / sphere.radius
    direction = (normal + random_direction()).normalized(1e-6)  # with the cosine as density, as matt surfaces scatter
    if sphere.surface == METAL:
        direction = (qp.math.reflect(ray.direction, normal) + sphere.rough * random_direction()).normalized()
    elif sphere.surface == GLASS:
        direction = through_glass(ray.direction, normal, sphere.index).normalized()
    return Ray(point, direction)


@qp.func
def light_along(scene: qp.Template, ray: Ray, zenith: vec3, horizon: vec3) -> vec3:
    """The light that one random path brings."""
    light, colour, path = vec3(0.0), vec3(1.0), ray
    for _ in range(bounces):
        closest, hit = farthest, -1
        for k in range(scene.shape[0]):
            t = scene[k].distance(path)
            if t < closest:
                closest, hit = t, k
        if hit < 0:
            light = colour * qp.math.mix(horizon, zenith, qp.max(path.direction.y, 0.0))
            break
        colour *= scene[hit].colour
        path = scattered(path, closest, scene[hit])
    return light


@qp.kernel
def trace(
    scene: qp.Template, eye: vec3, target: vec3, opening: qp.f32, zenith: vec3, horizon: vec3, film: qp.Template
) -> None:
    """Add one path to each pixel; ``opening`` is the height of the picture at distance 1."""
    for i, j in film:
        forward = (target - eye).normalized()
        right = forward.cross(vec3(0.0, 1.0, 0.0)).normalized()
        x = (j + qp.random() - 0.5 * film.shape[1]) / film.shape[0] * opening
        y = (0.5 * film.shape[0] - i - qp.random()) / film.shape[0] * opening
        direction = (forward + x * right + y * right.cross(forward)).normalized()
        film[i, j] += light_along(scene, Ray(eye, direction), zenith, horizon)


def garden(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Three large spheres among small ones, on a sphere that is the ground."""
    scene: list[dict[str, Any]] = [
        {"centre": [0, -1000, 0], "radius": 1000, "colour": [0.46, 0.44, 0.4]},
        {"centre": [-2.1, 1, -0.2], "radius": 1, "colour": [0.75, 0.24, 0.12]},
        {"centre": [0, 1, 0.4], "radius": 1, "colour": [1, 1, 1], "surface": GLASS},
        {"centre": [2.1, 1, -0.2], "radius": 1, "colour": [0.92, 0.86, 0.7], "surface": METAL, "rough": 0.03},
    ]
    for x in range(-5, 6):
        for z in range(-4, 4):
            place = [x + rng.uniform(-0.3, 0.3), 0.22, z + 0.3 + rng.uniform(-0.3, 0.3)]
            large = np.array([sphere["centre"] for sphere in scene[1:4]])
            if np.linalg.norm(large - place, axis=1).min() > 1.3:
                kind = {"surface": METAL, "rough": 0.1} if rng.random() < 0.3 else {}
                scene.append({"centre": place, "radius": 0.22, "colour": rng.uniform(0.15, 0.9, 3) ** 1.5, **kind})
    return scene


class Camera:
    """A picture of a scene under a sky, which grows less noisy with each pass."""

    def __init__(self, scene: Sequence[dict[str, Any]], width: int, height: int) -> None:
        self.spheres, self.passes = qp.field(Sphere, shape=len(scene)), 0
        for k, sphere in enumerate(scene):
            self.spheres[k] = Sphere(**sphere)
        self.film = qp.Vector.field(3, qp.f32, shape=(height, width))
        self.eye, self.target, self.opening = vec3(0.6, 1.9, 8.5), vec3(0.0, 0.8, 0.0), 0.52
        self.zenith, self.horizon = vec3(0.32, 0.55, 1.0), vec3(1.15, 1.05, 0.95)

    def step(self) -> None:
        """One more path for each pixel."""
        trace(self.spheres, self.eye, self.target, self.opening, self.zenith, self.horizon, self.film)
        self.passes += 1

    def draw(self) -> Picture:
        """The mean of all paths, for a screen."""
        light = self.film.to_numpy() / max(self.passes, 1)
        return (255 * np.clip(light, 0, 1) ** (1 / 2.2)).astype(np.uint8)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="path_tracer.png", steps=64, steps_help="paths for each pixel",
                       size=640, size_help="width of the picture in pixels")  # fmt: skip

    def body(args: argparse.Namespace, sink: Sink) -> None:
        camera = Camera(garden(np.random.default_rng(7)), args.size, args.size * 9 // 16)
        play(args.steps, camera.step, camera.draw, sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
