"""Arrays and fields as the graphics library takes them: views of host memory, converted only if necessary."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quadpy.errors import ArgumentError

__all__ = ["Array", "colors_of", "corners_of", "in_space", "on_host", "pixels_of", "points_of"]

Array: TypeAlias = npt.NDArray[Any]


def on_host(data: Any) -> Array:
    """``data`` as a NumPy array: its own memory, or a copy if it is on a GPU."""
    if hasattr(data, "detach") and hasattr(data, "cpu"):  # a tensor of torch, on any device
        data = data.detach().cpu()
    return np.asarray(data)


def points_of(data: Any) -> Array:
    """Positions as floats of shape (n, 2) or (n, 3); one position may come alone.

    Raises:
        ArgumentError: they have neither two nor three coordinates.
    """
    points = on_host(data)
    if points.ndim == 0 or points.shape[-1] not in (2, 3):
        raise ArgumentError(f"positions have 2 or 3 coordinates, but these have the shape {points.shape}")
    if points.dtype.kind not in "fiu":
        raise ArgumentError(f"positions must be numbers, not {points.dtype}")
    return points.reshape(-1, points.shape[-1])


def in_space(points: Array) -> Array:
    """Positions as contiguous float32 of shape (n, 3); the same memory if they already have this form."""
    if points.shape[1] == 3:
        return np.ascontiguousarray(points, np.float32)
    padded = np.zeros((len(points), 3), np.float32)
    padded[:, :2] = points
    return padded


def corners_of(indices: Any, count: int, each: int) -> Array:
    """The numbers of the vertices of shapes with ``each`` corners, shape (n, each); all vertices in order for None.

    Raises:
        ArgumentError: a number is not that of a vertex, or the last shape is not complete.
    """
    numbers = np.arange(count, dtype=np.int32) if indices is None else on_host(indices)
    if numbers.size % each:
        raise ArgumentError(f"{numbers.size} corners are not a whole number of shapes with {each} corners")
    if numbers.dtype.kind not in "iu":
        raise ArgumentError(f"indices must be integers, not {numbers.dtype}")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise ArgumentError(
            f"there are {count} vertices, but the indices range from {numbers.min()} to {numbers.max()}"
        )
    return np.ascontiguousarray(numbers.reshape(-1, each), np.int32)


def colors_of(color: Any, count: int) -> Array:
    """Colours as float32 from 0 to 1 of shape (4,), or of shape (count, 3) or (count, 4) for one each.

    A colour is ``0xRRGGBB``, or red, green, blue and perhaps opacity, from 0 to 1.

    Raises:
        ArgumentError: there are neither one nor ``count`` colours.
    """
    values = on_host(color)
    if values.dtype.kind in "iu" and (values.ndim == 0 or values.shape == (count,)):
        values = np.stack([values >> 16 & 255, values >> 8 & 255, values & 255], axis=-1) / 255
    if values.shape in ((3,), (4,)):
        return np.append(values, 1.0)[:4].astype(np.float32)
    if values.shape not in ((count, 3), (count, 4)):
        raise ArgumentError(
            f"colours of the shape {values.shape} are neither one colour nor {count} colours",
            hint="a colour is 0xRRGGBB, or three numbers from 0 to 1",
        )
    return np.ascontiguousarray(values, np.float32)


def pixels_of(image: Any) -> Array:
    """The pixels of an image, shape (n, m) or (n, m, channels), as float32 from 0 to 1 or as bytes.

    Raises:
        ArgumentError: it is not an image.
    """
    pixels = on_host(image)
    if pixels.ndim not in (2, 3) or 0 in pixels.shape or (pixels.ndim == 3 and pixels.shape[2] > 4):
        raise ArgumentError(
            f"an image has two axes, or three with up to four colours, but this one has the shape {pixels.shape}"
        )
    if pixels.dtype.kind in "iu" and pixels.dtype.itemsize == 4 and pixels.ndim == 2:  # 0xRRGGBB
        parts = np.ascontiguousarray(pixels, "<u4").view(np.uint8).reshape(*pixels.shape, 4)
        return np.ascontiguousarray(parts[..., 2::-1])
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim == 3 and pixels.shape[2] == 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[..., :1])], axis=2)
    kept = np.uint8 if pixels.dtype.kind in "iu" else np.float32
    return np.ascontiguousarray(pixels, kept) if pixels.dtype.kind != "b" else pixels.astype(np.float32)
