"""``x.fill(value)`` of an array inside a kernel, in the kernel language itself."""

from __future__ import annotations

from typing import Any

from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

__all__ = ["filled"]

grouped, static = BUILTINS["grouped"], BUILTINS["static"]


@func
def filled(x: Any, value: Any) -> None:
    """Every element is assigned: a parallel task at the top level, a loop of one thread elsewhere."""
    if static(x.ndim == 0):
        x[None] = value
    else:
        for index in grouped(x):
            x[index] = value
