"""The graphics library, pygfx, which is imported when a window is made, and how it draws a frame at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quadpy.core.importing import import_extra

__all__ = ["drawn", "library"]


def library(name: str) -> Any:
    """The module ``name`` of pygfx or of a library that it draws with.

    Raises:
        QuadpyError: it is not installed.
    """
    return import_extra(name, "windows", "view")


def drawn(canvas: Any, frame: Callable[[], None]) -> list[BaseException]:
    """Draw ``frame`` on ``canvas`` now; returns its exception, which rendercanvas would only log."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            frame()
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            raised.append(error)

    canvas.request_draw(guarded)
    canvas.force_draw()
    return raised
