"""How numbers are laid out in a range of bytes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from quadpy.runtime.elements.numpy_types import Numbers

__all__ = ["StridedLayout"]


class StridedLayout(NamedTuple):
    """A grid of numbers of ``dtype``: the first one ``start`` bytes into some memory, ``strides`` in bytes.

    No stride is negative, and no two numbers overlap.
    """

    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of numbers."""
        return math.prod(self.shape)

    @property
    def reach(self) -> int:
        """Bytes from the first number to the end of the last, gaps included."""
        if not self.shape:
            return self.dtype.itemsize
        if not self.size:
            return 0
        return sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)) + self.dtype.itemsize

    @property
    def dense(self) -> bool:
        """Whether there are no gaps."""
        return not self.shape or self.reach == self.size * self.dtype.itemsize

    def at(self, index: tuple[int, ...]) -> StridedLayout:
        """The part at ``index`` along the first axes; negative positions count from the end."""
        axes, start = len(index), self.start
        for i, n, step in zip(index, self.shape, self.strides, strict=False):
            start += i % n * step
        return StridedLayout(start, self.dtype, self.shape[axes:], self.strides[axes:])

    def over(self, data: Numbers | bytearray) -> Numbers:
        """The numbers in ``data``, which holds the bytes of this layout alone."""
        return np.ndarray(self.shape, self.dtype, data, 0, self.strides)
