"""``ti.Texture``: kernels store pixels, and read them and between them."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy.compat.taichi as ti
from quadpy.errors import ArgumentError


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu)


@ti.kernel
def sample(tex: ti.types.texture(num_dimensions=2), at: ti.types.ndarray(ndim=1), found: ti.types.ndarray(ndim=1)):
    for k in at:
        found[k] = tex.sample_lod(at[k], 0.0)


def sampled(texture, points):
    at, found = (ti.Vector.ndarray(n, ti.f32, len(points)) for n in (len(points[0]), 4))
    at.from_numpy(np.array(points, np.float32))
    sample(texture, at, found)
    return found.to_numpy()


def bilinear(pixels, u, v):
    """Linear between the centres of pixels, which repeat."""
    n, m = pixels.shape[:2]
    x, y = u * n - 0.5, v * m - 0.5
    i, j = int(np.floor(x)), int(np.floor(y))
    s, t = x - i, y - j
    return sum(
        (s if a else 1 - s) * (t if b else 1 - t) * pixels[(i + a) % n, (j + b) % m] for a in (0, 1) for b in (0, 1)
    )


def test_samples_are_linear_between_pixels_and_repeat():
    rng = np.random.default_rng(3)
    pixels, points = rng.random((5, 8, 2)), rng.uniform(-2, 3, (40, 2))
    texture = ti.Texture(ti.Format.rg32f, (5, 8))
    texture.from_ndarray(pixels)
    expected = np.array([bilinear(pixels, *point) for point in points])
    found = sampled(texture, points)
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-4)
    np.testing.assert_allclose(found[:, 2:], [[0, 1]] * 40, atol=1e-5)


@pytest.mark.parametrize(
    ("fmt", "expected"),
    [
        (ti.Format.r32f, [-0.5, 0, 0, 1]),
        (ti.Format.rg16f, [-0.5, 2, 0, 1]),
        (ti.Format.rgba32f, [-0.5, 2, 0.25, 0.75]),
        (ti.Format.rgba8, [0, 1, 64 / 255, 191 / 255]),
        (ti.Format.r16, [0, 0, 0, 1]),
    ],
)
def test_formats(fmt, expected):
    @ti.kernel
    def store(tex: ti.types.rw_texture(num_dimensions=1, fmt=ti.Format.r32f, lod=0)):
        for i in range(7):
            tex.store(ti.Vector([i - 1]), ti.Vector([-0.5, 2.0, 0.25, 0.75]))

    @ti.kernel
    def load(tex: ti.types.texture(num_dimensions=1), index: ti.i32) -> ti.math.vec4:
        return tex.fetch(ti.Vector([index]), 0)

    texture = ti.Texture(fmt, 4)
    store(texture)
    np.testing.assert_allclose(load(texture, 3), expected, atol=1e-6)
    assert list(load(texture, 4)) == list(load(texture, -1)) == [0, 0, 0, 0]


def test_three_axes():
    @ti.kernel
    def middle(tex: ti.types.texture(num_dimensions=3)) -> ti.f32:
        return tex.sample_lod(ti.Vector([0.5, 0.5, 0.5]), 0.0).x

    values = np.random.default_rng(0).random((2, 2, 2))
    texture = ti.Texture(ti.Format.r32f, (2, 2, 2))
    texture.from_ndarray(values)
    assert middle(texture) == pytest.approx(values.mean(), abs=1e-6)
    np.testing.assert_allclose(texture.to_numpy()[..., 0], values, atol=1e-6)


def test_textures_are_arguments_of_graphs():
    @ti.kernel
    def fill(tex: ti.types.rw_texture(num_dimensions=2, fmt=ti.Format.r32f, lod=0), x: ti.f32):
        for i, j in ti.ndrange(4, 4):
            tex.store(ti.Vector([i, j]), ti.Vector([x * i, 0.0, 0.0, 0.0]))

    kinds, builder = ti.graph.ArgKind, ti.graph.GraphBuilder()
    builder.dispatch(
        fill,
        ti.graph.Arg(kinds.RWTEXTURE, "tex", fmt=ti.Format.r32f, ndim=2),
        ti.graph.Arg(kinds.SCALAR, "x", ti.f32),
    )
    graph, textures = builder.compile(), [ti.Texture(ti.Format.r32f, (4, 4)) for _ in range(2)]
    for x, texture in enumerate(textures):
        graph.run({"tex": texture, "x": x + 1.0})
    assert [texture.to_numpy()[3, 0, 0] for texture in textures] == [3, 6]


def test_bad_input():
    with pytest.raises(ArgumentError, match=r"'rgba8' is not a format"):
        ti.Texture("rgba8", (4, 4))
    with pytest.raises(ArgumentError, match="one to three axes, not 4"):
        ti.Texture(ti.Format.r8, (1, 1, 1, 1))
