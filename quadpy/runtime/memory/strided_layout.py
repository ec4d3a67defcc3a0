"""How numbers are laid out in a range of bytes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from quadpy.runtime.elements.numpy_types import Numbers


class StridedLayout(NamedTuple):
    """A grid of numbers of ``dtype``: the first one is ``start`` bytes into some memory; ``strides`` are in bytes.

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

    def at(self, index: tuple[int | slice, ...]) -> StridedLayout:
        """The part at ``index`` along the first axes: slices, and positions, where negative ones count from the end."""
        axes, start = len(index), self.start
        try:
            for i, n, step in zip(index, self.shape, self.strides, strict=False):
                start += i % n * step  # type: ignore[operator]  # a slice raises
        except TypeError:
            return self._sliced(index)
        return StridedLayout(start, self.dtype, self.shape[axes:], self.strides[axes:])

    def _sliced(self, index: tuple[int | slice, ...]) -> StridedLayout:
        start, axes = self.start, []
        for item, n, step in zip(index, self.shape, self.strides, strict=False):
            if isinstance(item, slice):
                positions = range(*item.indices(n))
                start += positions.start * step if positions else 0
                axes.append((len(positions), step * positions.step))
            else:
                start += item % n * step
        axes += zip(self.shape[len(index) :], self.strides[len(index) :], strict=True)
        return StridedLayout(start, self.dtype, tuple(n for n, _ in axes), tuple(step for _, step in axes))

    def outer_axes(self, like: StridedLayout | None = None) -> tuple[list[int], int]:
        """The axes along which contiguous runs of numbers repeat, from the slowest, and the bytes of a run. Each run is
        contiguous in ``like``, too, which has the same shape.
        """
        axes = sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis])
        nbytes, outer = self.dtype.itemsize, [axis for axis in axes if self.shape[axis] > 1]
        theirs = self.strides if like is None else like.strides
        while outer and self.strides[outer[-1]] == theirs[outer[-1]] == nbytes:
            nbytes *= self.shape[outer.pop()]
        return outer, nbytes

    def over(self, data: Numbers | bytearray) -> Numbers:
        """The numbers in ``data``, which holds the bytes of this layout alone."""
        return np.ndarray(self.shape, self.dtype, data, 0, self.strides)
