"""Drawing on a picture in host memory, in coordinates from 0 to 1 with the origin at the lower left."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from quadpy.errors import ArgumentError
from quadpy.tools.libraries import pillow

Array: TypeAlias = npt.NDArray[Any]
Color: TypeAlias = "int | tuple[float, float, float]"
"""``0xRRGGBB``, or red, green and blue from 0 to 1."""

_FULL: Final = 255


class _HasNumpy(Protocol):
    def to_numpy(self) -> Array: ...


def array_of(data: object) -> Array:
    """``data`` in host memory: a copy of an array or field, a NumPy array, or numbers."""
    return cast(_HasNumpy, data).to_numpy() if hasattr(data, "to_numpy") else np.array(data)


def points_of(data: object, dim: int) -> npt.NDArray[np.float64]:
    """Positions of ``dim`` coordinates as an array of shape (n, dim)."""
    points = array_of(data)
    if points.ndim == 0 or points.shape[-1] < dim:
        raise ArgumentError(f"positions have {dim} coordinates, but these have the shape {points.shape}")
    return points.reshape(-1, points.shape[-1])[:, :dim].astype(np.float64)


def colors_of(color: object, count: int) -> npt.NDArray[np.uint8]:
    """One colour for each of ``count`` shapes, shape (count, 3): from one colour, or from one for each."""
    values = array_of(color)
    if values.ndim == 0 or (values.ndim == 1 and values.dtype.kind in "iu" and values.shape[0] == count):
        packed = np.broadcast_to(values, count).astype(np.int64)
        return np.stack([packed >> 16 & _FULL, packed >> 8 & _FULL, packed & _FULL], axis=-1).astype(np.uint8)
    floats = np.broadcast_to(values.reshape(-1, values.shape[-1])[:, :3], (count, 3))
    colors: npt.NDArray[np.uint8] = (np.clip(floats, 0, 1) * _FULL).astype(np.uint8)
    return colors


class Surface(Protocol):
    """The target of drawing: a picture, or a window; positions go from 0 to 1, sizes are in pixels."""

    def paste(self, picture: npt.NDArray[np.uint8]) -> None:
        """Cover everything with ``picture``, rows from the top."""

    def discs(self, centers: Array, radius: Array, colors: Array) -> None:
        """Filled discs; one radius, or one for each."""

    def lines(self, begins: Array, ends: Array, width: float, colors: Array) -> None:
        """Straight lines."""

    def triangles(self, corners: Sequence[Array], colors: Array) -> None:
        """Filled triangles: their first corners, their second ones and their third ones."""

    def text(self, content: str, position: Array, color: Array, size: int) -> None:
        """``content``, with its upper left corner at ``position``."""

    def scene(self, scene: SceneInSpace) -> None:
        """Things in space."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Balls, lines or triangles in space: corners of shape (n, 1 to 3, 3), and a colour for each, from 0 to 1."""

    corners: Array
    colors: Array
    size: float
    """The radius of balls, or the width of lines."""


@dataclass(frozen=True, slots=True)
class SceneInSpace:
    """The part of a frame that shows space."""

    camera: Projection
    shapes: Sequence[Shape]
    ambient: Array
    lights: Sequence[tuple[Array, Array]]
    """Positions and colours."""


class Projection(Protocol):
    """Where a scene is seen from."""

    curr_position: Array
    curr_lookat: Array
    curr_up: Array
    angle: float

    def project(self, points: Array, aspect: float) -> tuple[Array, Array, float]:
        """Where points of shape (n, 3) appear, from 0 to 1, how far away they are, and the height of 1 at distance 1."""


class Painting:
    """A picture of ``width`` times ``height`` pixels."""

    def __init__(self, size: tuple[int, int], background: npt.NDArray[np.uint8]) -> None:
        self.size = size
        self.pixels = np.empty((size[1], size[0], 3), np.uint8)
        self.pixels[:] = background

    def paste(self, picture: npt.NDArray[np.uint8]) -> None:
        """Cover everything with ``picture``, scaled to the size."""
        if picture.shape != self.pixels.shape:
            picture = np.asarray(pillow().fromarray(picture).resize(self.size))
        self.pixels[:] = picture

    def discs(self, centers: Array, radius: Array, colors: Array) -> None:
        """Filled discs; ``radius`` in pixels, one or one for each."""
        xy = self._pixels_of(centers)
        for size in np.unique(radius):
            chosen = slice(None) if np.ndim(radius) == 0 else radius == size
            reach = int(max(size - 0.5, 0))
            for dy in range(-reach, reach + 1):
                for dx in range(-reach, reach + 1):
                    if dx * dx + dy * dy <= size * size:
                        self._set(xy[chosen, 0] + dx, xy[chosen, 1] + dy, colors[chosen])

    def lines(self, begins: Array, ends: Array, width: float, colors: Array) -> None:
        """Straight lines; ``width`` in pixels."""
        draw = self._begin()
        for a, b, color in zip(self._pixels_of(begins), self._pixels_of(ends), colors, strict=True):
            draw.line([tuple(a), tuple(b)], tuple(color), max(1, round(width)))
        self._end(draw)

    def triangles(self, corners: Sequence[Array], colors: Array) -> None:
        """Filled triangles: their first corners, their second ones and their third ones."""
        draw = self._begin()
        for polygon, color in zip(np.stack([self._pixels_of(c) for c in corners], axis=1), colors, strict=True):
            draw.polygon([tuple(corner) for corner in polygon], tuple(color))
        self._end(draw)

    def text(self, content: str, position: Array, color: Array, size: int) -> None:
        """``content``, with its upper left corner at ``position``; ``size`` in pixels."""
        draw = self._begin()
        font = importlib.import_module("PIL.ImageFont").load_default(size)
        draw.text(tuple(self._pixels_of(position)[0]), content, tuple(color[0]), font)
        self._end(draw)

    def scene(self, scene: SceneInSpace) -> None:
        """Things in space; those farther away are drawn first."""
        aspect = self.size[0] / self.size[1]
        for shape in scene.shapes:
            count, each = shape.corners.shape[:2]
            seen, depth, scale = scene.camera.project(shape.corners.reshape(-1, 3), aspect)
            seen, far = seen.reshape(count, each, 2), depth.reshape(count, each)
            order = np.argsort(-far.mean(axis=1))
            order = order[(far[order] > 1e-3).all(axis=1)]
            colors = _lit(shape, scene) if each == 3 else shape.colors
            shown, paint = seen[order], (colors[order] * _FULL).astype(np.uint8)
            if each == 1:
                sizes = np.clip(shape.size * scale / far[order, 0] * self.size[1], 0.5, 40).round()
                self.discs(shown[:, 0], sizes, paint)
            elif each == 2:
                self.lines(shown[:, 0], shown[:, 1], 1, paint)
            else:
                self.triangles([shown[:, k] for k in range(3)], paint)

    def save(self, path: str | Path) -> None:
        """A file, in the format of the name's suffix."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        pillow().fromarray(self.pixels).save(path)

    def _pixels_of(self, points: Array) -> npt.NDArray[np.int64]:
        """Columns and rows, from the top."""
        width, height = self.size
        finite = np.nan_to_num(points.reshape(-1, points.shape[-1])[:, :2], nan=-1e6, posinf=1e6, neginf=-1e6)
        scaled = np.clip(finite, -1e6, 1e6) * (width, height)
        return np.stack([np.floor(scaled[:, 0]), height - 1 - np.floor(scaled[:, 1])], axis=-1).astype(np.int64)

    def _set(self, x: Array, y: Array, colors: Array) -> None:
        inside = (x >= 0) & (x < self.size[0]) & (y >= 0) & (y < self.size[1])
        self.pixels[y[inside], x[inside]] = colors[inside]

    def _begin(self) -> Any:
        self._image = pillow().fromarray(self.pixels)
        return importlib.import_module("PIL.ImageDraw").Draw(self._image)

    def _end(self, draw: Any) -> None:
        self.pixels = np.array(self._image)


def _lit(shape: Shape, scene: SceneInSpace) -> Array:
    """Lambert's law, on both sides, at the middle of each triangle."""
    corners = shape.corners
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal = normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-12)
    light = np.broadcast_to(scene.ambient[:3] + 0.1, shape.colors.shape).astype(float)
    for position, color in scene.lights:
        towards = position[:3] - corners.mean(axis=1)
        towards = towards / np.maximum(np.linalg.norm(towards, axis=-1, keepdims=True), 1e-12)
        light = light + abs((normal * towards).sum(axis=-1, keepdims=True)) * color[:3]
    lit: Array = np.clip(shape.colors * light, 0, 1)
    return lit
