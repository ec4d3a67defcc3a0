"""All elements of a distributed array, on the device of each rank."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quadpy.core.importing import import_late
from quadpy.dist.arrays.memory import box_table
from quadpy.dist.transport.protocol import FlatPart, Receive, Send
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.arrays.reinterpret import over_memory_of

if TYPE_CHECKING:
    from quadpy.dist.lattice import Lattice
    from quadpy.dist.world import World
    from quadpy.runtime.streams.stream import Stream


def gather_whole(
    lattice: Lattice, world: World, local: NDArray, start: Sequence[int], to: NDArray, stream: Stream
) -> None:
    """Put all numbers of an array into ``to`` on every rank; all ranks call it together.

    ``local`` has those of the rank and its halo, with three axes; its first is number ``start`` of the array.
    """
    ends = list(itertools.accumulate(block.size for block in lattice.blocks))
    parts = ndarray(to.dtype, ends[-1])
    boxes = import_late("quadpy.dist.kernels.boxes")

    def part_of(rank: int) -> FlatPart:
        size = lattice.blocks[rank].size
        return FlatPart(parts, ends[rank] - size, size)

    own, here = lattice.block, part_of(world.rank)
    mine = over_memory_of(parts, to.dtype, (own.size,), here.start * to.dtype.nbytes)
    corner = [a - b for a, b in zip(own.low, start, strict=True)]
    boxes.pack(local, mine, box_table([(0, corner, own.shape)]), stream=stream)
    others = [rank for rank in range(world.size) if rank != world.rank]
    sends, receives = [Send(peer, here) for peer in others], [Receive(peer, part_of(peer)) for peer in others]
    world.transport.start_exchange(sends, receives, stream).finish()
    whole = over_memory_of(to, to.dtype, (*(1,) * (3 - to.ndim), *to.shape))
    rows = [(end - block.size, block.low, block.shape) for end, block in zip(ends, lattice.blocks, strict=True)]
    boxes.unpack(whole, parts, box_table(rows), stream=stream)
