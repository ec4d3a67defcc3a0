"""Regions of memory against sets of bytes."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from quadpy.hazards.regions import Grid, Overlap, Region, contains, overlap, region_in


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
    Grid(1000, (6, 5), (20, 4), 4),
    Grid(1000, (5, 6), (4, 20), 4),  # transposed
    Grid(1000, (30,), (4,), 4),
    Grid(1008, (13,), (8,), 4),  # with gaps
]


@pytest.mark.parametrize("seed", range(20))
def test_overlap_agrees_with_the_bytes(seed):
    random = Random(seed)
    for _ in range(100):
        one, other = random_region(random, GRIDS), random_region(random, GRIDS)
        meet = bool(bytes_of(one) & bytes_of(other))
        how = overlap(one, other)
        assert how is overlap(other, one)
        assert how is not (Overlap.NONE if meet else Overlap.CERTAIN)
        if one.grid == other.grid or (one.dense and other.dense):
            assert how is (Overlap.CERTAIN if meet else Overlap.NONE)
        if contains(one, other):
            assert bytes_of(one) >= bytes_of(other)
        elif one.grid == other.grid and all(axis.step == 1 for axis in (*one.axes, *other.axes)):
            assert not bytes_of(one) >= bytes_of(other)


@pytest.mark.parametrize("seed", range(20))
def test_a_region_knows_its_ends_and_gaps(seed):
    random = Random(seed)
    for _ in range(50):
        region = random_region(random, GRIDS)
        found = bytes_of(region)
        assert (region.low, region.high) == (min(found), max(found) + 1)
        assert region.dense is (len(found) == region.high - region.low)


def test_an_empty_part_is_no_region():
    assert region_in(GRIDS[0], [range(3, 3)]) is None


def test_bytes_that_touch_do_not_overlap():
    assert overlap(Region(0, 4, True), Region(4, 8, True)) is Overlap.NONE
