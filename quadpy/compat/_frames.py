"""Where the frames of a window go, and when it closes.

With a display they are shown until the user closes the window.  Otherwise the settings ``QUADPY_FRAMES`` (a folder) and
``QUADPY_FRAME_LIMIT`` (100 by default) say so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from quadpy.compat._on_window import OnWindow
from quadpy.compat._painting import Color, Painting, Surface, colors_of
from quadpy.settings import settings
from quadpy.view.surfaces import has_display
from quadpy.view.window import Window

Command: TypeAlias = Callable[[Surface], None]
"""Draws one thing."""

LIMIT: Final = 100
_numbers: Final[Iterator[int]] = itertools.count()


class WindowClosed(SystemExit):
    """A program went on to show frames after its window was closed; ends it with status 0, as closing a window does."""


class Frames:
    """The frames of one window: the contents of the current one, and where frames go."""

    def __init__(self, name: str, size: tuple[int, int], background: Color = 0, *, shown: bool = True) -> None:
        self.size, self.count = size, 0
        folder, self._limit = settings().frames, settings().frame_limit
        self._folder = folder / f"{_file_name(name)}-{next(_numbers)}" if folder else None
        self.window: Window | None = None
        if shown and folder is None and (has_display() or settings().view):
            self.window = Window(name, size)
        if self._limit is None and not (self.window and self.window.on_screen):
            self._limit = LIMIT
        self._closed = False
        self._commands: list[Command] = []
        self.clear(background)

    @property
    def closed(self) -> bool:
        """Whether the window was closed, by the user, by the program or after the last frame."""
        return self._closed or (self.window is not None and not self.window.running)

    def close(self) -> None:
        """Show no more frames."""
        self._closed = True
        if self.window is not None:
            self.window.close()

    def clear(self, color: Color) -> None:
        """Start the current frame again."""
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
        if self.window is not None:
            self.window.background(tuple(self.background / 255))
            surface = OnWindow(self.window)
            for command in self._commands:
                command(surface)
            self.window.show()
        self._commands.clear()
        self.count += 1
        if self.count == self._limit:
            self.close()

    def _painted(self) -> Painting:
        painting = Painting(self.size, self.background)
        for command in self._commands:
            command(painting)
        return painting


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-").lower() or "window"
