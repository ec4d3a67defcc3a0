"""Filling arrays in host memory.

NumPy broadcasts a vector into an array of vectors one vector at a time, at a tenth of the memory's speed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from quadpy.core.importing import import_late
from quadpy.runtime.elements.numpy_types import Numbers, address_of

_SMALL: Final = 1 << 12
"""Bytes up to which the method makes no difference."""
_PATTERN: Final = 1 << 14
"""Bytes that are written at a time, which stay in the L1 cache."""
_LARGE: Final = 1 << 21
"""Bytes from which on several threads are faster, even if the pool must be loaded first."""


def fill(view: Numbers, element: Numbers) -> None:
    """Write ``element`` to all elements of ``view``, whose last axes are those of ``element``."""
    if view.nbytes <= _SMALL or element.shape != view.shape[view.ndim - element.ndim :]:
        view[...] = element
    elif view.flags.c_contiguous and (element.ndim or view.nbytes >= _LARGE):
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
    if flat.nbytes >= _LARGE:
        import_late("quadpy.runtime.cpu.pool").fill(  # it loads LLVM
            address_of(flat), address_of(pattern), pattern.nbytes, count
        )
    else:
        flat[:whole].reshape(count, -1)[...] = pattern
    flat[whole:] = pattern[:rest]
