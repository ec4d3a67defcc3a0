"""Windows that show images, points, lines and meshes while a program runs: ``from quadpy import view``.

Arrays and fields on the host are given to the graphics library as they are, without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.view.events import Event
from quadpy.view.window import Window

__all__ = ["Event", "Window"]

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
