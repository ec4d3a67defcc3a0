"""Tiles and segments of waves, and reductions and scans of blocks by functions: against an oracle, on every backend."""

from __future__ import annotations

import re

import numpy as np
import pytest
import wave_oracle as oracle
from emulator import needs_waves_of

import quadpy as qp

block, subgroup = qp.simt.block, qp.simt.subgroup
A = qp.types.ndarray


@pytest.fixture(params=[32, 64])
def size(request, init, arch):
    """Each size of a wave that the backend has."""
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


def numbers(dtype, count, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 4, count)).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype, endpoint=True)


def bits(x):
    return x.view(f"u{x.itemsize}").tolist()


def tiled(op, log2):
    kinds = ("reduce", "inclusive", "exclusive")
    names = [f"subgroup.{kind}_{op}_tiled(x[i], {log2})" for kind in kinds]
    heads = [
        f"subgroup.segmented_reduce_{op}_tiled(x[i], head[i] != 0, {log2})",
        f"subgroup.segmented_reduce_{op}(x[i], head[i])",
    ]
    lines = "\n".join(f"        out[{k}, i] = {call}" for k, call in enumerate(names + heads))
    return (
        "subgroup = qp.simt.subgroup\n@qp.kernel\n"
        "def k(x: qp.types.ndarray(ndim=1), head: qp.types.ndarray(dtype=qp.i32, ndim=1), out: qp.types.ndarray(ndim=2)):\n"
        f"    qp.loop_config(block_dim=64)\n    for i in x:\n{lines}\n"
    )


def segments(op, x, head, lanes):
    """The running totals of each segment, by doubling distances, in rows of ``lanes``."""
    x, head = x.reshape(-1, lanes).copy(), head.reshape(-1, lanes)
    lane = np.arange(lanes)
    first = np.maximum.accumulate(np.where(head != 0, lane, 0), axis=1)
    distance = 1
    while distance < lanes:
        below = np.concatenate([x[:, :distance], x[:, :-distance]], axis=1)
        x = np.where(lane - first >= distance, oracle.combined(op, x, below), x)
        distance *= 2
    return x.reshape(-1)


@pytest.mark.parametrize(("op", "dtype", "log2"), [
    ("add", np.float32, 3), ("max", np.int8, 2), ("and", np.uint32, 1), ("mul", np.float64, 4),
])  # fmt: skip
def test_tiles_and_segments(op, dtype, log2, size, load):
    x, out = numbers(dtype, 256), np.zeros((5, 256), dtype)
    head = (np.random.default_rng(2).random(256) < 0.2).astype(np.int32)
    load(tiled(op, log2)).k(x, head, out)
    rows = x.reshape(-1, 1 << log2)
    assert bits(out[0]) == bits(oracle.reduce(op, rows).reshape(-1))
    assert bits(out[1]) == bits(oracle.inclusive(op, rows).reshape(-1))
    assert bits(out[2]) == bits(oracle.exclusive(op, rows).reshape(-1))
    assert bits(out[3]) == bits(segments(op, x, head, 1 << log2))
    assert bits(out[4]) == bits(segments(op, x, head, size))


@qp.kernel
def of_vectors(
    v: A(dtype=qp.types.vector(2, qp.f32), ndim=1),
    out: A(dtype=qp.types.vector(2, qp.f32), ndim=1),
    truths: A(qp.i32, 1),
):
    qp.loop_config(block_dim=64)
    for i in v:
        out[i] = subgroup.reduce_all_add_tiled(v[i], 2)
        truths[i] = subgroup.inclusive_add_tiled(v[i].x > 1.5, 3)


def test_vectors_and_truths(size):
    v, truths = np.arange(128, dtype=np.float32).reshape(64, 2), np.zeros(64, np.int32)
    out = np.zeros_like(v)
    of_vectors(v, out, truths)
    assert out.tolist() == np.repeat(v.reshape(16, 4, 2).sum(1), 4, axis=0).tolist()
    assert truths.tolist() == np.cumsum((v[:, 0] > 1.5).reshape(8, 8), axis=1).reshape(-1).tolist()


@pytest.mark.parametrize(("call", "message"), [
    ("reduce_add_tiled(x[i], 7)", "log2_size must be an integer from 0 to {most} that is known at compile time, not 7"),
    ("inclusive_max_tiled(x[i], i)", "log2_size must be an integer from 0 to {most} that is known at compile time, not i32"),
    ("reduce_and_tiled(x[i], 2)", "and combines integers and truths, not f32"),
    ("segmented_reduce_add(x[i])", "segmented_reduce_add"),
])  # fmt: skip
def test_tiles_that_do_not_exist(call, message, size, load):
    message = message.format(most=size.bit_length() - 1)
    module = load(
        "@qp.kernel\ndef k(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):\n    qp.loop_config(block_dim=64)\n    for i in x:\n"
        f"        x[i] = qp.simt.subgroup.{call}\n"
    )
    with pytest.raises(qp.KernelTypeError, match=re.escape(message)) as caught:
        module.k(np.zeros(64, np.float32))
    assert ":7:" in str(caught.value)


# --------------------------------------------------------------- functions of the user's


Best = qp.types.struct(value=qp.f32, at=qp.i32)


@qp.func
def better(a, b):
    """The greater one; of equal ones the first."""
    found = a
    if b.value > a.value:
        found = b
    return found


@qp.func
def after(f, g):
    """The map x -> g(f(x)) of two maps x -> a x + b: associative, but in this order only."""
    return qp.Vector([g[0] * f[0], g[0] * f[1] + g[1]])


@qp.kernel
def by_functions(
    x: A(qp.f32, 1), f: A(dtype=qp.types.vector(2, qp.i64), ndim=1), n: qp.template(), best: A(qp.f32, 2),
    maps: A(dtype=qp.types.vector(2, qp.i64), ndim=2), low: A(qp.f64, 1),
):  # fmt: skip
    qp.loop_config(block_dim=n)
    for i in x:
        found = block.reduce(Best(x[i], i), n, better)
        best[i, 0] = found.value
        best[i, 1] = found.at
        maps[0, i] = block.reduce_all(f[i], n, after)
        maps[1, i] = block.inclusive_scan(f[i], n, op=after)
        maps[2, i] = block.exclusive_scan(f[i], n, after, qp.Vector([1, 0]))
        low[i] = block.reduce(x[i], n, min, qp.f64)


@pytest.mark.parametrize("n", [192])
def test_functions_of_blocks(n, size):
    """Structs, maps that do not commute, and built-in functions."""
    x, blocks = np.round(numbers(np.float32, 2 * n, seed=n), 1), 2
    f = np.random.default_rng(n).integers(-3, 4, (2 * n, 2))
    best, maps, low = np.zeros((2 * n, 2), np.float32), np.zeros((3, 2 * n, 2), np.int64), np.zeros(2 * n)
    by_functions(x, f, n, best, maps, low)
    for k in range(blocks):
        here = slice(k * n, (k + 1) * n)
        at = k * n + int(np.argmax(x[here]))
        assert best[here].tolist() == [[x[at], at]] * n
        assert low[here].tolist() == [float(x[here].min())] * n
        total = np.array([1, 0])
        for i in range(k * n, (k + 1) * n):
            assert maps[2, i].tolist() == total.tolist()
            with np.errstate(over="ignore"):
                total = np.array([f[i, 0] * total[0], f[i, 0] * total[1] + f[i, 1]])
            assert maps[1, i].tolist() == total.tolist()
        assert maps[0, here].tolist() == [total.tolist()] * n


@qp.kernel
def sums(x: A(qp.f32, 1), by_name: A(qp.f32, 2), by_function: A(qp.f32, 2)):
    qp.loop_config(block_dim=128)
    for i in x:
        by_name[0, i] = block.reduce_add(x[i])
        by_name[1, i] = block.inclusive_add(x[i])
        by_name[2, i] = block.exclusive_add(x[i])
        by_function[0, i] = block.reduce(x[i], op=lambda a, b: a + b)
        by_function[1, i] = block.inclusive_scan(x[i], op=lambda a, b: a + b)
        by_function[2, i] = block.exclusive_scan(x[i], op=lambda a, b: a + b, identity=0.0)


def test_functions_have_the_bits_of_the_operations(size):
    x = numbers(np.float32, 384)
    found = np.zeros((2, 3, 384), np.float32)
    sums(x, *found)
    assert bits(found[0]) == bits(found[1])


@pytest.mark.parametrize(("call", "message"), [
    ("reduce(x[i])", "op must be a function that combines two values, not NoneType"),
    ("reduce(x[i], 32, max)", "the block has 64 iterations, not 32"),
    ("exclusive_scan(x[i], op=max)", "an exclusive scan needs its identity"),
    ("reduce(x[i], op=lambda a, b: qp.Vector([a, b]))", "f32x2 where one f32 is needed"),
    ("reduce(x[i], op=lambda a: a)", "argument"),
])  # fmt: skip
def test_functions_that_do_not_combine(call, message, load):
    module = load(
        "@qp.kernel\ndef k(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):\n    qp.loop_config(block_dim=64)\n    for i in x:\n"
        f"        x[i] = qp.simt.block.{call}\n"
    )
    with pytest.raises(qp.KernelTypeError, match=re.escape(message)):
        module.k(np.zeros(64, np.float32))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_every_gpu_has_them(target, load):
    module = load(tiled("add", 3))
    given = {"x": A(dtype=qp.f32, ndim=1), "out": A(dtype=qp.f32, ndim=2)}
    assert module.k.compile(target, **given).image


def test_votes_in_tiles(size):
    @qp.kernel
    def run(x: A(dtype=qp.i32, ndim=1), f: A(dtype=qp.f32, ndim=1), out: A(dtype=qp.i32, ndim=2)):
        qp.loop_config(block_dim=64)
        for i in x:
            for k in qp.static(range(6)):
                out[3 * k, i] = subgroup.all_true_tiled(x[i] > 0, k)
                out[3 * k + 1, i] = subgroup.any_true_tiled(x[i], k)
                out[3 * k + 2, i] = subgroup.all_equal_tiled([x[i], f[i]], k)
            out[18, i] = subgroup.ballot_full_subgroup(x[i] > 0) == subgroup.ballot(x[i] > 0)

    x = np.repeat(np.random.default_rng(1).integers(0, 3, 32), 4).astype(np.int32)
    f = np.where(np.arange(128) < 64, np.float32("nan"), np.arange(128) // 16).astype(np.float32)
    out = np.zeros((19, 128), np.int32)
    run(x, f, out)
    for k in range(6):
        tiles, pairs = x.reshape(-1, 1 << k), np.stack([x, f.view(np.int32)], 1).reshape(-1, 1 << k, 2)
        for row, expected in enumerate([(tiles > 0).all(1), (tiles > 0).any(1), (pairs == pairs[:, :1]).all((1, 2))]):
            np.testing.assert_array_equal(
                out[3 * k + row].reshape(tiles.shape), np.broadcast_to(expected[:, None], tiles.shape)
            )
    assert out[18].all()


@pytest.mark.parametrize(("key", "value"), [("f32", "i32"), ("i64", "f64"), ("u8", "u64")])
def test_pairs_are_sorted_in_waves_and_tiles(load, size, key, value):
    k = load(f"""
        @qp.kernel
        def k(x: qp.types.ndarray(ndim=1), y: qp.types.ndarray(ndim=1), keys: qp.types.ndarray(ndim=2), values: qp.types.ndarray(ndim=2)):
            qp.loop_config(block_dim=64)
            for i in x:
                keys[0, i], values[0, i] = qp.simt.subgroup.bitonic_sort_kv(x[i], y[i])
                for n in qp.static(range({size.bit_length()})):
                    keys[n + 1, i], values[n + 1, i] = qp.simt.subgroup.bitonic_sort_kv_tiled(x[i], y[i], n)
    """).k
    rng = np.random.default_rng(2)
    named = lambda name: np.dtype({"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:])  # noqa: E731 - a shorthand
    x, y = rng.integers(0, 9, 128).astype(named(key)), rng.integers(0, 5, 128).astype(named(value))
    keys, values = np.zeros((size.bit_length() + 1, 128), x.dtype), np.zeros((size.bit_length() + 1, 128), y.dtype)
    k(x, y, keys, values)
    for row, lanes in enumerate([size, *(1 << n for n in range(size.bit_length()))]):
        pairs = [
            pair
            for at in range(0, 128, lanes)
            for pair in sorted(zip(x[at : at + lanes], y[at : at + lanes], strict=True))
        ]
        assert [*zip(keys[row], values[row], strict=True)] == pairs


def test_ranks_of_digits_in_a_block(size):
    @qp.kernel
    def run(key: A(dtype=qp.u32, ndim=1), rank: A(dtype=qp.i32, ndim=1), counts: A(dtype=qp.i32, ndim=2)):
        qp.loop_config(block_dim=256)
        for i in key:
            bins, before = block.SharedArray((256,), qp.i32), block.SharedArray((256,), qp.i32)
            rank[i] = block.radix_rank_match_atomic_or(key[i], 256, 8, 4, 6, bins, before)
            counts[0, i], counts[1, i] = bins[block.thread_idx()], before[block.thread_idx()]

    key = np.random.default_rng(3).integers(0, 1 << 32, 512, dtype=np.uint32)
    rank, counts = np.zeros(512, np.int32), np.zeros((2, 512), np.int32)
    run(key, rank, counts)
    for at in (0, 256):
        digits = (key[at : at + 256] >> 4) & 63
        expected = np.empty(256, np.int32)
        expected[np.argsort(digits, kind="stable")] = np.arange(256)
        np.testing.assert_array_equal(rank[at : at + 256], expected)
        found = np.bincount(digits, minlength=256)
        np.testing.assert_array_equal(counts[:, at : at + 256], [found, np.cumsum(found) - found])


def test_blocks_of_other_sizes_have_no_ranks(size):
    @qp.kernel
    def run(key: A(dtype=qp.u32, ndim=1)):
        qp.loop_config(block_dim=128)
        for i in key:
            bins = block.SharedArray((256,), qp.i32)
            key[i] = block.radix_rank_match_atomic_or(key[i], 128, 8, 0, 8, bins, bins)

    with pytest.raises(qp.CompilationError, match="block_dim == 1 << radix_bits"):
        run(np.zeros(256, np.uint32))


def test_the_host_knows_the_lanes_of_waves(size):
    assert (subgroup.group_size(), subgroup.log2_group_size()) == (size, size.bit_length() - 1)

    @qp.kernel
    def run(x: A(dtype=qp.i32, ndim=1), log2: qp.template()):
        qp.loop_config(block_dim=64)
        for i in range(64):
            x[i] = subgroup.reduce_add_tiled(1, log2)

    x = np.zeros(64, np.int32)
    run(x, subgroup.log2_group_size())
    assert (x == size).all()
    with pytest.raises(qp.KernelSyntaxError, match="inside kernels only"):
        subgroup.invocation_id()
