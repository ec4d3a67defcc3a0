"""The common base of ``ti.GUI`` and ``ti.ui.Window``: frames, and the user's input."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from quadpy.compat._frames import Frames
from quadpy.compat._refusals import Refusing
from quadpy.view.events import Event as Input

_KEYS: Final = {
    "left": "LMB", "right": "RMB", "middle": "MMB", "Enter": "Return", "Backspace": "BackSpace", "CapsLock": "Caps_Lock",
    "ArrowUp": "Up", "ArrowDown": "Down", "ArrowLeft": "Left", "ArrowRight": "Right",
}  # fmt: skip
"""Keys and buttons by the names that browsers have, and Taichi's."""
_NAMES: Final = {name: key for key, name in _KEYS.items()}


@dataclass(slots=True)
class Event:
    """A key, a button or a movement; without a display there is none."""

    type: str = ""
    key: str = ""
    modifier: tuple[str, ...] = ()
    pos: tuple[float, float] = (0.0, 0.0)
    delta: tuple[float, float] = (0.0, 0.0)


class BaseWindow(Refusing):
    """A window that shows ``frames``."""

    PRESS, RELEASE = "press", "release"

    def __init__(self, frames: Frames) -> None:
        self._frames, self.event = frames, Event()
        self._events: deque[Event] = deque()

    @property
    def running(self) -> bool:
        """False after the window was closed, or after the last frame."""
        return not self._frames.closed

    @running.setter
    def running(self, value: bool) -> None:
        if not value:
            self._frames.close()

    def _image(self) -> npt.NDArray[np.float32]:
        """The frame, shape (width, height, 4), from 0 to 1."""
        pixels = self._frames.pixels()[::-1].swapaxes(0, 1) / np.float32(255)
        return np.concatenate([pixels, np.ones_like(pixels[..., :1])], axis=2)

    def _has_event(self) -> bool:
        if self._frames.window is not None:
            self._events.extend(map(_event, self._frames.window.events()))
        return bool(self._events)

    def _next(self, *filters: object, wait: bool = False) -> Event | None:
        """The next event that ``filters`` let through; those before it are lost."""
        while self._has_event() or (wait and self._frames.window is not None and self.running):
            if not self._events:
                time.sleep(0.01)
            elif _passes(event := self._events.popleft(), filters):
                return event
        return None

    def get_event(self, *event_filter: object, tag: object = None) -> bool:
        """Whether there is an event, which ``event`` then is.

        ``event_filter`` has types (``PRESS``), keys, or pairs of both; ``tag`` is one of them.
        """
        found = self._next(*event_filter, *(() if tag is None else (tag,)))
        self.event = found or self.event
        return found is not None

    def get_events(self, *event_filter: object, tag: object = None) -> list[Event]:
        """The events that are waiting; arguments as for ``get_event``."""
        filters, found = (*event_filter, *(() if tag is None else (tag,))), []
        while (event := self._next(*filters)) is not None:
            found.append(event)
        return found

    def is_pressed(self, *keys: str) -> bool:
        """Whether one of ``keys`` is held."""
        window = self._frames.window
        return window is not None and any(
            window.pressed(spelling) for key in keys for spelling in {_NAMES.get(key, key), key.lower(), key.upper()}
        )

    def get_cursor_pos(self) -> tuple[float, float]:
        """Where the pointer is, from 0 to 1; without a display, the middle."""
        return (0.5, 0.5) if self._frames.window is None else self._frames.window.pointer


def _event(found: Input) -> Event:
    key = _KEYS.get(found.key, found.key.lower() if len(found.key) == 1 else found.key)
    match found.kind:
        case "move":
            return Event("motion", "Motion", found.modifiers, found.position)
        case "wheel":
            return Event("motion", "Wheel", found.modifiers, found.position, (found.delta[0], -found.delta[1]))
        case kind:
            return Event(kind, key, found.modifiers, found.position)


def _passes(event: Event, filters: tuple[object, ...]) -> bool:
    """Whether ``event`` has one of the types, keys, or pairs of both; true without any."""
    return not filters or any(wanted in (event.type, event.key, (event.type, event.key)) for wanted in filters)
