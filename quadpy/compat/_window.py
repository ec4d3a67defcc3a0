"""What ``ti.GUI`` and ``ti.ui.Window`` have in common: frames without a display, and no events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quadpy.compat._frames import Frames

__all__ = ["Event", "HeadlessWindow"]


@dataclass(slots=True)
class Event:
    """A key or button; without a display there is none."""

    type: str = ""
    key: str = ""
    modifier: tuple[str, ...] = ()
    pos: tuple[float, float] = (0.0, 0.0)
    delta: tuple[float, float] = (0.0, 0.0)


class HeadlessWindow:
    """A window that shows ``frames`` nowhere, and that no one presses a key in."""

    PRESS, RELEASE = "press", "release"

    def __init__(self, frames: Frames) -> None:
        self._frames, self.event = frames, Event()

    @property
    def running(self) -> bool:
        """False after the last frame."""
        return not self._frames.closed

    @running.setter
    def running(self, value: bool) -> None:
        self._frames.closed = not value

    def _image(self) -> npt.NDArray[np.float32]:
        """The frame, shape (width, height, 4), from 0 to 1."""
        pixels = self._frames.pixels()[::-1].swapaxes(0, 1) / np.float32(255)
        return np.concatenate([pixels, np.ones_like(pixels[..., :1])], axis=2)

    def get_event(self, *event_filter: object, tag: object = None) -> bool:
        """False: no event."""
        return False

    def get_events(self, *event_filter: object, tag: object = None) -> list[object]:
        """No events."""
        return []

    def is_pressed(self, *keys: str) -> bool:
        """False."""
        return False

    def get_cursor_pos(self) -> tuple[float, float]:
        """The middle."""
        return 0.5, 0.5
