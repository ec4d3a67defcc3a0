"""What a kernel returned, out of its scratch memory.  Owns: ``result_of``.  Imports: leaves, ``hostmath``, storage."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.hostmath.values import wrap
from quadpy.runtime.memory.numpy_storage import SCALAR_OF, STORAGE, decode

__all__ = ["result_of"]


_CODES: Final = {"b": {1: "?"}, "i": {1: "b", 2: "h", 4: "i", 8: "q"}, "u": {1: "B", 2: "H", 4: "I", 8: "Q"},
                 "f": {2: "e", 4: "f", 8: "d"}}  # fmt: skip
_PACKINGS: Final = {
    scalar: struct.Struct("=" + _CODES[dtype.kind][dtype.itemsize]) for dtype, scalar in SCALAR_OF.items()
}
"""All but bf16, which Python has not."""


def result_of(scratch: Any, types: tuple[Scalar, ...], outline: Any) -> Any:
    """The first slots of ``scratch``, a buffer, in the shape that the kernel returned."""
    if outline == "scalar":
        return _read(scratch, 0, types[0])
    return _shaped(outline, ((_read(scratch, slot, type), type) for slot, type in enumerate(types)))


def _read(scratch: Any, slot: int, type: Scalar) -> Any:
    """The number in a slot."""
    if (packing := _PACKINGS.get(type)) is not None:
        return packing.unpack_from(scratch, 8 * slot)[0]
    return decode(np.frombuffer(scratch, STORAGE[type], 1, 8 * slot), type)[0].item()


def _shaped(outline: Any, numbers: Iterator[tuple[Any, Scalar]]) -> Any:
    """Numbers, each with its type, as one of them, a vector or matrix, or a tuple of such."""
    if outline == "scalar":
        return next(numbers)[0]
    if isinstance(outline, list):
        return tuple(_shaped(part, numbers) for part in outline)
    flat, types = zip(*itertools.islice(numbers, math.prod(outline)), strict=True)
    return wrap(np.array(flat).reshape(outline), types[0])
