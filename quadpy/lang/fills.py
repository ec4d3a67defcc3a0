"""Operations of kernels on all elements of arrays, in the kernel language itself."""

from __future__ import annotations

from typing import Any

from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func

grouped, static, zero = BUILTINS["grouped"], BUILTINS["static"], BUILTINS["zero"]


@func
def filled(x: Any, value: Any) -> None:
    """Every element is assigned: a parallel task at the top level, a loop of one thread elsewhere."""
    if static(x.ndim == 0):
        x[None] = value
    else:
        for index in grouped(x):
            x[index] = value


@func
def copied(source: Any, target: Any) -> None:
    """Every element is copied to an array of the same shape; what is the same is not written, since memory may only be reserved."""
    if static(source.ndim == 0):
        target[None] = source[None]
    else:
        for index in grouped(source):
            if target[index] != source[index]:
                target[index] = source[index]


@func
def cleared(x: Any, cells: Any) -> None:
    """The elements of ``cells`` become 0."""
    if static(x.ndim == 0):
        x[None] = zero(x[None])
    else:
        for index in grouped(cells):
            x[index] = zero(x[index])
