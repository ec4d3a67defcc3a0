"""Images, points, lines, meshes and text as objects of pygfx, in a layer of a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from quadpy.errors import ArgumentError
from quadpy.view.host import Array, colors_of, corners_of, in_space, on_host, pixels_of, points_of
from quadpy.view.layers import Layer
from quadpy.view.library import library

__all__ = ["put_image", "put_light", "put_lines", "put_mesh", "put_points", "put_text"]

Axes = Literal["xy", "rows"]

_QUARTER_TURN: Final = (0.0, 0.0, 0.5**0.5, 0.5**0.5)
"""A rotation by 90 degrees around z, as a quaternion."""


def put_image(
    layer: Layer, image: Any, axes: Axes, colormap: str | None, limits: tuple[float, float], smooth: bool
) -> None:
    """An image over the whole window.

    The texture has the memory of the array, whose last axis goes to the right: if it should go upwards, the object is
    rotated and not the numbers.
    """
    gfx = library("pygfx")
    if axes not in ("xy", "rows"):
        raise ArgumentError(f"axes={axes!r} are not axes of an image", hint="use 'xy' or 'rows'")
    pixels = pixels_of(image)
    if colormap is not None and pixels.ndim == 3:
        raise ArgumentError("a colormap is for an image of numbers, but this one has colours")
    scale = 255 if pixels.dtype == np.uint8 else 1
    clim = limits[0] * scale, limits[1] * scale

    def build(resources: Mapping[str, Any]) -> Any:
        material = gfx.ImageBasicMaterial(
            clim=clim, map=_colormap(colormap), interpolation="linear" if smooth else "nearest", depth_test=False,
            alpha_mode="solid" if colormap else "auto",  # some colormaps come with an opacity
        )  # fmt: skip
        return gfx.Image(gfx.Geometry(grid=resources["pixels"]), material)

    thing = layer.put(("image", axes, colormap, clim, smooth), {"pixels": pixels}, build)
    n, m = pixels.shape[:2]
    if axes == "rows":
        thing.local.scale, thing.local.position = (1 / m, -1 / n, 1), (0.5 / m, 1 - 0.5 / n, 0)
    else:
        thing.local.rotation, thing.local.scale = _QUARTER_TURN, (1 / m, -1 / n, 1)
        thing.local.position = 0.5 / n, 0.5 / m, 0


def put_points(layer: Layer, points: Array, radius: Any, color: Any) -> None:
    """Discs; ``radius`` in pixels in flat layers, and in the units of the scene in space."""
    gfx, count = library("pygfx"), len(points)
    colors, radii = colors_of(color, count), on_host(radius)
    arrays = {"positions": in_space(points), **_per_vertex(colors)}
    if radii.ndim:
        if radii.size != count:
            raise ArgumentError(f"{radii.size} radii for {count} points")
        arrays["sizes"] = 2 * radii.reshape(count).astype(np.float32)

    def build(resources: Mapping[str, Any]) -> Any:
        modes = {"color_mode": _mode(colors), "size_mode": "vertex" if radii.ndim else "uniform"}
        if layer.flat:
            material = gfx.PointsMaterial(**modes, depth_test=False, aa=True)
        else:
            rim = {"edge_color": (0, 0, 0, 0.4), "edge_mode": "inner"}  # keeps balls apart that touch
            material = gfx.PointsMarkerMaterial(**modes, **rim, size_space="world", aa=True)
        return gfx.Points(gfx.Geometry(**resources), material)

    thing = layer.put(("points", _mode(colors), bool(radii.ndim)), arrays, build)
    if colors.ndim == 1:
        thing.material.color = tuple(colors)
    if not radii.ndim:
        thing.material.size = 2 * float(radii)
    if not layer.flat:
        thing.material.edge_width = 0.2 * float(radii.mean())


def put_lines(layer: Layer, points: Array, indices: Any, width: float, color: Any) -> None:
    """Straight lines between pairs of points; ``width`` in pixels."""
    gfx, colors = library("pygfx"), colors_of(color, len(points))
    ends = corners_of(indices, len(points), 2).ravel()
    positions = in_space(points)
    if indices is not None:  # the library's lines have no indices
        positions, colors = positions[ends], colors[ends] if colors.ndim == 2 else colors

    def build(resources: Mapping[str, Any]) -> Any:
        material = gfx.LineSegmentMaterial(color_mode=_mode(colors), depth_test=not layer.flat, aa=True)
        return gfx.Line(gfx.Geometry(**resources), material)

    thing = layer.put(("lines", _mode(colors)), {"positions": positions, **_per_vertex(colors)}, build)
    thing.material.thickness = float(width)
    if colors.ndim == 1:
        thing.material.color = tuple(colors)


def put_mesh(layer: Layer, points: Array, indices: Any, normals: Any, color: Any, wireframe: bool) -> None:
    """Triangles; in space they are lit, smoothly if they have normals."""
    gfx, colors = library("pygfx"), colors_of(color, len(points))
    arrays = {"positions": in_space(points), "indices": corners_of(indices, len(points), 3), **_per_vertex(colors)}
    if normals is not None:
        arrays["normals"] = in_space(points_of(normals))
        if len(arrays["normals"]) != len(points):
            raise ArgumentError(f"{len(arrays['normals'])} normals for {len(points)} vertices")

    def build(resources: Mapping[str, Any]) -> Any:
        modes = {"color_mode": _mode(colors), "wireframe": wireframe}
        if layer.flat:
            material = gfx.MeshBasicMaterial(**modes, depth_test=False)
        else:
            material = gfx.MeshPhongMaterial(**modes, flat_shading=normals is None, specular="#000")
        return gfx.Mesh(gfx.Geometry(**resources), material)

    thing = layer.put(("mesh", _mode(colors), wireframe), arrays, build)
    if colors.ndim == 1:
        thing.material.color = tuple(colors)


def put_text(layer: Layer, content: str, position: Array, size: float, color: Any) -> None:
    """Text whose upper left corner is at ``position``; ``size`` in pixels."""
    gfx, paint = library("pygfx"), tuple(colors_of(color, 1).ravel()[:4])

    def build(resources: Mapping[str, Any]) -> Any:
        material = gfx.TextMaterial(color=paint, depth_test=not layer.flat)
        return gfx.Text(text=content, font_size=size, screen_space=True, anchor="top-left", material=material)

    thing = layer.put(("text", content, size, paint), {}, build)
    thing.local.position = tuple(in_space(position)[0])


def put_light(layer: Layer, position: Array, color: Any, intensity: float) -> None:
    """A lamp, in place of the light from the camera."""
    gfx = library("pygfx")
    layer.headlight.visible = False
    lamp = layer.put(("light",), {}, lambda _: gfx.PointLight(intensity=1, decay=0))
    lamp.local.position = tuple(in_space(position)[0])
    lamp.color = tuple(colors_of(color, 1).ravel()[:3])
    lamp.intensity = 3 * intensity  # of which a surface reflects 1 / pi


def _mode(colors: Array) -> str:
    return "vertex" if colors.ndim == 2 else "uniform"


def _per_vertex(colors: Array) -> dict[str, Array]:
    return {"colors": colors} if colors.ndim == 2 else {}


def _colormap(name: str | None) -> Any:
    """The texture of a colormap.

    Raises:
        ArgumentError: there is no such colormap.
    """
    if name is None:
        return None
    found = getattr(library("pygfx").cm, name, None)
    if found is None or name.startswith("_"):
        raise ArgumentError(f"there is no colormap {name!r}", hint="for example 'viridis', 'magma', 'gray'")
    return found
