"""Pictures as files and on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quadpy.core.public import public
from quadpy.tools.libraries import pillow
from quadpy.view.host import on_host, pixels_of
from quadpy.view.window import Window

__all__ = ["Picture", "imread", "imresize", "imshow", "imwrite", "picture_of"]

Picture = npt.NDArray[np.uint8]
"""Rows from the top, columns, and red, green and blue: shape (height, width, 3)."""


def picture_of(image: object) -> Picture:
    """Pixels of shape (height, width, 3), rows from the top, from an image of shape (width, height[, channels]).

    Floats are taken from 0 to 1, 32-bit integers as 0xRRGGBB, other integers from 0 to 255.

    Raises:
        ArgumentError: it is not an image.
    """
    pixels = pixels_of(image)
    if pixels.dtype != np.uint8:
        pixels = (np.clip(np.nan_to_num(pixels), 0, 1) * 255).astype(np.uint8)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    return np.ascontiguousarray(pixels[..., :3].swapaxes(0, 1)[::-1])


@public
def imread(filename: str | Path, channels: int = 0) -> npt.NDArray[np.uint8]:
    """A picture of shape (width, height, channels), from the lower left.

    Args:
        filename: a file that Pillow can read.
        channels: 1 for shades of gray, 3 for colours, 4 for colours with opacity, 0 for what the file has.
    """
    with pillow().open(filename) as image:
        pixels = np.asarray(image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels] if channels else image.mode))
    return np.ascontiguousarray(np.atleast_3d(pixels)[::-1].swapaxes(0, 1))


@public
def imwrite(img: object, filename: str | Path) -> None:
    """Write an array or field of shape (width, height[, channels]) as a picture, in the format of the name's suffix.

    Args:
        img: floats from 0 to 1, bytes, or 32-bit integers ``0xRRGGBB``.
        filename: ``.png``, ``.jpg`` or another kind that Pillow can write.

    Raises:
        ArgumentError: ``img`` is not an image.
        QuadpyError: Pillow is not installed.
    """
    pillow().fromarray(picture_of(img)).save(filename)


@public
def imshow(img: object, title: str = "imshow") -> None:
    """Show ``img`` in a window with this ``title`` until the window is closed.

    Raises:
        QuadpyError: there is no display, or the graphics library is not installed.
    """
    pixels = on_host(img)
    with Window(title, (max(pixels.shape[0], 200), max(pixels.shape[1], 200))) as window:
        while window.running:
            window.image(pixels)
            window.show()
            if not window.on_screen:
                break


@public
def imresize(img: object, w: int, h: int | None = None) -> npt.NDArray[Any]:
    """``img`` with width ``w`` and height ``h``, from the nearest pixels; without ``h``, a square."""
    values, size = on_host(img), (w, w if h is None else h)
    rows, columns = (np.arange(n) * old // n for n, old in zip(size, values.shape, strict=False))
    return values[np.ix_(rows, columns)]
