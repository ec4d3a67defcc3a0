"""Indices that are known at compile time, of fields and shared arrays: those out of range are errors of the kernel."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@pytest.fixture(scope="module")
def row():
    return qp.field(qp.i32, shape=4)


@pytest.fixture(scope="module")
def grid():
    return qp.field(qp.i32, shape=(4, 6), offset=(-2, 0))


@pytest.mark.parametrize("index", [4, 5, 1 << 40])
def test_an_index_at_or_after_the_end_of_a_field(row, index):
    @qp.kernel
    def write():
        row[index] = 1

    with pytest.raises(
        qp.KernelTypeError, match=rf"index {index} of axis 0 is out of range: the axis has extent 4"
    ) as e:
        write()
    assert "row[index] = 1" in str(e.value)


@pytest.mark.parametrize(
    ("i", "j", "message"),
    [
        (-3, 0, "index -3 of axis 0 is out of range: the axis has extent 4 and begins at -2"),
        (2, 0, "index 2 of axis 0 is out of range: the axis has extent 4 and begins at -2"),
        (0, 6, "index 6 of axis 1 is out of range: the axis has extent 6"),
        (0, -1, "index -1 of axis 1 is out of range: the axis has extent 6"),
    ],
)
def test_fields_with_offsets(grid, i, j, message):
    @qp.kernel
    def read() -> qp.i32:
        return grid[i, j]

    with pytest.raises(qp.KernelTypeError, match=message):
        read()


def test_shared_arrays():
    @qp.kernel
    def write(x: I32):
        qp.loop_config(block_dim=32)
        for i in x:
            tile = qp.simt.block.SharedArray((4, 8), qp.i32)
            tile[3, 8] = i
            x[i] = tile[0, 0]

    with pytest.raises(qp.KernelTypeError, match="index 8 of axis 1 is out of range: the axis has extent 8"):
        write(np.zeros(32, np.int32))


def test_fields_in_blocks():
    blocks = qp.field(qp.i32)
    qp.root.dense(qp.i, 2).dense(qp.i, 4).place(blocks)

    @qp.kernel
    def write(k: qp.template()):
        blocks[k] = 1

    write(7)
    assert blocks[7] == 1
    with pytest.raises(qp.KernelTypeError, match="index 8 of axis 0 is out of range: the axis has extent 8"):
        write(8)


def test_what_a_branch_keeps_from_happening_is_no_error(row):
    @qp.func
    def at(k, n):
        if k >= n:
            return 0
        return row[k]

    @qp.kernel
    def total(n: qp.i32) -> qp.i32:
        found = 0
        for k in qp.static(range(8)):
            if k < n:
                found += row[k]
            found += row[k] if k < n else 0
            found += at(k, n)
            if k < row.shape[0]:
                found += row[k]
        return found

    row.fill(1)
    assert total(4) == 16
