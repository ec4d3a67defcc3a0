"""What a kernel returned, out of its scratch memory.  Owns: ``result_of``.  Imports: leaves, ``hostmath``, storage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.hostmath.values import wrap
from quadpy.runtime.storage import STORAGE, decode

__all__ = ["result_of"]


def result_of(scratch: Any, types: tuple[Scalar, ...], outline: Any) -> Any:
    """The first slots of ``scratch``, a buffer, in the shape that the kernel returned."""
    return _shaped(outline, ((_read(scratch, slot, type), type) for slot, type in enumerate(types)))


def _read(scratch: Any, slot: int, type: Scalar) -> Any:
    """The number in a slot."""
    return decode(np.frombuffer(scratch, STORAGE[type], 1, 8 * slot), type)[0].item()


def _shaped(outline: Any, numbers: Iterator[tuple[Any, Scalar]]) -> Any:
    """Numbers, each with its type, as one of them, a vector or matrix, or a tuple of such."""
    if outline == "scalar":
        return next(numbers)[0]
    if isinstance(outline, list):
        return tuple(_shaped(part, numbers) for part in outline)
    flat, types = zip(*itertools.islice(numbers, math.prod(outline)), strict=True)
    return wrap(np.array(flat).reshape(outline), types[0])
