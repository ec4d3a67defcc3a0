"""The libraries that write files; they are imported at their first use."""

from __future__ import annotations

from typing import Any

from quadpy.core.importing import import_extra

__all__ = ["library", "pillow"]


def library(name: str, what: str) -> Any:
    """The module ``name``; ``what`` needs it.

    Raises:
        QuadpyError: it is not installed.
    """
    return import_extra(name, what, "tools", called=name.partition(".")[0])


def pillow() -> Any:
    """Pillow's module ``PIL.Image``.

    Raises:
        QuadpyError: it is not installed.
    """
    return import_extra("PIL.Image", "pictures", "tools", called="Pillow")
