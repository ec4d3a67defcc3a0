"""Finds the line of the user's program that called quadpy, for messages and for the nodes of graphs."""

from __future__ import annotations

import contextlib
import os
import sys
from types import FrameType
from typing import Final

from quadpy.source import Span

__all__ = ["call_site"]

_PACKAGE: Final = __file__[: __file__.rindex(f"runtime{os.sep}launch")]


def call_site() -> Span | None:
    """The line that called quadpy; None if quadpy itself started the call."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack would read every source file on the stack
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and file != contextlib.__file__:  # which calls quadpy's own context managers
            return Span(file, frame.f_lineno)
        frame = frame.f_back
    return None
