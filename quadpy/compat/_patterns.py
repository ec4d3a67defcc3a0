"""What Taichi's own examples import from ``taichi.examples.patterns``."""

from __future__ import annotations

from typing import Any

from quadpy import Vector, func


@func
def taichi_logo(pos: Any, scale: float = 1 / 1.11) -> Any:
    """1 in the dark parts of a yin-yang sign around (0.5, 0.5), of radius 0.5 times ``scale`` with its edge, else 0."""
    p = (pos - 0.5) / scale + 0.5
    whole = (p - 0.5).norm_sqr()
    lower, upper = (p - Vector([0.5, 0.25])).norm_sqr(), (p - Vector([0.5, 0.75])).norm_sqr()
    is_dark = p[0] >= 0.5
    if whole > 0.52**2:
        is_dark = True
    elif whole > 0.495**2 or lower <= 0.08**2:
        is_dark = False
    elif upper <= 0.08**2 or lower <= 0.25**2:
        is_dark = True
    elif upper <= 0.25**2:
        is_dark = False
    return 1 if is_dark else 0
