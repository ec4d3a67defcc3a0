"""Reductions, scans and votes of a block, fences, and Taichi's names for warps: against an oracle, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
import wave_oracle as oracle
from emulator import needs_waves_of

import quadpy as qp

block, subgroup, grid, warp = qp.simt.block, qp.simt.subgroup, qp.simt.grid, qp.simt.warp
A = qp.types.ndarray
SIZES = [64, 128, 192, 256, 1024]


@pytest.fixture(params=[32, 64])
def wave(request, init, arch):
    """Each size of a wave that the backend has: results do not depend on it."""
    needs_waves_of(request.param, arch)
    try:
        init(wave_size=request.param)
        lanes_of_the_backend(np.zeros(64, np.int32))
    except qp.UnknownTargetError:
        pytest.skip(f"{arch} has no waves of {request.param}")
    return request.param


@qp.kernel
def lanes_of_the_backend(x: A(dtype=qp.i32, ndim=1)):
    qp.loop_config(block_dim=64)
    for i in range(64):
        x[i] = subgroup.group_size()


def numbers(dtype, blocks, size, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal((blocks, size)) * 10.0 ** rng.integers(-3, 4, (blocks, size))).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (blocks, size), dtype, endpoint=True)


def tree(op, x):
    """Neighbours, then their results; one that has no neighbour is carried on."""
    x = x.copy()
    while x.shape[1] > 1:
        pairs = oracle.combined(op, x[:, : x.shape[1] // 2 * 2 : 2], x[:, 1::2])
        x = pairs if x.shape[1] % 2 == 0 else np.concatenate([pairs, x[:, -1:]], axis=1)
    return x


def inclusive(op, x):
    """In rows of 16 by doubling distances; then, from near to far, the totals of the groups below."""
    total = x.copy()
    lane = np.arange(x.shape[1])
    for d in (1, 2, 4, 8):
        has = lane % 16 >= d
        total[:, has] = oracle.combined(op, total[:, has], total[:, lane[has] - d])
    for width in (16, 32, 64, 128, 256, 512):
        for first in range(width, x.shape[1], 2 * width):
            group = slice(first, min(first + width, x.shape[1]))
            below = tree(op, x[:, first - width : first])
            total[:, group] = oracle.combined(op, total[:, group], below)
    return total


def exclusive(op, x):
    first = np.full((x.shape[0], 1), oracle.begins(op, x.dtype), x.dtype)
    return np.concatenate([first, inclusive(op, x)[:, :-1]], axis=1)


def same_bits(found, expected):
    equal = found.view(f"u{found.itemsize}") == expected.view(f"u{found.itemsize}")
    bad = np.argwhere(~(equal | ((found != found) & (expected != expected))))
    assert not len(bad), f"{len(bad)} differ, first at {bad[0]}: {found[tuple(bad[0])]!r}, {expected[tuple(bad[0])]!r}"


@qp.kernel
def combine(x: A(ndim=1), y: A(ndim=2), size: qp.template()):
    qp.loop_config(block_dim=size)
    for i in range(x.shape[0]):
        y[0, i] = block.reduce_add(x[i])
        y[1, i] = block.inclusive_add(x[i])
        y[2, i] = block.exclusive_add(x[i])
        y[3, i] = block.reduce_min(x[i])
        y[4, i] = block.exclusive_max(x[i])
        y[5, i] = block.inclusive_mul(x[i])


@pytest.mark.parametrize(("size", "dtype"), [*[(s, "float32") for s in SIZES], (256, "float16"), (192, "float64"),
                                             (256, "int8"), (96, "uint64"), (32, "int32")])  # fmt: skip
def test_reductions_and_scans_have_bits_that_do_not_depend_on_waves(wave, size, dtype):
    if size % wave and size not in (16, 32):
        pytest.skip("blocks consist of whole waves")
    x = numbers(dtype, 2, size, seed=size)
    if x.dtype.kind == "f":
        x[1, ::7], x[1, 3::7] = -0.0, np.nan
        x[1, : size // 2] = -0.0
    y = np.zeros((6, x.size), x.dtype)
    combine(x.ravel(), y, size)
    y = y.reshape(6, *x.shape)
    for row, expected in (
        (0, np.repeat(tree("add", x), size, axis=1)), (1, inclusive("add", x)), (2, exclusive("add", x)),
        (5, inclusive("mul", x)),
    ):  # fmt: skip
        same_bits(y[row], expected)
    for row, expected in ((3, np.repeat(tree("min", x), size, axis=1)), (4, exclusive("max", x))):
        assert ((y[row] == expected) | ((y[row] != y[row]) & (expected != expected))).all()
    same_bits(y[1, :, -1].copy(), y[0, :, 0].copy())


vec2 = qp.types.vector(2, qp.i32)


@qp.kernel
def bits(x: A(dtype=qp.u32, ndim=1), y: A(dtype=qp.u32, ndim=2), v: A(dtype=vec2, ndim=1)):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        y[0, i] = block.reduce_and(x[i] | 0xFFFF0000)
        y[1, i] = block.reduce_or(x[i])
        y[2, i] = block.reduce_xor(x[i])
        y[3, i] = block.exclusive_xor(x[i])
        y[4, i] = block.reduce_all_add(x[i] > 1 << 31, 128, qp.u32)
        v[i] = block.inclusive_add(qp.Vector([i, 1]))


def test_bitwise_operations_truths_and_vectors(wave):
    x = numbers("uint32", 3, 128)
    y, v = np.zeros((5, x.size), np.uint32), np.zeros((x.size, 2), np.int32)
    bits(x.ravel(), y, v)
    y = y.reshape(5, 3, 128)
    assert (y[0] == np.bitwise_and.reduce(x | np.uint32(0xFFFF0000), axis=1, keepdims=True)).all()
    assert (y[1] == np.bitwise_or.reduce(x, axis=1, keepdims=True)).all()
    assert (y[2] == np.bitwise_xor.reduce(x, axis=1, keepdims=True)).all()
    assert (y[3, :, 1:] == np.bitwise_xor.accumulate(x, axis=1)[:, :-1]).all()
    assert (y[3, :, 0] == 0).all()
    assert (y[4] == (x > 1 << 31).sum(axis=1, keepdims=True)).all()
    i = np.arange(x.size).reshape(3, 128)
    assert (v[:, 0] == np.cumsum(i, axis=1).ravel()).all()
    assert (v[:, 1] == np.tile(np.arange(1, 129), 3)).all()


@qp.kernel
def votes(x: A(dtype=qp.i32, ndim=1), y: A(dtype=qp.i32, ndim=2)):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        y[0, i] = block.sync_count_nonzero(x[i])
        y[1, i] = block.sync_any_nonzero(x[i] > 3)
        y[2, i] = block.sync_all_nonzero(x[i] > 0)
        y[3, i] = block.sync_count(x[i] > 2)


def test_votes(wave):
    x = np.random.default_rng(1).integers(0, 6, (5, 128), np.int32)
    x[0], x[1], x[2], x[3, 1:] = 0, 5, np.arange(128) == 77, 1
    y = np.zeros((4, x.size), np.int32)
    votes(x.ravel(), y)
    y = y.reshape(4, 5, 128)
    for found, expected in zip(y, ((x != 0).sum(1), (x > 3).any(1), (x > 0).all(1), (x > 2).sum(1)), strict=True):
        assert (found == expected[:, None]).all()


@qp.kernel
def settle(x: A(dtype=qp.i32, ndim=1), turns: A(dtype=qp.i32, ndim=1)):
    """Each value becomes the greatest of itself and its neighbours in the block, until nothing changes."""
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        tile = block.SharedArray(128, qp.i32)
        t = block.thread_idx()
        mine, count = x[i], 0
        changed = True
        while block.sync_any_nonzero(changed):
            tile[t] = mine
            block.sync()
            most = max(mine, tile[max(t - 1, 0)], tile[min(t + 1, 127)])
            changed = most != mine
            mine = most
            count += 1
            block.sync()
        x[i] = mine
        turns[i] = count


def test_a_vote_decides_about_barriers(wave):
    x = np.zeros((3, 128), np.int32)
    x[0, 0], x[1, 64], x[2] = 9, 7, 4
    turns = np.zeros(x.size, np.int32)
    settle(x.ravel(), turns)
    assert (x == [[9], [7], [4]]).all()
    assert turns.reshape(3, 128)[:, 0].tolist() == [128, 65, 1]


@qp.kernel
def in_a_loop(x: A(dtype=qp.f32, ndim=1), n: qp.i32):
    """The shared memory of an operation is used again in each turn."""
    for i in range(x.shape[0]):
        total = x[i]
        for _ in range(n):
            total = block.reduce_add(total) / 256.0 + block.exclusive_add(1.0)
        x[i] = total


def test_operations_in_loops(wave):
    x = numbers("float32", 3, 256)
    found = x.ravel().copy()
    in_a_loop(found, 5)
    for _ in range(5):
        x = (tree("add", x) / np.float32(256.0) + np.arange(256, dtype=np.float32)).astype(np.float32)
    same_bits(found.reshape(x.shape), x)


@qp.kernel
def hand_over(x: A(dtype=qp.i32, ndim=1), last: A(dtype=qp.i32, ndim=1), arrived: A(dtype=qp.i32, ndim=1)):
    """The block that comes last adds what all have written."""
    for i in range(x.shape[0]):
        mine = block.reduce_add(i)
        is_last = 0
        if block.thread_idx() == 0:
            x[block.block_idx()] = mine
            grid.mem_fence()
            is_last = qp.atomic_add(arrived[0], 1) == x.shape[0] // 256 - 1
        if block.sync_any_nonzero(is_last):
            grid.memfence()
            if block.thread_idx() == 0:
                total = 0
                for b in range(x.shape[0] // 256):
                    total += qp.atomic_add(x[b], 0)
                last[0] = total


def test_the_device_sees_what_comes_before_a_fence(wave):
    n = 256 * 40
    x, last, arrived = np.zeros(n, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    hand_over(x, last, arrived)
    assert last[0] == n * (n - 1) // 2


FULL = 0xFFFFFFFF


@qp.kernel(wave_size=32)
def warps(x: A(dtype=qp.f32, ndim=1), y: A(dtype=qp.f32, ndim=2), z: A(dtype=qp.u32, ndim=2)):
    for i in range(x.shape[0]):
        mask = qp.u32(FULL)
        y[0, i] = warp.shfl_sync_f32(mask, x[i], 3)
        y[1, i] = warp.shfl_up_f32(mask, x[i], 1)
        y[2, i] = warp.shfl_down_f32(warp.active_mask(), x[i], 16)
        y[3, i] = warp.shfl_xor_f32(mask, x[i], 2)
        y[4, i] = warp.shfl_sync_i32(mask, x[i], 3)
        y[5, i] = warp.shfl_down_i32(mask, i, 2)
        y[6, i] = warp.all_nonzero(mask, x[i] > -100.0) + 2 * warp.any_nonzero(mask, x[i] > 100.0)
        y[7, i] = warp.unique(mask, i // 64)
        warp.sync(mask)
        z[0, i] = warp.ballot(x[i] > 0)
        z[1, i] = warp.match_any(mask, i // 3)
        z[2, i] = warp.match_all(mask, i // 32)
        z[3, i] = warp.active_mask()


def test_taichis_names_for_warps(arch):
    if arch == "amdgpu":
        pytest.skip("not every AMD GPU has waves of 32")
    x = numbers("float32", 8, 32)
    y, z = np.zeros((8, x.size), np.float32), np.zeros((4, x.size), np.uint32)
    warps(x.ravel(), y, z)
    y, z = y.reshape(8, *x.shape), z.reshape(4, *x.shape)
    of = lambda n: np.full(x.shape, n)  # noqa: E731  (shorter than a function)
    i = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    assert (y[0] == x[:, 3:4]).all()
    assert (y[1] == oracle.shuffle_up(x, of(1))).all()
    assert (y[2] == oracle.shuffle_down(x, of(16))).all()
    assert (y[3] == oracle.shuffle_xor(x, of(2))).all()
    assert (y[4] == x[:, 3:4].astype(np.int32)).all()
    assert (y[5] == oracle.shuffle_down(i, of(2))).all()
    assert (y[6] == 1 + 2 * (x > 100).any(axis=1, keepdims=True)).all() or (x <= -100).any()
    assert (y[7] == 1).all()
    assert (z[0] == oracle.ballot(x > 0)).all()
    assert (z[1] == oracle.match_any(i // 3)).all()
    assert (z[2] == FULL).all()
    assert (z[3] == FULL).all()


BAD = {
    "x[i] = B.reduce_add(x[i], 128)": (qp.KernelTypeError, "the block has 256 iterations, not 128"),
    "x[i] = B.reduce_add(x[i], 256, 3)": (qp.KernelTypeError, "a scalar type is needed"),
    "x[i] = B.reduce_or(x[i])": (qp.KernelTypeError, "combines integers and truths, not f32"),
    "if i % 2: x[i] = B.reduce_add(x[i])": (qp.KernelSyntaxError, "not reached by all threads"),
    "if B.thread_idx() < 64: x[i] = B.exclusive_add(x[i])": (qp.KernelSyntaxError, "not reached by all threads"),
    "x[i] = B.sync_count()": (qp.KernelTypeError, "sync_count"),
    "x[i] = W.shfl_down_f32(0xFFFF, x[i], 1)": (qp.KernelTypeError, "the mask 0xffff does not name all"),
    "x[i] = W.shfl_down_f32(qp.u32(1), x[i], 1)": (qp.KernelTypeError, "the mask 0x1 does not name all"),
    "G.mem_fence()\n    if x[i] > 0: B.sync()": (qp.KernelSyntaxError, "block.sync"),
}


@pytest.mark.parametrize("line", BAD)
def test_misuse_is_refused_with_its_line(load, line):
    kind, message = BAD[line]
    module = load(
        f"""
        B, W, G = qp.simt.block, qp.simt.warp, qp.simt.grid
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in range(x.shape[0]):
                {line.replace(chr(10), chr(10) + " " * 12)}
        """
    )
    with pytest.raises(kind, match=message) as caught:
        module.k(np.zeros(256, np.float32))
    assert caught.value.span.line >= 7


def test_blocks_are_whole():
    with pytest.raises(qp.ArgumentError, match=r"300 iterations.*whole blocks of 128"):
        votes(np.zeros(300, np.int32), np.zeros((4, 300), np.int32))


@qp.kernel
def of_small_blocks(x: A(dtype=qp.i32, ndim=1), y: A(dtype=qp.u64, ndim=2), size: qp.template()):
    qp.loop_config(block_dim=size)
    for i in range(x.shape[0]):
        y[0, i] = subgroup.ballot(x[i] > 0)
        y[1, i] = qp.u64(subgroup.group_size() + 100 * subgroup.num_subgroups())
        y[2, i] = qp.u64(subgroup.reduce_add(x[i]))
        y[3, i] = qp.u64(subgroup.exclusive_add(x[i]))
        y[4, i] = qp.u64(subgroup.shuffle_down(x[i], 3))
        y[5, i] = qp.u64(subgroup.all_true(x[i] < 99) + 2 * subgroup.any_true(x[i] == 98))
        y[6, i] = qp.u64(subgroup.broadcast(x[i], size - 1) + 1000 * qp.simt.block.reduce_max(x[i]))
        y[7, i] = subgroup.match_any(x[i] % 4) + qp.u64(subgroup.shuffle_xor(x[i], size // 2))
        y[8, i] = qp.u64(subgroup.inclusive_max(x[i]))
        y[9, i] = qp.u64(subgroup.shuffle_up(x[i], 5))
        y[10, i] = qp.u64(subgroup.shuffle(x[i], (i + 1) % size))


@pytest.mark.parametrize("size", [16, 32])
def test_a_block_smaller_than_a_wave_is_a_wave(wave, size):
    x = np.random.default_rng(3).integers(0, 99, 96).astype(np.int32)
    x[40] = 98
    y = np.zeros((11, 96), np.uint64)
    of_small_blocks(x, y, size)
    lanes = np.arange(size)
    blocks = zip(x.reshape(-1, size).astype(np.uint64), y.reshape(11, -1, size).transpose(1, 0, 2), strict=True)
    for own, rows in blocks:
        bits = np.uint64(1) << lanes.astype(np.uint64)
        match = [bits[own % 4 == each % 4].sum() for each in own]
        expected = [
            np.full(size, bits[own > 0].sum()), np.full(size, 100 + size), np.full(size, own.sum()), np.cumsum(own) - own,
            own[np.where(lanes + 3 < size, lanes + 3, lanes)], np.full(size, 1 + 2 * (own == 98).any()),
            np.full(size, own[-1] + 1000 * own.max()), match + own[lanes ^ (size // 2)], np.maximum.accumulate(own),
            own[np.where(lanes >= 5, lanes - 5, lanes)], np.roll(own, -1),
        ]  # fmt: skip
        for row, wanted in zip(rows, expected, strict=True):
            assert row.tolist() == wanted.tolist()


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("target", ["sm_70", "sm_90", "gfx90a", "gfx942", "gfx1030:w64", "gfx1100", "gfx1200:w64"])
def test_small_blocks_compile_for_every_wave(target, size):
    code = of_small_blocks.compile(target, size=size)
    assert code.tasks[0].block_dim == size
