"""Shared arrays, barriers, indices of threads and blocks: what kernels make of them, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from emulator import needs_shared_exchanges

import quadpy as qp

block = qp.simt.block
A = qp.types.ndarray
vec3 = qp.types.vector(3, qp.f32)
vec4 = qp.types.vector(4, qp.f32)


@qp.kernel
def numbers(thread: A(), group: A(), overall: A(), size: A()):
    qp.loop_config(block_dim=48)
    for i in range(thread.shape[0]):
        thread[i] = block.thread_idx()
        group[i] = block.block_idx()
        overall[i] = block.global_thread_idx()
        size[i] = block.block_dim()


@pytest.mark.parametrize("n", [0, 1, 48, 100, 1000])
def test_indices(n):
    """Without barriers the last block may have fewer threads."""
    found = [np.zeros(n, np.int32) for _ in range(4)]
    numbers(*found)
    i = np.arange(n)
    for array, expected in zip(found, (i % 48, i // 48, i, np.full(n, 48)), strict=True):
        assert array.tolist() == expected.tolist()


@qp.kernel
def numbers_of_a_plane(thread: A(ndim=2), group: A(ndim=2)):
    qp.loop_config(block_dim=16)
    for i, j in qp.ndrange((1, thread.shape[0]), thread.shape[1]):
        thread[i, j] = block.thread_idx()
        group[i, j] = block.block_idx()


def test_blocks_follow_the_order_of_iterations():
    thread, group = np.full((5, 7), -1, np.int32), np.full((5, 7), -1, np.int32)
    numbers_of_a_plane(thread, group)
    k = np.arange(28).reshape(4, 7)
    assert (thread[1:] == k % 16).all()
    assert (group[1:] == k // 16).all()
    assert (thread[0] == -1).all()


@qp.kernel
def default_size(x: A()):
    for i in range(x.shape[0]):
        x[i] = block.block_dim() * 1000 + block.thread_idx()


def test_a_block_has_256_threads_where_nothing_is_said():
    x = np.zeros(300, np.int32)
    default_size(x)
    assert x.tolist() == [256_000 + i % 256 for i in range(300)]


@qp.kernel
def reverse_blocks(x: A()):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        tile = block.SharedArray(64, x.dtype)
        lane = block.thread_idx()
        tile[lane] = x[i]
        block.sync()
        x[i] = tile[63 - lane]


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.float64, np.bool_]
)
@pytest.mark.parametrize("blocks", [0, 1, 5])
def test_threads_exchange_values(dtype, blocks):
    x = np.arange(64 * blocks).astype(dtype)
    expected = x.reshape(blocks, 64)[:, ::-1].ravel().copy()
    reverse_blocks(x)
    assert (x == expected).all()


@qp.kernel
def reverse_far(x: A(dtype=qp.i32, ndim=1), n: qp.i64):
    """A 64-bit loop: more blocks of iterations than are launched, so that shared arrays are used again."""
    qp.loop_config(block_dim=32)
    for i in range(n):
        tile = block.SharedArray(32, qp.i32)
        tile[block.thread_idx()] = x[i]
        block.sync()
        x[i] = tile[31 - block.thread_idx()] + block.block_idx()


def test_more_blocks_than_are_launched():
    blocks = 4500
    x = np.arange(32 * blocks, dtype=np.int32)
    expected = x.reshape(blocks, 32)[:, ::-1] + np.arange(blocks)[:, None]
    reverse_far(x, x.size)
    assert (x == expected.ravel()).all()


@qp.kernel
def reverse_in_large_tiles(x: A(dtype=qp.f32, ndim=1)):
    """60,000 bytes: more than NVIDIA's code can declare, and less than a block of AMD can have."""
    qp.loop_config(block_dim=250)
    for i in range(x.shape[0]):
        tile = block.SharedArray((2, 3750), qp.f32)
        far = block.SharedArray(7500, qp.i32)
        lane = block.thread_idx()
        for k in range(30):
            n = lane * 30 + k
            tile[n // 3750, n % 3750] = x[i] + k
            far[7499 - n] = n
        block.sync()
        n = far[lane]
        x[i] = tile[n // 3750, n % 3750]


@pytest.mark.parametrize("way", ["calls", "graph"])
def test_shared_memory_that_the_launch_asks_for(way):
    x = np.arange(1000, dtype=np.float32)
    n = 7499 - np.arange(1000) % 250
    expected = x[np.arange(1000) // 250 * 250 + n // 30] + n % 30
    if way == "calls":
        for _ in range(3):  # the later ones take shortcuts
            found = qp.ndarray(qp.f32, 1000)
            found.from_numpy(x)
            reverse_in_large_tiles(found)
            assert (found.to_numpy() == expected).all()
        return
    found = qp.ndarray(qp.f32, 1000)
    with qp.graph.capture() as captured:
        reverse_in_large_tiles(found)
    run = captured.instantiate()
    for _ in range(2):
        found.from_numpy(x)
        run.launch()
        assert (found.to_numpy() == expected).all()


@qp.kernel
def rotate_vectors(x: A(dtype=vec3, ndim=1)):
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        tile = block.SharedArray((2, 16), vec3)
        lane = block.thread_idx()
        tile[lane // 16, lane % 16] = x[i]
        block.sync()
        other = (lane + 1) % 32
        x[i] = tile[other // 16, other % 16].zxy
        x[i].y += tile.shape[0] * 100.0


def test_shared_vectors():
    x = np.arange(64 * 3, dtype=np.float32).reshape(64, 3)
    expected = np.roll(x.reshape(2, 32, 3), -1, axis=1).reshape(64, 3)[:, [2, 0, 1]]
    expected[:, 1] += 200
    rotate_vectors(x)
    assert (x == expected).all()


TILE = 16


@qp.kernel
def matmul(a: A(dtype=qp.f32, ndim=2), b: A(dtype=qp.f32, ndim=2), c: A(dtype=qp.f32, ndim=2)):
    qp.loop_config(block_dim=TILE * TILE)
    for _ in range(c.shape[0] * c.shape[1]):
        of_a = block.SharedArray((TILE, TILE), qp.f32)
        of_b = block.SharedArray((TILE, TILE), qp.f32)
        across = c.shape[1] // TILE
        i, j = block.thread_idx() // TILE, block.thread_idx() % TILE
        row = block.block_idx() // across * TILE + i
        column = block.block_idx() % across * TILE + j
        total = 0.0
        for step in range(a.shape[1] // TILE):
            of_a[i, j] = a[row, step * TILE + j]
            of_b[i, j] = b[step * TILE + i, column]
            block.sync()
            for k in range(TILE):
                total += of_a[i, k] * of_b[k, j]
            block.sync()
        c[row, column] = total


def in_order(a, b):
    """The product, each element summed in the order of the inner index, in f32."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def test_matrix_product_by_tiles():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((32, 80), np.float32), rng.standard_normal((80, 48), np.float32)
    c = np.full((32, 48), np.nan, np.float32)
    matmul(a, b, c)
    assert (c == in_order(a, b)).all()


EDGE, DEPTH, PART = 32, 8, 4


@qp.kernel
def matmul_registers(a: A(dtype=qp.f32, ndim=2), b: A(dtype=qp.f32, ndim=2), c: A(dtype=qp.f32, ndim=2)):
    """Each thread makes PART x PART elements of its block's tile."""
    qp.loop_config(block_dim=64)
    for t in range(c.shape[0] // PART * (c.shape[1] // PART)):
        of_a = block.SharedArray((DEPTH, EDGE), qp.f32)
        of_b = block.SharedArray((DEPTH, EDGE), qp.f32)
        lane, group = t % 64, t // 64
        across = c.shape[1] // EDGE
        top, left = group // across * EDGE, group % across * EDGE
        i, j = lane // 8 * PART, lane % 8 * PART
        total = qp.Matrix.zero(qp.f32, PART, PART)
        for step in range(a.shape[1] // DEPTH):
            for k in qp.static(range(4)):
                of_a[lane % 2 * 4 + k, lane // 2] = a[top + lane // 2, step * DEPTH + lane % 2 * 4 + k]
                of_b[lane // 8, lane % 8 * 4 + k] = b[step * DEPTH + lane // 8, left + lane % 8 * 4 + k]
            block.sync()
            for k in range(DEPTH):
                u = qp.Vector([of_a[k, i + m] for m in range(PART)])
                v = qp.Vector([of_b[k, j + m] for m in range(PART)])
                for m, n in qp.static(qp.ndrange(PART, PART)):
                    total[m, n] += u[m] * v[n]
            block.sync()
        for m, n in qp.static(qp.ndrange(PART, PART)):
            c[top + i + m, left + j + n] = total[m, n]


def test_matrix_product_in_registers():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((64, 40), np.float32), rng.standard_normal((40, 96), np.float32)
    c = np.full((64, 96), np.nan, np.float32)
    matmul_registers(a, b, c)
    assert (c == in_order(a, b)).all()


@qp.kernel
def attract(position: A(dtype=vec4, ndim=1), acceleration: A(dtype=vec4, ndim=1)):
    qp.loop_config(block_dim=64)
    for i in range(position.shape[0]):
        tile = block.SharedArray(64, vec4)
        p = position[i]
        total = qp.Vector([0.0, 0.0, 0.0])
        for t in range(position.shape[0] // 64):
            tile[block.thread_idx()] = position[t * 64 + block.thread_idx()]
            block.sync()
            for j in range(64):
                q = tile[j]
                d = q.xyz - p.xyz
                inverse = 1.0 / qp.sqrt(d.dot(d) + 0.01)
                total += d * (q.w * inverse * inverse * inverse)
            block.sync()
        acceleration[i] = [total.x, total.y, total.z, 0.0]


def test_bodies_by_tiles():
    rng = np.random.default_rng(3)
    position = rng.random((192, 4), np.float32)
    acceleration = np.zeros_like(position)
    attract(position, acceleration)
    p = position.astype(np.float64)
    d = p[None, :, :3] - p[:, None, :3]
    expected = (d * (p[None, :, 3] / ((d * d).sum(2) + 0.01) ** 1.5)[..., None]).sum(1)
    assert np.allclose(acceleration[:, :3], expected, rtol=1e-4, atol=1e-4)


@pytest.fixture
def exchanges(arch):
    """For tests that the emulator of gfx9 would fail."""
    needs_shared_exchanges(arch)


BINS = 128


@qp.kernel
def histogram(keys: A(dtype=qp.i32, ndim=1), counts: A(dtype=qp.i32, ndim=1), workers: qp.i32):
    qp.loop_config(block_dim=BINS)
    for t in range(workers):
        bins = block.SharedArray(BINS, qp.i32)
        lane = block.thread_idx()
        bins[lane] = 0
        block.sync()
        for i in range((keys.shape[0] - t + workers - 1) // workers):
            bins[keys[t + i * workers]] += 1
        block.sync()
        qp.atomic_add(counts[lane], bins[lane])


def test_histogram_by_blocks():
    keys = np.random.default_rng(4).integers(0, BINS, 5000, np.int32)
    counts = np.zeros(BINS, np.int32)
    histogram(keys, counts, 3 * BINS)
    assert counts.tolist() == np.bincount(keys, minlength=BINS).tolist()


@qp.kernel
def block_sums(x: A(dtype=qp.f32, ndim=1), sums: A(dtype=qp.f32, ndim=1)):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        part = block.SharedArray(block.block_dim(), qp.f32)
        lane = block.thread_idx()
        part[lane] = x[i]
        half = block.block_dim() // 2
        while half > 0:
            block.sync()
            if lane < half:
                part[lane] = part[lane] + part[lane + half]
            half //= 2
        if lane > 0:
            continue
        sums[block.block_idx()] = part[0]


def test_sums_of_blocks():
    x = np.random.default_rng(5).random(128 * 6, np.float32)
    sums = np.zeros(6, np.float32)
    block_sums(x, sums)
    parts = x.reshape(6, 128)
    while parts.shape[1] > 1:
        half = parts.shape[1] // 2
        parts = parts[:, :half] + parts[:, half:]
    assert (sums == parts[:, 0]).all()


@qp.func
def scanned(value, lane):
    """The sum of the values of this block's threads up to this one."""
    held = block.SharedArray(64, qp.i32)
    mine = value
    for k in range(6):
        held[lane] = mine
        block.sync()
        if lane >= 1 << k:
            mine += held[lane - (1 << k)]
        block.sync()
    return mine


@qp.kernel
def scan_twice(x: A(dtype=qp.i32, ndim=1)):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        once = scanned(x[i], block.thread_idx())
        x[i] = scanned(once, block.thread_idx()) - once


def test_functions_with_barriers():
    x = np.random.default_rng(6).integers(-9, 9, 256, np.int32)
    once = np.cumsum(x.reshape(4, 64), axis=1)
    expected = np.cumsum(once, axis=1) - once
    scan_twice(x)
    assert (x == expected.ravel()).all()


@qp.kernel
def smooth(x: A(dtype=qp.f32, ndim=1), y: A(dtype=qp.f32, ndim=1), padded: qp.i32):
    """Tiles with a margin; the last block is cut by hand."""
    qp.loop_config(block_dim=32)
    for i in range(padded):
        tile = block.SharedArray(34, qp.f32)
        lane, last = block.thread_idx(), x.shape[0] - 1
        tile[lane + 1] = x[qp.min(i, last)]
        if lane == 0:
            tile[0] = x[qp.max(i - 1, 0)]
        if lane == 31:
            tile[33] = x[qp.min(i + 1, last)]
        block.sync()
        if i <= last:
            y[i] = tile[lane] + tile[lane + 1] + tile[lane + 2]


def test_tiles_with_a_margin():
    x = np.arange(75, dtype=np.float32) ** 2
    y = np.zeros(75, np.float32)
    smooth(x, y, 96)
    padded = np.concatenate([x[:1], x, x[-1:]])
    assert (y == padded[:-2] + padded[1:-1] + padded[2:]).all()


@qp.kernel
def uniform_ways(x: A(dtype=qp.i32, ndim=1), limits: A(dtype=qp.i32, ndim=1), rounds: qp.i32, on: qp.u1):
    """Barriers where parameters, the block's number, counters and arrays that are only read decide."""
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        held = block.SharedArray(32, qp.i32)
        lane, group = block.thread_idx(), block.block_idx()
        if group == 3:
            continue
        value = x[i]
        if on:
            for r in range(rounds):
                if r == limits[group]:
                    break
                if r % 2 == 1:
                    continue
                held[lane] = value
                block.sync()
                value += held[(lane + 1) % 32]
                block.sync()
        else:
            k = 0
            while k < limits[group]:
                held[lane] = value
                block.sync()
                value = held[(lane + k) % 32]
                block.sync()
                k += 1
        x[i] = value


@pytest.mark.parametrize("on", [True, False])
def test_barriers_in_uniform_control_flow(on):
    limits, rounds = np.array([0, 1, 4, 9, 9], np.int32), 6
    x = np.random.default_rng(7).integers(0, 1000, 160, np.int32)
    expected = x.reshape(5, 32).copy()
    for group, limit in enumerate(limits):
        if group == 3:
            continue
        for r in range(min(limit, rounds) if on else limit):
            if on and r % 2 == 0:
                expected[group] += np.roll(expected[group], -1)
            elif not on:
                expected[group] = np.roll(expected[group], -r)
    uniform_ways(x, limits, rounds, on)
    assert (x == expected.ravel()).all()


@qp.kernel
def atomics(x: A(), old: A(), out: A()):
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        place = block.SharedArray(6, x.dtype)
        lane = block.thread_idx()
        if lane < 6:
            place[lane] = 7
        block.sync()
        qp.atomic_min(place[0], x[i])
        qp.atomic_max(place[1], x[i])
        place[2] += 1
        place[3] -= 2
        old[i] = qp.atomic_add(place[4], 1)
        if lane == 0:
            old[i] += qp.atomic_exchange(place[5], 3)
        block.sync()
        if lane < 6:
            out[block.block_idx(), lane] = place[lane]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.uint32, np.int64, np.float32, np.float64])
def test_atomics_on_shared_arrays(dtype, request):
    if dtype in (np.int16, np.float32):  # GPUs have no instructions for these, but those that compare and swap
        request.getfixturevalue("exchanges")
    x = np.random.default_rng(8).permutation(64).astype(dtype)
    old, out = np.zeros(64, dtype), np.zeros((2, 6), dtype)
    atomics(x, old, out)
    for b in range(2):
        part = x[32 * b : 32 * b + 32]
        wraps = dtype(7 - 64) if np.dtype(dtype).kind != "u" else np.array(7 - 64).astype(dtype)
        assert out[b].tolist() == [min(part.min(), 7), max(part.max(), 7), 39, wraps, 39, 3]
        returned = old[32 * b : 32 * b + 32].copy()
        returned[0] -= 7
        assert sorted(returned.tolist()) == list(range(7, 39))


@qp.kernel
def bits_and_swaps(out: A(dtype=qp.u32, ndim=2)):
    qp.loop_config(block_dim=32)
    for _ in range(32):
        place = block.SharedArray(5, qp.u32)
        lane = block.thread_idx()
        if lane == 0:
            place[0] = 0
            place[1] = 0xFFFFFFFF
            place[2] = 0
            place[3] = 1
            place[4] = 0
        block.sync()
        place[0] |= qp.u32(1) << qp.u32(lane)
        place[1] &= ~(qp.u32(1) << qp.u32(lane))
        place[2] ^= qp.u32(3)
        if lane < 4:
            place[3] *= qp.u32(3)
        if qp.atomic_cas(place[4], 0, qp.u32(lane + 1)) == 0:
            out[1, 0] = qp.u32(lane + 1)
        block.sync()
        if lane < 5:
            out[0, lane] = place[lane]


@pytest.mark.usefixtures("exchanges")
def test_more_atomics_on_shared_arrays():
    out = np.zeros((2, 5), np.uint32)
    bits_and_swaps(out)
    assert out[0, :4].tolist() == [0xFFFFFFFF, 0, 0, 81]
    assert out[0, 4] == out[1, 0] > 0


@qp.kernel
def two_loops(x: A(dtype=qp.i32, ndim=1), y: A(dtype=qp.i32, ndim=1)):
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        held = block.SharedArray(32, qp.i32)
        held[block.thread_idx()] = x[i]
        block.sync()
        x[i] = held[31 - block.thread_idx()]
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    qp.loop_config(block_dim=16)
    for i in range(x.shape[0]):
        held = block.SharedArray(16, qp.i32)
        held[block.thread_idx()] = y[i]
        block.mem_fence()
        block.sync()
        y[i] = held[15 - block.thread_idx()]


def test_loops_with_their_own_blocks():
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    two_loops(x, y)
    expected = np.arange(64).reshape(2, 32)[:, ::-1].ravel()
    assert (x == expected).all()
    assert (y == 2 * expected.reshape(4, 16)[:, ::-1].ravel()).all()


@qp.kernel
def through_global_memory(x: A(dtype=qp.i32, ndim=1)):
    """A barrier orders what a block writes to global memory, too."""
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        x[i] = i * 3
        block.sync()
        other = x[i - block.thread_idx() + 63 - block.thread_idx()]
        block.sync()
        x[i] = other


def test_barriers_order_global_memory():
    x = np.zeros(192, np.int32)
    through_global_memory(x)
    assert (x == 3 * np.arange(192).reshape(3, 64)[:, ::-1].ravel()).all()


@qp.kernel
def draw(x: A(dtype=qp.f32, ndim=1)):
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        held = block.SharedArray(32, qp.f32)
        held[block.thread_idx()] = qp.random()
        block.sync()
        x[i] = held[block.thread_idx()] + qp.random()


@qp.kernel
def draw_alone(x: A(dtype=qp.f32, ndim=1)):
    for i in range(x.shape[0]):
        first = qp.random()
        x[i] = first + qp.random()


def test_random_numbers_do_not_depend_on_barriers(init):
    found = []
    for kernel in (draw, draw_alone):
        init(random_seed=5)
        x = np.zeros(96, np.float32)
        kernel(x)
        found.append(x)
    assert (found[0] == found[1]).all()


# ------------------------------------------------------------------------ errors


def test_part_of_a_block_is_refused():
    x = np.zeros(100, np.int32)
    with pytest.raises(qp.ArgumentError, match=r"100 iterations.*whole blocks of 64") as caught:
        reverse_blocks(x)
    assert "128" in caught.value.hint
    assert not x.any()


MISSED = [
    "if x[i] > 0:\n    B.sync()",
    "if lane < 3:\n    x[i] = 1\nelse:\n    B.sync()",
    "for k in range(i):\n    B.sync()",
    "while x[i] > 0:\n    B.sync()",
    "if i > 3:\n    continue\nB.sync()",
    "for k in range(4):\n    if lane == k:\n        break\n    B.sync()",
    "for k in range(4):\n    B.sync()\n    if lane == k:\n        continue\n    x[i] = k",
    "n = 0\nif lane == 1:\n    n = 1\nfor k in range(n):\n    B.sync()",
    "x[i] = pick(lane)",
    "held = B.SharedArray(4, qp.i32)\nif held[0] > 0:\n    B.sync()",
    "for k in range(2):\n    B.sync()\n    x[i] = k\n    if x[0] > 1:\n        continue",
    "for k in range(2):\n    for m in range(3):\n        if lane > m:\n            continue\n        B.sync()",
]
HEAD = """B = qp.simt.block
@qp.func
def pick(lane):
    if lane > 2:
        return 1
    B.sync()
    return 2
@qp.kernel
def k(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
"""


@pytest.mark.parametrize("body", MISSED)
def test_a_barrier_that_some_threads_miss_is_refused(load, body):
    lines = "\n        ".join(["for i in range(256):", "lane = B.thread_idx()", *body.splitlines()])
    module = load(f"{HEAD}    {lines}\n")
    with pytest.raises(qp.KernelSyntaxError, match=r"not reached by all threads of a block") as caught:
        module.k(np.zeros(256, np.int32))
    assert "block_idx()" in caught.value.hint
    assert caught.value.span is not None


@qp.kernel
def by_number_of_the_block(x: A(ndim=1), opened: A(ndim=1)):
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        tile = block.SharedArray(32, qp.i32)
        if opened[i // 32] > 0 and opened[i // 64] < 5:
            tile[i % 32] = x[i]
            block.sync()
            x[i] = tile[31 - i % 32]


def test_the_number_of_a_block_is_uniform():
    x, opened = np.arange(128, dtype=np.int32), np.array([1, 7, 0, 1], np.int32)
    by_number_of_the_block(x, opened)  # blocks 2 and 3 ask for element 1 as well, which is too large
    assert x.tolist() == [*range(31, -1, -1), *range(63, 31, -1), *range(64, 128)]


@pytest.mark.parametrize("loop", ["range(1, 257)", "range(0, 512, 2)"])
@pytest.mark.parametrize("number", ["i // 256", "i // 128", "i // -256", "(i + 1) // 256"])
def test_other_quotients_are_not(load, loop, number):
    if loop != "range(1, 257)":
        number = number.replace("256", "512")
    module = load(f"{HEAD}    for i in {loop}:\n        if x[{number}] > 0:\n            B.sync()\n")
    with pytest.raises(qp.KernelSyntaxError, match="not reached by all threads of a block"):
        module.k(np.zeros(256, np.int32))


BAD = {
    "B.sync()\n    for i in x: x[i] = 1": (qp.KernelSyntaxError, "can only be called inside a parallel loop"),
    "t = B.SharedArray(4, qp.f32)\n    for i in x: x[i] = 1": (qp.KernelSyntaxError, "parallel loop"),
    "qp.loop_config(serialize=True)\n    for i in x: B.sync()": (qp.KernelSyntaxError, "parallel loop"),
    "for i in x: t = B.SharedArray(x.shape[0], qp.f32)": (qp.KernelTypeError, "known at compile time"),
    "for i in x: t = B.SharedArray((4, 0), qp.f32)": (qp.KernelTypeError, "positive integers"),
    "for i in x: t = B.SharedArray((), qp.f32)": (qp.KernelTypeError, "positive integers"),
    "for i in x: t = B.SharedArray(2.5, qp.f32)": (qp.KernelTypeError, "2.5"),
    "for i in x: t = B.SharedArray(4, 7)": (qp.KernelTypeError, "dtype of a SharedArray"),
    "for i in x: t = B.SharedArray(4)": (qp.KernelTypeError, "dtype"),
    "for i in x:\n        t = B.SharedArray(4, qp.f32)\n        x[i] = qp.i32(t[0, 0])": (qp.KernelTypeError, "2 indices"),
    "n = x[0]\n    for i in range(n): B.sync()": (qp.KernelTypeError, "must follow from arguments"),
    "for i in x:\n        t = B.SharedArray(600000, qp.f32)\n        t[0] = 1.0\n        x[i] = qp.i32(t[0])":
        (qp.CodegenError, "2400000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("body", BAD)
def test_misuse_is_refused(load, body):
    module = load(f"B = qp.simt.block\n@qp.kernel\ndef k(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):\n    {body}\n")
    error, text = BAD[body]
    with pytest.raises(error, match=text) as caught:
        module.k(np.zeros(256, np.int32))
    assert caught.value.span is not None


def test_outside_of_kernels():
    with pytest.raises(qp.KernelSyntaxError, match="inside kernels only"):
        block.sync()


# ------------------------------------------------------------- what outlives a barrier


@qp.func
def clipped(value, limit):
    """Leaves early, in some threads; no barrier is inside."""
    if value > limit:
        return limit
    for k in range(value):
        if k * k > value:
            return k
    return value


@qp.func
def rounds_of(held, lane, value, rounds):
    """Leaves early, with all threads of a block."""
    if rounds == 0:
        return value
    held[lane] = value
    block.sync()
    if rounds == 1:
        return held[31 - lane]
    result = held[31 - lane] + held[lane]
    block.sync()
    return result


@qp.kernel
def carried(x: A(dtype=qp.i32, ndim=1), rounds: qp.i32, out: A(dtype=qp.f64, ndim=2)):
    """Values of every kind are bound before a barrier and used after it, in a loop and behind it."""
    qp.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        held = block.SharedArray(32, qp.i32)
        lane = block.thread_idx()
        pair = qp.Vector([x[i], i])
        odd = x[i] % 2 == 1
        wave = qp.sin(qp.f32(x[i]))
        last = 0
        total = 0
        for r in range(rounds):
            small = clipped(x[i] + r, 20)
            total += last
            held[lane] = small
            block.sync()
            if r > 0:
                total += held[(lane + r) % 32]
                block.sync()
                last = total % 7
            else:
                last = small
            pair = pair + qp.Vector([1, last])
            block.sync()
        returned = rounds_of(held, lane, total, rounds % 3)
        block.sync()
        k = 0
        while k < lane:
            k += 1 + x[i] % 2
        held[lane] = k
        block.sync()
        out[i, 0] = pair.x * 1000 + pair.y
        out[i, 1] = wave if odd else -wave
        out[i, 2] = total
        out[i, 3] = returned
        out[i, 4] = held[31 - lane]


def clipped_on_host(value, limit):
    if value > limit:
        return limit
    return next((k for k in range(value) if k * k > value), value)


def carried_on_host(x, rounds):
    rows = []
    for start in range(0, len(x), 32):
        mine = [int(v) for v in x[start : start + 32]]
        total, last, pair = [0] * 32, [0] * 32, [[v, start + n] for n, v in enumerate(mine)]
        for r in range(rounds):
            held = [clipped_on_host(v + r, 20) for v in mine]
            for n in range(32):
                total[n] += last[n]
                if r > 0:
                    total[n] += held[(n + r) % 32]
                    last[n] = total[n] % 7
                else:
                    last[n] = held[n]
                pair[n] = [pair[n][0] + 1, pair[n][1] + last[n]]
        ends = {0: total, 1: total[::-1], 2: [a + b for a, b in zip(total, total[::-1], strict=True)]}[rounds % 3]
        steps = [-(-n // (1 + v % 2)) * (1 + v % 2) for n, v in enumerate(mine)][::-1]
        rows += [(p * 1000 + q, t, e, s) for (p, q), t, e, s in zip(pair, total, ends, steps, strict=True)]
    return np.array(rows, np.float64)


@pytest.mark.parametrize("rounds", range(5))
def test_values_outlive_barriers(rounds):
    x = np.random.default_rng(9).integers(0, 30, 96, np.int32)
    out = np.full((96, 5), np.nan)
    carried(x, rounds, out)
    assert (out[:, [0, 2, 3, 4]] == carried_on_host(x, rounds)).all()
    assert np.allclose(out[:, 1], np.where(x % 2 == 1, 1, -1) * np.sin(x), atol=1e-6)
