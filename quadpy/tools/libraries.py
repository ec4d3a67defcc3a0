"""The libraries that write files, which are imported when they are first used."""

from __future__ import annotations

from typing import Any

from quadpy.errors import QuadpyError
from quadpy.importing import import_late

__all__ = ["library", "pillow"]


def library(name: str, what: str) -> Any:
    """The module ``name``; ``what`` needs it.

    Raises:
        QuadpyError: it is not installed.
    """
    try:
        return import_late(name)
    except ModuleNotFoundError as error:
        raise QuadpyError(
            f"{what} need {name.partition('.')[0]}, which is not installed", hint="pip install 'quadpy-lang[tools]'"
        ) from error


def pillow() -> Any:
    """Pillow's module ``PIL.Image``.

    Raises:
        QuadpyError: it is not installed.
    """
    try:
        return import_late("PIL.Image")
    except ModuleNotFoundError as error:
        raise QuadpyError(
            "pictures need Pillow, which is not installed", hint="pip install 'quadpy-lang[tools]'"
        ) from error
