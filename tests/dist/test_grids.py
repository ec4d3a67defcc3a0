"""Grids: how their cells are divided, and what is refused."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import pickle
import weakref

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist.boxes import Box, difference
from quadpy.errors import ArgumentError, RanksDisagreeError


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("shape", [(8,), (1000,), (9, 5), (300, 7), (40, 40, 40), (9, 11, 17)])
def test_each_cell_has_one_owner(shape: tuple[int, ...], ranks: int):
    def blocks() -> tuple[Box, ...]:
        grid = qp.dist.Grid(shape)
        assert grid.block == grid.blocks[grid.world.rank]
        return grid.blocks

    found = run_ranks(ranks, blocks)
    owners = np.zeros(shape, int)
    for low, high in found[0]:
        owners[tuple(map(slice, low, high))] += 1
    assert (owners == 1).all()
    assert all(each == found[0] for each in found)
    sizes = [block.size for block in found[0]]
    assert min(sizes) > 0


def test_the_blocks_of_a_cube_have_little_surface():
    assert run_ranks(8, lambda: qp.dist.Grid((64, 64, 64)).ranks)[0] == (2, 2, 2)
    assert run_ranks(4, lambda: qp.dist.Grid((4096, 16)).ranks)[0] == (4, 1)
    assert run_ranks(4, lambda: qp.dist.Grid((16, 4096)).ranks)[0] == (1, 4)


def test_ranks_along_each_axis_can_be_given():
    assert run_ranks(4, lambda: qp.dist.Grid((64, 64), ranks=(1, 4)).blocks)[0][1] == Box((0, 16), (64, 32))


def test_blocks_are_whole_tiles_and_about_equal():
    def blocks() -> tuple[tuple[int, ...], list[int]]:
        grid = qp.dist.Grid((500,), ranks=3)
        return grid.tile, [block.size for block in grid.blocks]

    tile, sizes = run_ranks(3, blocks)[0]
    assert max(sizes) - min(sizes) <= tile[0]


def test_refused():
    for arguments, words in [
        ({"shape": (4, 4, 4, 4)}, "one to three axes"),
        ({"shape": (4, 0)}, "each with a cell"),
        ({"shape": (4, 4), "ranks": (2, 1)}, "among 1 ranks"),
        ({"shape": (4, 4), "ranks": 1}, "does not divide a grid of 2 axes"),
        ({"shape": (4, 4), "periodic": (True,)}, "1 values for 2 axes"),
        ({"shape": (4, 4), "periodic": "xy"}, "periodic must be True or False, not 'xy'"),
        ({"shape": (4, 4), "periodic": (True, 2)}, "periodic must be True or False, not 2"),
        ({"shape": (4, 4), "ranks": (1.0, 1)}, "must be one number of blocks for each axis"),
        ({"shape": (4, 4), "ranks": "ab"}, "ranks='ab' must be one number of blocks"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            qp.dist.Grid(**arguments)
    with pytest.raises(ArgumentError, match="cannot be divided among 4 ranks"):
        run_ranks(4, lambda: qp.dist.Grid((3,)))


def test_ranks_that_make_different_grids_are_told():
    def make() -> None:
        qp.dist.Grid((8 + qp.dist.world().rank, 8))

    with pytest.raises(RanksDisagreeError, match="the grid"):
        run_ranks(2, make)


def test_difference_covers_the_rest_once():
    outer, inner = Box((1, 2, 3), (6, 9, 8)), Box((2, 2, 4), (5, 8, 8))
    for chosen in (inner, Box((1, 2, 3), (1, 2, 3)), outer):
        slabs = difference(outer, chosen)
        assert sum(slab.size for slab in slabs) == outer.size - chosen.size
        for a, b in itertools.combinations([*slabs, chosen], 2):
            assert not a.meet(b).size
        assert math.prod(outer.shape) == outer.size


def test_a_kernel_keeps_no_grid_alive():
    @qp.kernel
    def shifted(u: qp.types.ndarray(ndim=1), v: qp.types.ndarray(ndim=1)):
        for i in v:
            v[i] = u[qp.min(i + 1, u.shape[0] - 1)]

    def program() -> weakref.ref[qp.dist.Grid]:
        grid = qp.dist.Grid((64,))
        shifted(grid.ndarray(qp.f32), grid.ndarray(qp.f32))
        return weakref.ref(grid)

    grids = run_ranks(2, program)
    gc.collect()
    assert [grid() for grid in grids] == [None, None]


def test_copies_and_pickles():
    def program() -> None:
        grid = qp.dist.Grid((12,))
        u, f = grid.ndarray(qp.f32), grid.field(qp.i32, name="marks")
        u.from_numpy(np.arange(12))
        for made in (copy.copy(u), copy.deepcopy(u)):
            u.fill(7.0)
            np.testing.assert_array_equal(made.to_numpy(), np.arange(12))
            u.from_numpy(np.arange(12))
        assert copy.copy(f).name == "marks"
        assert copy.deepcopy(grid) is grid
        assert copy.copy(grid.world) is grid.world
        for thing, words in (
            (u, "each rank has only a part of it"),
            (grid, "pickle its shape"),
            (grid.world, "call quadpy.dist.world"),
            (qp.dist.capture(lambda: u.fill(1.0)), "pickle the function"),
        ):
            with pytest.raises(qp.QuadpyError, match="cannot be pickled") as caught:
                pickle.dumps(thing)
            assert words in str(caught.value)
        with pytest.raises(ArgumentError, match="NumPy cannot take distributed ndarray"):
            np.asarray(u)

    run_ranks(2, program)
