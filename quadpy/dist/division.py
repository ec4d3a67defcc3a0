"""The division of a grid's cells among ranks."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from quadpy.core.copying import OneProcess
from quadpy.core.dtypes import u64
from quadpy.core.messages import shown
from quadpy.core.public import public, require_switch
from quadpy.dist.boxes import Box
from quadpy.dist.lattice import Lattice
from quadpy.dist.transport.agreement import agree
from quadpy.dist.world import World, world
from quadpy.errors import ArgumentError, DistributedError, QuadpyError
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.device.devices import current_device

_MOST_TILES: Final = {1: 4096, 2: 64, 3: 16}
"""Tiles along an axis, by the number of axes: at most 4096 in all, as a reduction has chunks."""


class Division(OneProcess):
    """Cells of a global shape; each rank owns one block of them; ``Grid`` adds arrays.

    Blocks are made of whole *tiles*, whose size depends on the global shape alone, so that the order in which a sum over
    the grid is added up does not depend on the number of ranks.

    shape     the global extents
    periodic  for each axis, whether the first and the last cell are neighbours
    ranks     the number of blocks along each axis
    block     the cells that this rank owns
    blocks    those of each rank
    tile      the extents of a tile
    """

    error: ClassVar[type[QuadpyError]] = DistributedError
    instead: ClassVar[str] = "pickle its shape, periodic and ranks, and make a Grid of them"

    @public
    def __init__(
        self,
        shape: int | tuple[int, ...],
        *,
        periodic: bool | Sequence[bool] = False,
        ranks: int | Sequence[int] | None = None,
    ) -> None:
        """A grid over all ranks of the program, which make it together.

        Args:
            shape: one to three extents.
            periodic: whether an axis ends where it begins; one value for all axes, or one for each.
            ranks: the number of blocks along each axis; by default those with the smallest surface.

        Raises:
            ArgumentError: a wrong shape, or ``ranks`` that do not fit the shape or the number of ranks.
            RanksDisagreeError: another rank makes another grid.
        """
        self.world: World = world()
        self.shape = shape_of(shape)
        if not 1 <= len(self.shape) <= len(_MOST_TILES) or 0 in self.shape:
            raise ArgumentError(f"a grid has one to three axes, each with a cell, not the shape {self.shape}")
        self.periodic = for_each_axis(periodic, len(self.shape), "periodic")
        most = _MOST_TILES[len(self.shape)]
        self.tile = tuple(-(-extent // most) for extent in self.shape)
        self.tiles = tuple(-(-extent // tile) for extent, tile in zip(self.shape, self.tile, strict=True))
        self.ranks = self._chosen(ranks)
        made = f"{self.shape} periodic={self.periodic} ranks={self.ranks}"
        agree(self.world.transport, "the grid", made, self.world.calls)
        self._lattices = {(0,) * len(self.shape): self.cells}
        self.blocks, self.block = self.cells.blocks, self.cells.block
        self.serials: Iterator[int] = itertools.count(1)
        """Numbers of arrays, which all ranks make in the same order."""
        self._number = next(self.world.calls.grids)
        self._launches: dict[object, NDArray] = {}
        self.programs: weakref.WeakKeyDictionary[object, Any] = weakref.WeakKeyDictionary()
        """What each kernel's plan has made for the grid.  It refers to the grid, so the grid keeps it."""
        self.saves: dict[Path, Any] = {}
        """The last checkpoint of each path, which may still be under way."""

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_split(self) -> tuple[bool, ...]:
        """For each axis, whether it has more than one block."""
        return tuple(count > 1 for count in self.ranks)

    @functools.cached_property
    def cells(self) -> Lattice:
        """The cells; the ranks are numbered with the last axis fastest."""
        cuts = [_cuts(tiles, count) for tiles, count in zip(self.tiles, self.ranks, strict=True)]
        places = itertools.product(*(range(count) for count in self.ranks))
        blocks = tuple(
            Box(
                tuple(cuts[axis][k] for axis, k in enumerate(place)),
                tuple(cuts[axis][k + 1] for axis, k in enumerate(place)),
            )
            for place in places
        )
        return Lattice(self.shape, self.periodic, self.tile, blocks, self.world.rank)

    @functools.cached_property
    def iterations(self) -> Lattice:
        """Where iterations of loops may be: at cells, and above the last one along axes that are not periodic."""
        return self.lattice(tuple(not repeats for repeats in self.periodic))

    def launches(self) -> NDArray:
        """The number of the last call that drew random numbers, on the current device; each grid has others."""
        device = current_device()
        if device not in self._launches:
            self._launches[device] = ndarray(u64, 1)
            self._launches[device].fill(self._number << 32)
        return self._launches[device]

    def lattice(self, staggered: Sequence[bool]) -> Lattice:
        """The cells, or, along axes that are ``staggered``, the faces between them; the identical object for equal axes."""
        more = tuple(map(int, staggered))
        found = self._lattices.get(more)
        return self._lattices.setdefault(more, self.cells.staggered(more)) if found is None else found

    def _chosen(self, ranks: int | Sequence[int] | None) -> tuple[int, ...]:
        size = self.world.size
        if ranks is None:
            return _least_surface(self.shape, self.tiles, size)
        try:
            chosen = tuple(map(operator.index, ranks if isinstance(ranks, Iterable) else (ranks,)))
        except TypeError:
            raise ArgumentError(f"ranks={shown(ranks)} must be one number of blocks for each axis") from None
        if len(chosen) != self.ndim or math.prod(chosen) != size or any(count < 1 for count in chosen):
            raise ArgumentError(
                f"ranks={chosen} does not divide a grid of {self.ndim} axes among {size} ranks",
                hint="give one number for each axis; their product is the number of ranks",
            )
        if any(count > tiles for count, tiles in zip(chosen, self.tiles, strict=True)):
            raise ArgumentError(f"ranks={chosen}: a grid of shape {self.shape} has at most {self.tiles} blocks")
        return chosen

    def __repr__(self) -> str:
        return (
            f"Grid({self.shape}, ranks={self.ranks}, rank {self.world.rank} owns {self.block.low} to {self.block.high})"
        )


def _cuts(tiles: int, count: int) -> list[int]:
    """Where ``count`` blocks of about as many tiles each begin and end."""
    return [k * tiles // count for k in range(count + 1)]


def _least_surface(shape: tuple[int, ...], tiles: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The blocks along each axis with the fewest cells at their surfaces; the first axes are divided first."""
    possible = [found for found in _factors(size, len(shape)) if all(a <= b for a, b in zip(found, tiles, strict=True))]
    if not possible:
        raise ArgumentError(
            f"a grid of shape {shape} cannot be divided among {size} ranks",
            hint="start fewer ranks, or make the grid larger",
        )
    cells = math.prod(shape)
    return min(possible, key=lambda found: (sum(cells // n * (k - 1) for n, k in zip(shape, found, strict=True)),
                                            found[::-1]))  # fmt: skip


def _factors(size: int, axes: int) -> Iterator[tuple[int, ...]]:
    if axes == 1:
        yield (size,)
        return
    for first in range(1, size + 1):
        if size % first == 0:
            for others in _factors(size // first, axes - 1):
                yield (first, *others)


def for_each_axis(given: object, axes: int, name: str) -> tuple[bool, ...]:
    """One switch for each of these axes."""
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,) * axes
    for each in found:
        require_switch(each, name)
    if len(found) != axes:
        raise ArgumentError(f"{name}={given} has {len(found)} values for {axes} axes")
    return tuple(map(bool, found))
