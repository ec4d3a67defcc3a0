"""Reductions over all ranks, in an order that only the shape of the grid decides.

The numbers of each tile combine as 64 lanes: lane l takes those with the row-major numbers l, l + 64, … in this order, and
the lanes merge by halves.  The ranks gather the results of all tiles, and each combines them in the order of the tiles as
a reduction over a loop does (``codegen.reduction``).  No tile belongs to two ranks, so the bits do not depend on them.
"""

from __future__ import annotations

import numpy as np

from quadpy.codegen.reduction import merge_op
from quadpy.core.dtypes import Scalar, i32
from quadpy.dist.captured import apart
from quadpy.dist.division import Division
from quadpy.dist.kernels.tiles import combine_tiles, reduce_tiles
from quadpy.dist.transport.protocol import FlatPart
from quadpy.ir.nodes import AtomicOp
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.streams.stream import Stream

_LANES = 64


class Totals:
    """Combines one number of each cell of a grid by ``op``."""

    def __init__(self, grid: Division, op: AtomicOp, type: Scalar) -> None:
        self._grid, self._op = grid, merge_op(op).value
        counts = [block.size for block in grid.tile_blocks]
        self._own = grid.tile_blocks[grid.world.rank]
        most = max(counts)
        self._lanes = ndarray(type, (self._own.size, _LANES))
        self._sent, self._gathered = ndarray(type, most), ndarray(type, most * len(counts))
        self._order, self._total = ndarray(i32, sum(counts)), ndarray(type, 1)
        places = np.empty(grid.tiles, np.int32)
        for rank, block in enumerate(grid.tile_blocks):
            numbers = rank * most + np.arange(block.size, dtype=np.int32)
            places[tuple(map(slice, block.low, block.high))] = numbers.reshape(block.shape)
        self._order.from_numpy(places.reshape(-1))

    def of(self, numbers: NDArray, stream: Stream, where: str) -> NDArray:
        """An array with the total of ``numbers``, the own block with three axes.

        All ranks call it together, for the loop at ``where``.
        """
        pad = (1,) * (3 - self._grid.ndim)
        tile, tiles = (*pad, *self._grid.tile), (*pad, *self._own.shape)
        reduce_tiles(numbers, self._lanes, self._sent, *tile, *tiles[1:], self._op, stream=stream)
        sent, gathered = FlatPart.whole(self._sent), FlatPart.whole(self._gathered)
        world = self._grid.world
        apart(lambda: world.transport.all_gather(sent, gathered, stream, world.calls.current(where)))
        combine_tiles(self._gathered, self._order, self._total, self._op, stream=stream)
        return self._total
