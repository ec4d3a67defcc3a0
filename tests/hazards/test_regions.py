"""Regions of memory against sets of bytes."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from quadpy.hazards.regions import ByteGrid, Overlap, Region, contains, overlap, region_in


def bytes_of(region):
    if region.grid is None:
        return set(range(region.low, region.high))
    grid = region.grid
    found = set()
    for index in itertools.product(*region.axes):
        start = grid.pointer + sum(i * stride for i, stride in zip(index, grid.strides, strict=True))
        found.update(range(start, start + grid.item))
    return found


def random_region(random, grids):
    grid = random.choice(grids)
    axes = []
    for extent in grid.shape:
        low = random.randrange(extent)
        axes.append(range(low, random.randint(low + 1, extent), random.choice([1, 1, 2, 3])))
    return region_in(grid, axes)


GRIDS = [
    ByteGrid(1000, (6, 5), (20, 4), 4),
    ByteGrid(1000, (5, 6), (4, 20), 4),  # transposed
    ByteGrid(1000, (30,), (4,), 4),
    ByteGrid(1008, (13,), (8,), 4),  # with gaps
    ByteGrid(1116, (15,), (-8,), 4),  # from the end
    ByteGrid(1000, (7, 16), (16, 1), 1),  # structs, by bytes
]
READ_ONLY = [
    ByteGrid(1004, (3, 4), (0, 8), 4),  # each row at the same place
    ByteGrid(1000, (3, 2), (0, 5), 1),
    ByteGrid(1000, (5, 3), (8, 4), 4),  # windows that overlap
]


@pytest.mark.parametrize("seed", range(20))
def test_overlap_agrees_with_the_bytes(seed):
    random = Random(seed)
    for _ in range(100):
        one, other = random_region(random, GRIDS + READ_ONLY), random_region(random, GRIDS + READ_ONLY)
        meet = bool(bytes_of(one) & bytes_of(other))
        how = overlap(one, other)
        assert how is overlap(other, one)
        if one.grid != other.grid or one.grid not in READ_ONLY:
            assert how is (Overlap.CERTAIN if meet else Overlap.NONE), (one, other)
        if contains(one, other):
            assert bytes_of(one) >= bytes_of(other)
        elif one.grid == other.grid in GRIDS[:4] and all(axis.step == 1 for axis in (*one.axes, *other.axes)):
            assert not bytes_of(one) >= bytes_of(other)


@pytest.mark.parametrize("seed", range(20))
def test_a_region_knows_its_ends_and_gaps(seed):
    random = Random(seed)
    for _ in range(50):
        region = random_region(random, GRIDS + READ_ONLY)
        found = bytes_of(region)
        assert (region.low, region.high) == (min(found), max(found) + 1)
        assert region.dense is (len(found) == region.high - region.low), region


def test_an_empty_part_is_no_region():
    assert region_in(GRIDS[0], [range(3, 3)]) is None


def test_bytes_that_touch_do_not_overlap():
    assert overlap(Region(0, 4, True), Region(4, 8, True)) is Overlap.NONE


def test_of_large_regions_only_the_parts_that_may_meet_are_compared():
    tile = region_in(ByteGrid(0, (1 << 20, 1 << 10), (1 << 14, 8), 4), [range(1000, 1010), range(0, 1 << 10, 2)])
    odd, even = (region_in(ByteGrid(at, (1 << 30,), (16,), 4), []) for at in (4, 0))
    assert overlap(tile, odd) is Overlap.NONE
    assert overlap(tile, even) is Overlap.CERTAIN
    assert overlap(Region(0, 1 << 40, False), even) is Overlap.POSSIBLE  # some bytes of it
