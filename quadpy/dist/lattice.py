"""Where the arrays of a grid have elements: at its cells, or at faces or corners between them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quadpy.dist.boxes import Box


@dataclass(frozen=True)
class Lattice:
    """The elements of an array, along each axis one for each cell, or one more: face i is below cell i, face n above all.

    Cell and face i are of one rank, and the last face is of the rank that owns the last cell.

    shape        the extents of the array
    periodic     as of the grid; along a periodic axis, an array has as many faces as cells
    tile         the extents of a tile, those of the grid; the last tile along an axis may have fewer elements
    tile_blocks  the tiles of each rank, in tiles
    rank         this rank
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    tile: tuple[int, ...]
    tile_blocks: tuple[Box, ...]
    rank: int

    @functools.cached_property
    def blocks(self) -> tuple[Box, ...]:
        """The elements of each rank."""
        return tuple(Box(self._elements(block.low), self._elements(block.high)) for block in self.tile_blocks)

    @functools.cached_property
    def block(self) -> Box:
        """The elements of this rank."""
        return self.blocks[self.rank]

    @functools.cached_property
    def tiles(self) -> tuple[int, ...]:
        """The number of tiles along each axis."""
        return tuple(-(-extent // tile) for extent, tile in zip(self.shape, self.tile, strict=True))

    def order(self, most: int) -> npt.NDArray[np.int32]:
        """For the tiles in row-major order, where each is if each rank's tiles, in this order, are at its rank times ``most``."""
        places = np.empty(self.tiles, np.int32)
        for rank, block in enumerate(self.tile_blocks):
            numbers = rank * most + np.arange(block.size, dtype=np.int32)
            places[tuple(map(slice, block.low, block.high))] = numbers.reshape(block.shape)
        return places.reshape(-1)

    def owner(self, element: Sequence[int]) -> int:
        """The rank that owns ``element``."""
        return next(rank for rank, (low, high) in enumerate(self.blocks)
                    if all(a <= i < b for a, i, b in zip(low, element, high, strict=True)))  # fmt: skip

    def staggered(self, more: tuple[int, ...]) -> Lattice:
        """With ``more`` elements, 0 or 1, along each axis."""
        shape = tuple(map(sum, zip(self.shape, more, strict=True)))
        last = tuple(-(-extent // tile) for extent, tile in zip(shape, self.tile, strict=True))
        blocks = tuple(
            Box(low, tuple(b if h == n else h for h, n, b in zip(high, self.tiles, last, strict=True)))
            for low, high in self.tile_blocks
        )
        return Lattice(shape, self.periodic, self.tile, blocks, self.rank)

    def _elements(self, tiles: tuple[int, ...]) -> tuple[int, ...]:
        """Where these tiles begin, in elements."""
        return tuple(min(k * tile, n) for k, tile, n in zip(tiles, self.tile, self.shape, strict=True))
