"""One element into all of an array in host memory.  Owns: ``fill``.

NumPy broadcasts a vector into an array of vectors a vector at a time, which takes ten times as long as the memory needs.
Imports: the CPU's pool, NumPy.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from quadpy.runtime.elements.numpy_types import Numbers

__all__ = ["fill"]

_FEW: Final = 1 << 12
"""Bytes up to which it makes no difference how they are written."""
_PATTERN: Final = 1 << 14
"""Bytes that are written at a time: they stay in the first cache."""
_MANY: Final = 1 << 21
"""Bytes from which on more threads than one are worth their while, loading the pool the first time included."""


def fill(view: Numbers, element: Numbers) -> None:
    """``element`` into all elements of ``view``, whose last axes are those of ``element``."""
    if view.nbytes <= _FEW or element.shape != view.shape[view.ndim - element.ndim :]:
        view[...] = element
    elif view.flags.c_contiguous and (element.ndim or view.nbytes >= _MANY):
        _repeat(view.reshape(-1), element)
    else:
        for component in np.ndindex(element.shape):
            view[(..., *component)] = element[component]


def _repeat(flat: Numbers, element: Numbers) -> None:
    elements = max(1, min(_PATTERN // (element.size * flat.itemsize), flat.size // element.size))
    pattern = np.empty((elements, *element.shape), flat.dtype)
    pattern[...] = element
    pattern = pattern.reshape(-1)
    count, rest = divmod(flat.size, pattern.size)
    whole = flat.size - rest
    if flat.nbytes >= _MANY:
        from quadpy.runtime.cpu import pool  # which loads LLVM

        memory, repeated = (x.__array_interface__["data"][0] for x in (flat, pattern))
        pool.fill(memory, repeated, pattern.nbytes, count)
    else:
        flat[:whole].reshape(count, -1)[...] = pattern
    flat[whole:] = pattern[:rest]
