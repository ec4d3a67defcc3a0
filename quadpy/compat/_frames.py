"""Where the frames of a window go that has no display, and when such a window closes.

The settings ``QUADPY_FRAMES`` (a folder) and ``QUADPY_FRAME_LIMIT`` (100 by default) say so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from quadpy.compat._painting import Color, Painting, colors_of
from quadpy.settings import settings

__all__ = ["Command", "Frames", "WindowClosed"]

Command: TypeAlias = Callable[[Painting], None]
"""Draws one thing."""

_numbers: Final[Iterator[int]] = itertools.count()


class WindowClosed(SystemExit):
    """A program went on to show frames after its window was closed; ends it with status 0, as closing a window does."""


class Frames:
    """The frames of one window: what is drawn on the current one, and where frames go."""

    def __init__(self, name: str, size: tuple[int, int], background: Color = 0) -> None:
        self.size, self.count, self.closed = size, 0, False
        folder = settings().frames
        self._folder = folder / f"{_file_name(name)}-{next(_numbers)}" if folder else None
        self._limit = settings().frame_limit
        self._commands: list[Command] = []
        self.clear(background)

    def clear(self, color: Color) -> None:
        """Begin the current frame anew."""
        self.background = colors_of(color, 1)[0]
        self._commands.clear()

    def draw(self, command: Command) -> None:
        """Add to the current frame."""
        self._commands.append(command)

    def pixels(self) -> npt.NDArray[np.uint8]:
        """The current frame, shape (height, width, 3), rows from the top."""
        return self._painted().pixels

    def save(self, path: str | Path) -> None:
        """Write the current frame to a file."""
        self._painted().save(path)

    def show(self, path: str | Path | None = None) -> None:
        """End the current frame: into ``path``, and into the folder of frames; the last one closes the window.

        Raises:
            WindowClosed: it is closed already.
        """
        if self.closed:
            raise WindowClosed(0)
        if path is not None:
            self.save(path)
        if self._folder:
            self.save(self._folder / f"{self.count:05d}.png")
        self._commands.clear()
        self.count += 1
        self.closed = self.count >= self._limit

    def _painted(self) -> Painting:
        painting = Painting(self.size, self.background)
        for command in self._commands:
            command(painting)
        return painting


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-").lower() or "window"
