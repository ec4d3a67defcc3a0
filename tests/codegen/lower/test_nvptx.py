"""What PTX asks of the driver's compiler."""

from __future__ import annotations

import re

import pytest

import quadpy as qp

pytestmark = pytest.mark.cpu_only
F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def pairs(x: F32, y: F32):
    for i in y:
        total = 0.0
        for j in range(x.shape[0]):
            total += qp.sqrt(x[j] - x[i])
        y[i] = total


@qp.kernel
def in_small_blocks(x: F32, y: F32):
    qp.loop_config(block_dim=64)
    for i in y:
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j]
        y[i] = total


@qp.kernel
def without_inner_loop(x: F32, y: F32):
    for i in y:
        y[i] = qp.sqrt(x[i])


@qp.kernel
def over_shared_memory(x: F32):
    qp.loop_config(block_dim=64)
    for i in x:
        tile = qp.simt.block.SharedArray((64,), qp.f32)
        tile[i % 64] = x[i]
        qp.simt.block.sync()
        total = 0.0
        for j in range(64):
            total += tile[j]
        x[i] = total


@pytest.mark.parametrize(
    ("kernel", "blocks"),
    [(pairs, ["2"]), (in_small_blocks, ["8"]), (without_inner_loop, []), (over_shared_memory, [])],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_ptxas_may_take_registers_for_loads_that_overlap(kernel, blocks):
    ptx = kernel.compile("sm_90").image.decode()
    assert re.findall(r"\.minnctapersm (\d+)", ptx) == blocks
