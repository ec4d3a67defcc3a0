"""Storage of arrays in blocks: along an axis, memory has several levels, blocks in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostStorage, Storage, Where

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device

Blocks: TypeAlias = tuple[tuple[int, ...], ...]
"""For each axis the extents of its levels, the outermost first; their product is the extent of the axis."""


class BlockedStorage:
    """``inner`` has an axis for each level of each axis; this has the axes of the array, and no strides.

    ``element`` is the shape of an element.
    """

    __slots__ = ("blocks", "inner", "shape")

    def __init__(self, inner: Storage, blocks: Blocks, element: tuple[int, ...]) -> None:
        self.inner, self.blocks = inner, blocks
        self.shape = (*map(math.prod, blocks), *element)

    @property
    def name(self) -> str:
        return self.inner.name

    @name.setter
    def name(self, name: str) -> None:
        self.inner.name = name

    @property
    def device(self) -> Device | None:
        return self.inner.device

    @property
    def block(self) -> Block | None:
        return self.inner.block

    @property
    def pointer(self) -> int:
        return self.inner.pointer

    def read(self, where: Where, stream: object = None) -> Numbers:
        """Like ``Storage.read``; all but one element is a copy."""
        if where is not ... and not any(isinstance(i, slice) for i in where):
            return self.inner.read(self._levels(where), stream)
        whole = self.inner.read(..., stream)
        return whole.reshape(self.shape)[where] if where is ... or 0 in self.shape else whole[self._part(where)]

    def number(self, where: tuple[int, ...]) -> int | float | None:
        return self.inner.number(self._levels(where))

    def put_number(self, where: tuple[int, ...], value: object) -> bool:
        return self.inner.put_number(self._levels(where), value)

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        if 0 in self.shape:
            return
        if where is ... and values.ndim <= len(self.shape) - len(self.blocks):
            self.inner.write(..., values, stream)
        elif where is ...:
            levels = tuple(n for axis in self.blocks for n in axis)
            spread = np.broadcast_to(values, self.shape)
            self.inner.write(..., spread.reshape(levels + self.shape[len(self.blocks) :]), stream)
        elif any(isinstance(i, slice) for i in where):
            self._write_part(where, values, stream)
        else:
            self.inner.write(self._levels(where), values, stream)

    def _write_part(self, where: tuple[int | slice, ...], values: Numbers, stream: object) -> None:
        part = self._part(where)
        if isinstance(self.inner, HostStorage):
            self.inner.read(..., stream)  # in a capture, this raises
            self.inner.view[part] = values
            return
        assert isinstance(self.inner, DeviceStorage)
        with self.inner.region.lock:
            whole = self.inner.read(..., stream)
            whole[part] = values
            self.inner.write(..., whole, stream)

    def _part(self, where: tuple[int | slice, ...]) -> tuple[Any, ...]:
        """The positions on each level of each axis, as indices of NumPy that give the part."""
        at = [np.arange(n)[item] for n, item in zip(self.shape, where, strict=False)]
        grids = iter(np.ix_(*(each for each in at if each.ndim)))
        return self._levels_of([next(grids) if each.ndim else each for each in at])

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if type(source) is BlockedStorage and source.blocks == self.blocks:
            self.inner.copy_from(source.inner, stream)
        else:
            self.write(..., source.read(..., stream), stream)

    def _levels(self, index: tuple[int | slice, ...]) -> tuple[int, ...]:
        """The position of an element on each level of each axis."""
        positions = [i % math.prod(extents) for i, extents in zip(index, self.blocks, strict=True)]  # type: ignore[operator]  # no slices
        return self._levels_of(positions)

    def _levels_of(self, positions: Sequence[Any]) -> tuple[Any, ...]:
        """The same for several elements, whose positions are arrays; indices after the axes stay as they are."""
        found: list[Any] = []
        for at, extents in zip(positions, self.blocks, strict=False):
            inner = math.prod(extents)
            for extent in extents:
                inner //= extent
                found.append(at // inner % extent)
        return (*found, *positions[len(self.blocks) :])


class PartedStorage(BlockedStorage):
    """Each component of the elements is stored separately, in one of ``parts``; like blocks, these have no strides together."""

    __slots__ = ("element", "parts")

    def __init__(self, parts: Sequence[Storage], element: tuple[int, ...]) -> None:
        super().__init__(parts[0], (), ())
        self.parts, self.element = parts, element

    @property
    def pointer(self) -> int:
        return min(part.pointer for part in self.parts)

    def read(self, where: Where, stream: object = None) -> Numbers:
        """Like ``Storage.read``; a copy."""
        numbers = np.stack([part.read(where, stream) for part in self.parts], axis=-1)
        return numbers.reshape(numbers.shape[:-1] + self.element)

    def number(self, where: tuple[int, ...]) -> None:
        """Nothing: there are no single numbers."""

    def put_number(self, where: tuple[int, ...], value: object) -> bool:
        return False

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        outer = values.shape[: max(values.ndim - len(self.element), 0)]
        spread = np.broadcast_to(values, outer + self.element)
        for part, index in zip(self.parts, np.ndindex(self.element), strict=True):
            part.write(where, np.asarray(spread[(..., *index)]), stream)

    def copy_from(self, source: Storage, stream: object = None) -> None:
        if isinstance(source, PartedStorage):
            for mine, theirs in zip(self.parts, source.parts, strict=True):
                mine.copy_from(theirs, stream)
        else:
            self.write(..., source.read(..., stream), stream)
