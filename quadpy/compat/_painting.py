"""Drawing on a picture in host memory, in coordinates from 0 to 1 with the origin at the lower left."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from quadpy.errors import ArgumentError
from quadpy.tools.libraries import pillow

__all__ = ["Array", "Color", "Painting", "array_of", "colors_of", "points_of"]

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
        raise ArgumentError(f"positions have {dim} coordinates, and these have the shape {points.shape}")
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

    def polygons(self, corners: Sequence[Array], colors: Array) -> None:
        """Filled polygons; ``corners`` are the first corner of each, the second one of each, and so on."""
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

    def save(self, path: str | Path) -> None:
        """A file, of the kind that the name's suffix says."""
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
