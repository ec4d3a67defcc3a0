"""Barriers that all iterations of a block reach, though only the program knows: accepted, as there."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.quadrants as qd
import quadpy.compat.taichi as ti

BLOCK = 32
TARGETS = ["cpu", "sm_90", "gfx942", "gfx1100"]
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


def rotate_where_open(x: I32, opened: I32):
    qp.loop_config(block_dim=BLOCK)
    for i in range(x.shape[0]):
        tile = qp.simt.block.SharedArray(BLOCK, qp.i32)
        lane, group = i % BLOCK, i // BLOCK
        if opened[group] > 0:
            tile[lane] = x[i]
            qp.simt.block.sync()
            x[i] = tile[(lane + 1) % BLOCK]
            opened[group] = 2


def rounds_of_each_block(x: I32, opened: I32):
    """The number of turns is what the block wrote before the loop, and one block leaves early."""
    qp.loop_config(block_dim=BLOCK)
    for i in range(x.shape[0]):
        tile = qp.simt.block.SharedArray(BLOCK, qp.i32)
        lane, group = i % BLOCK, i // BLOCK
        turns = opened[group] * 2
        for k in range(turns):
            tile[lane] = x[i] + k
            qp.simt.block.sync()
            if opened[group] == 3 and k == 1:
                break
            x[i] = tile[BLOCK - 1 - lane]
            qp.simt.block.sync()
        qp.simt.block.sync()
        if lane == 0:
            opened[group] = turns


def values():
    return np.arange(4 * BLOCK, dtype=np.int32), np.array([1, 0, 3, 2], np.int32)


@pytest.mark.parametrize("kernel", [ti.kernel, qd.kernel])
def test_a_condition_that_the_loop_overwrites(kernel):
    x, opened = values()
    kernel(rotate_where_open)(x, opened)
    expected = np.arange(4 * BLOCK).reshape(4, BLOCK)
    for group in (0, 2, 3):
        expected[group] = np.roll(expected[group], -1)
    assert x.tolist() == expected.ravel().tolist()
    assert opened.tolist() == [2, 0, 2, 2]


def test_turns_that_memory_decides():
    x, opened = values()
    qd.kernel(rounds_of_each_block)(x, opened)
    expected = np.arange(4 * BLOCK).reshape(4, BLOCK)
    for group, turns in enumerate([2, 0, 1, 4]):
        for k in range(turns):
            expected[group] = expected[group, ::-1] + k
    assert x.tolist() == expected.ravel().tolist()
    assert opened.tolist() == [2, 0, 6, 4]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fn", [rotate_where_open, rounds_of_each_block])
def test_they_compile_for_every_target(fn, target):
    assert qd.kernel(fn).compile(target).tasks[-1].has_barrier


@pytest.mark.parametrize("fn", [rotate_where_open, rounds_of_each_block])
def test_quadpys_own_kernels_refuse_them(fn):
    with pytest.raises(qp.KernelSyntaxError, match="not reached by all threads of a block"):
        qp.kernel(fn)(*values())


def test_threads_that_are_known_to_differ_are_refused():
    @qd.kernel
    def k(x: I32):
        for i in range(x.shape[0]):
            if qd.simt.block.thread_idx() < 7:
                qd.simt.block.sync()
            x[i] = 1

    with pytest.raises(qp.KernelSyntaxError, match="not reached by all threads of a block"):
        k(np.zeros(256, np.int32))
