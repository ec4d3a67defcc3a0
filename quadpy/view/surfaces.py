"""Where a window is: on the screen, in a browser, or only in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, get_args

from quadpy.core.importing import import_late
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.settings import Place, settings
from quadpy.view.library import drawn, library

__all__ = ["Surface", "has_display", "surface"]

Size: TypeAlias = tuple[int, int]


class Surface(Protocol):
    """A window of the system, or its substitute."""

    @property
    def canvas(self) -> Any:
        """The canvas of rendercanvas."""

    @property
    def on_screen(self) -> bool:
        """Whether a user can see it."""

    def handle_events(self) -> None:
        """Call the handlers for the user's input since the last call."""

    def draw(self, frame: Callable[[], None]) -> None:
        """Draw and show ``frame``; passes on its exceptions."""

    def close(self) -> None:
        """Close it."""


class _Canvas:
    """A canvas that draws only on request."""

    def __init__(self, canvas: Any) -> None:
        self.canvas = canvas

    def draw(self, frame: Callable[[], None]) -> None:
        if raised := drawn(self.canvas, frame):
            raise raised[0]

    def close(self) -> None:
        self.canvas.close()


class Screen(_Canvas):
    """A window on the display."""

    on_screen = True

    def __init__(self, title: str, size: Size) -> None:
        module = library("rendercanvas.glfw")
        try:
            super().__init__(module.GlfwRenderCanvas(title=title, size=size, update_mode="manual"))
        except Exception as error:  # GLFW's errors have no class in common
            raise QuadpyError(f"no window can be opened on this display: {error}", hint=_HINT) from error

    def handle_events(self) -> None:
        # Public names of rendercanvas process events only inside its own loop; here the loop is the program's.
        self.canvas._process_events()  # noqa: SLF001  (no public name handles events outside of its own loop)


class Memory(_Canvas):
    """No window: pictures in memory."""

    on_screen = False

    def __init__(self, title: str, size: Size) -> None:
        super().__init__(library("rendercanvas.offscreen").OffscreenRenderCanvas(title=title, size=size))

    def handle_events(self) -> None:
        self.canvas._process_events()  # noqa: SLF001  (as above: for events that a program submits)


def _browser(title: str, size: Size) -> Surface:
    """A window in a browser, whose server takes long to import."""
    return import_late("quadpy.view.browser").Browser(title, size)  # type: ignore[no-any-return]  # a module's class


_PLACES: Final[dict[Place, Callable[[str, Size], Surface]]] = {"screen": Screen, "browser": _browser, "memory": Memory}
_HINT: Final = (
    "QUADPY_VIEW=browser shows windows in a browser, also on another machine; QUADPY_VIEW=memory only draws pictures"
)


def has_display() -> bool:
    """Whether windows can be shown here, as far as the environment says."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def surface(title: str, size: Size, where: Place | None) -> Surface:
    """A new surface; by default where the setting ``QUADPY_VIEW`` says, or else on the screen.

    Raises:
        QuadpyError: there is no display, or the graphics library is not installed.
    """
    chosen = where or settings().view or "screen"
    if chosen not in get_args(Place):
        raise ArgumentError(
            f"where={chosen!r} is not a valid place for a window", hint="use 'screen', 'browser' or 'memory'"
        )
    if chosen == "screen" and not has_display():
        raise QuadpyError("there is no display to open a window on: DISPLAY is not set", hint=_HINT)
    return _PLACES[chosen](title, size)
