"""The graphics library, pygfx, which is imported when a window is made."""

from __future__ import annotations

from typing import Any

from quadpy.errors import QuadpyError
from quadpy.importing import import_late

__all__ = ["library"]


def library(name: str) -> Any:
    """The module ``name`` of pygfx or of what it draws with.

    Raises:
        QuadpyError: it is not installed.
    """
    try:
        return import_late(name)
    except ModuleNotFoundError as error:
        raise QuadpyError(
            f"windows need {error.name}, which is not installed", hint="pip install 'quadpy-lang[view]'"
        ) from error
