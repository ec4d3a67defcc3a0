"""Input of the user in a window: keys, buttons and the pointer."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

__all__ = ["HANDLED", "Event", "Inputs"]

Kind: TypeAlias = Literal["press", "release", "move", "wheel"]

_KINDS: Final[dict[str, Kind]] = {
    "key_down": "press", "key_up": "release", "pointer_down": "press", "pointer_up": "release",
    "pointer_move": "move", "wheel": "wheel",
}  # fmt: skip
_BUTTONS: Final = {1: "left", 2: "right", 3: "middle"}
HANDLED: Final = tuple(_KINDS)
"""The events of rendercanvas that ``Inputs`` takes."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that the user did."""

    kind: Kind
    key: str = ""
    """A key by its name in browsers (``a``, ``ArrowUp``, ``Escape``), or ``left``, ``right`` or ``middle`` of a mouse."""
    position: tuple[float, float] = (0.5, 0.5)
    """Where the pointer is: 0 to 1 to the right, and 0 to 1 upwards."""
    delta: tuple[float, float] = (0.0, 0.0)
    """How far the wheel was turned, to the right and down."""
    modifiers: tuple[str, ...] = ()
    """The keys among ``Shift``, ``Control``, ``Alt`` and ``Meta`` that are held."""


class Inputs:
    """The events since they were last asked for, the keys that are held, and where the pointer is."""

    def __init__(self) -> None:
        self.pointer = (0.5, 0.5)
        self.held: set[str] = set()
        self._waiting: deque[Event] = deque(maxlen=10_000)  # a program that asks for none keeps the last ones

    def take(self) -> list[Event]:
        """Remove and return the waiting events."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def handle(self, told: Mapping[str, Any], size: tuple[float, float]) -> None:
        """An event of rendercanvas, in a window of ``size`` logical pixels."""
        if "x" in told:
            self.pointer = told["x"] / size[0], 1 - told["y"] / size[1]
        kind = _KINDS[told["event_type"]]
        key = told.get("key") or (_BUTTONS.get(told["button"], "") if told.get("button") else "")
        match kind:
            case "press":
                self.held.add(key)
            case "release":
                self.held.discard(key)
            case "move":
                key = ""
        turned = float(told.get("dx", 0)), float(told.get("dy", 0))
        self._waiting.append(Event(kind, key, self.pointer, turned, tuple(told.get("modifiers", ()))))
