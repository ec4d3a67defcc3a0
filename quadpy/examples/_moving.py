"""Targets for the pictures of an example besides picture files: a window, or a film."""

from __future__ import annotations

import sys
from pathlib import Path
from time import sleep

import quadpy as qp
from quadpy.examples._pictures import FRAME_MS, File, Picture, Sink

__all__ = ["sink_for"]

FILMS = (".mp4", ".mkv", ".mov", ".webm")
LEAST = 480
"""Small pictures are enlarged until the longer side of the window has this many pixels."""


class Film:
    """A film in a file."""

    open, most = True, 500

    def __init__(self, path: Path) -> None:
        self._film = qp.tools.Film(path, 1000 / FRAME_MS)

    def add(self, picture: Picture) -> None:
        """Add a frame."""
        self._film.add_picture(picture)

    def close(self) -> str:
        """Write the file."""
        self._film.close()
        return f"wrote {self._film.path}"


class Live:
    """A window, which shows the last picture until the user closes it."""

    most = sys.maxsize

    def __init__(self, title: str) -> None:
        self._title = title
        self._window: qp.view.Window | None = None
        self._last: Picture

    @property
    def open(self) -> bool:
        """False after the user closed the window."""
        return self._window is None or self._window.running

    def add(self, picture: Picture) -> None:
        """Show a picture."""
        if self._window is None:
            height, width, _ = picture.shape
            scale = -(-LEAST // max(width, height))
            self._window = qp.view.Window(self._title, (width * scale, height * scale))
        self._last = picture
        self._window.image(picture, axes="rows")
        self._window.show()

    def close(self) -> str:
        """Wait until the window is closed, if a user can see it."""
        if self._window is None:
            return "there was nothing to show"
        while self._window.running and self._window.on_screen:
            self.add(self._last)
            sleep(0.02)
        self._window.close()
        return "the window is closed"


def sink_for(out: Path | None, view: bool, name: str) -> Sink:
    """The sink that the command line of the example ``name`` asks for.

    Raises:
        QuadpyError: a library that it needs is not installed, or the type of the file is unknown.
        OSError: the folder of ``out`` does not exist.
    """
    if view:
        return Live(f"quadpy: {name}")
    path = out or Path(f"{name}.png")
    return Film(path) if path.suffix.lower() in FILMS else File(path)
