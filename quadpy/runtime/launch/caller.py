"""Where in the user's program quadpy was called.  Owns: caller_span.  Imports: source."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from quadpy.source import Span

__all__ = ["caller_span"]

_PACKAGE: Final = str(Path(__file__).parent.parent) + "/"


def caller_span() -> Span | None:
    """The line that called quadpy; None where quadpy calls itself."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads every file on the way
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and file != contextlib.__file__:  # through which quadpy's own managers come
            return Span(file, frame.f_lineno)
        frame = frame.f_back
    return None
