"""The graphics library, pygfx, which is imported when a window is made."""

from __future__ import annotations

from typing import Any

from quadpy.importing import import_extra

__all__ = ["library"]


def library(name: str) -> Any:
    """The module ``name`` of pygfx or of what it draws with.

    Raises:
        QuadpyError: it is not installed.
    """
    return import_extra(name, "windows", "view")
