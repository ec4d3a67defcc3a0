"""Picture files, animations and colour maps for the examples."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from quadpy.errors import QuadpyError

__all__ = ["File", "Floats", "Picture", "Sink", "dots", "palette", "read_picture"]

Picture: TypeAlias = npt.NDArray[np.uint8]
"""Rows from the top, columns, and red, green and blue: shape (height, width, 3)."""
Floats: TypeAlias = npt.NDArray[np.float32]

ANIMATIONS: Final = {".gif": "GIF", ".apng": "PNG"}
FRAME_MS: Final = 40
FRAMES: Final = 100
"""The maximum number of frames of an animation; with more steps, it shows every n-th step."""


class Sink(Protocol):
    """The target for the pictures of an example: a file, or a window."""

    @property
    def most(self) -> int: ...  # how many pictures are of use; 1: only the last one
    @property
    def open(self) -> bool: ...  # False when nobody wants more pictures
    def add(self, picture: Picture) -> None: ...  # adds a frame
    def close(self) -> str: ...  # completes the work; returns what was done


class File:
    """The file that an example writes: one picture, or the frames of an animation."""

    open = True

    def __init__(self, path: Path) -> None:
        """Check that ``path`` can be written, before anything is computed.

        Raises:
            QuadpyError: pillow is missing, or does not know this type of file.
            OSError: the folder does not exist.
        """
        self.path, self.image = path, _pillow()
        suffix = path.suffix.lower()
        self.image.init()
        if suffix not in ANIMATIONS and suffix not in self.image.EXTENSION:
            raise QuadpyError(
                f"{path} is not a type of picture that can be written",
                hint="use a name that ends in .png, .gif or .mp4",
            )
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent}")
        self.most = FRAMES if suffix in ANIMATIONS else 1
        self.frames: list[Any] = []

    def add(self, picture: Picture) -> None:
        """Add a frame; a still picture shows the last one."""
        if self.most == 1:
            self.frames.clear()
        self.frames.append(self.image.fromarray(picture))

    def close(self) -> str:
        """Write the file."""
        first, *others = self.frames
        if self.most > 1:
            kind = ANIMATIONS[self.path.suffix.lower()]
            first.save(self.path, kind, save_all=True, append_images=others, duration=FRAME_MS, loop=0)
        else:
            first.save(self.path, optimize=True)
        return f"wrote {self.path}"


def read_picture(path: Path, longest: int) -> Floats:
    """A picture as floats in [0, 1], scaled down if its longer side has more than ``longest`` pixels.

    Raises:
        QuadpyError: pillow cannot read the picture.
        OSError: the file cannot be read.
    """
    image = _pillow()
    try:
        with image.open(path) as file:
            rgb = file.convert("RGB")
    except image.UnidentifiedImageError:
        raise QuadpyError(f"{path} is not a picture that pillow can read") from None
    rgb.thumbnail((longest, longest))
    return np.asarray(rgb, np.float32) / np.float32(255)


def palette(values: npt.ArrayLike, colours: Sequence[str]) -> Picture:
    """Map ``values`` in [0, 1] to colours, interpolated between ``colours`` (hexadecimal) at even distances."""
    stops = np.array([list(bytes.fromhex(colour)) for colour in colours], float)
    at = np.clip(np.asarray(values, float), 0, 1) * (len(stops) - 1)
    mixed = [np.interp(at, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
    return np.stack(mixed, axis=-1).astype(np.uint8)


def dots(picture: Picture, points: npt.NDArray[Any], colours: npt.NDArray[Any], radius: int) -> Picture:
    """Draw squares at ``points``, (right, up) in pixels, into ``picture``; later ones cover earlier ones."""
    height, width, _ = picture.shape
    x, y = points[:, 0].astype(int), height - 1 - points[:, 1].astype(int)
    for di in range(-radius, radius + 1):
        for dj in range(-radius, radius + 1):
            seen = (y + di >= 0) & (y + di < height) & (x + dj >= 0) & (x + dj < width)
            picture[(y + di)[seen], (x + dj)[seen]] = colours[seen]
    return picture


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise QuadpyError("pillow is not installed", hint="pip install 'quadpy-lang[examples]'") from None
