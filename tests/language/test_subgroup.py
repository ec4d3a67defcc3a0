"""``qp.simt.subgroup``: what the lanes of a wave do together, against an oracle, on every backend and for both sizes."""

from __future__ import annotations

import numpy as np
import pytest
import wave_oracle as oracle
from emulator import needs_waves_of

import quadpy as qp

subgroup = qp.simt.subgroup
A = qp.types.ndarray
TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
SIZES = [32, 64]


@pytest.fixture(params=SIZES)
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


def numbers(dtype, waves, size, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = rng.standard_normal((waves, size)) * 10.0 ** rng.integers(-3, 4, (waves, size))
        return x.astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (waves, size), dtype, endpoint=True)


def same_bits(found, expected):
    """NaNs are equal, whatever their payload."""
    assert found.dtype == expected.dtype
    with np.errstate(invalid="ignore"):
        both_nan = (found != found) & (expected != expected)
    equal = found.view(f"u{found.itemsize}") == expected.view(f"u{found.itemsize}")
    bad = np.argwhere(~(equal | both_nan))
    assert not len(bad), (
        f"{len(bad)} differ, first at {bad[0]}: {found[tuple(bad[0])]!r}, not {expected[tuple(bad[0])]!r}"
    )


@qp.kernel
def who(lane: A(ndim=1), wave: A(ndim=1), size: A(ndim=1), log: A(ndim=1), waves: A(ndim=1), first: A(ndim=1)):
    qp.loop_config(block_dim=128)
    for i in range(lane.shape[0]):
        lane[i] = subgroup.invocation_id()
        wave[i] = subgroup.subgroup_id()
        size[i] = subgroup.group_size()
        log[i] = subgroup.log2_group_size()
        waves[i] = subgroup.num_subgroups()
        first[i] = subgroup.elect()


@pytest.mark.parametrize("n", [0, 1, 100, 256])
def test_lanes_know_their_number_in_incomplete_blocks_too(size, n):
    found = [np.full(n, -1, np.int32) for _ in range(6)]
    who(*found)
    i = np.arange(n)
    expected = (i % size, i % 128 // size, size, size.bit_length() - 1, 128 // size, i % size == 0)
    for array, values in zip(found, expected, strict=True):
        assert (array == values).all()


@qp.kernel
def reductions(x: A(ndim=1), y: A(ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = subgroup.reduce_add(x[i])
        y[1, i] = subgroup.reduce_mul(x[i])
        y[2, i] = subgroup.reduce_min(x[i])
        y[3, i] = subgroup.reduce_max(x[i])
        y[4, i] = subgroup.inclusive_add(x[i])
        y[5, i] = subgroup.inclusive_mul(x[i])
        y[6, i] = subgroup.inclusive_min(x[i])
        y[7, i] = subgroup.inclusive_max(x[i])
        y[8, i] = subgroup.exclusive_add(x[i])
        y[9, i] = subgroup.exclusive_mul(x[i])
        y[10, i] = subgroup.exclusive_min(x[i])
        y[11, i] = subgroup.exclusive_max(x[i])


@qp.kernel
def bitwise(x: A(ndim=1), y: A(ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = subgroup.reduce_and(x[i])
        y[1, i] = subgroup.reduce_or(x[i])
        y[2, i] = subgroup.reduce_xor(x[i])
        y[3, i] = subgroup.inclusive_and(x[i])
        y[4, i] = subgroup.inclusive_or(x[i])
        y[5, i] = subgroup.inclusive_xor(x[i])
        y[6, i] = subgroup.exclusive_and(x[i])
        y[7, i] = subgroup.exclusive_or(x[i])
        y[8, i] = subgroup.exclusive_xor(x[i])


KINDS = (oracle.reduce, oracle.inclusive, oracle.exclusive)


def check_combined(kernel, x, ops):
    rows = len(KINDS) * len(ops)
    y = np.zeros((rows, x.size), x.dtype)
    kernel(x.ravel(), y)
    for row, (kind, op) in enumerate((kind, op) for kind in KINDS for op in ops):
        same_bits(y[row].reshape(x.shape), kind(op, x))


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions_and_scans_combine_in_the_documented_order(size, dtype):
    check_combined(reductions, numbers(dtype, 512 // size, size), ("add", "mul", "min", "max"))


@pytest.mark.parametrize("dtype", [*TYPES[:8], "bool"])
def test_bitwise_reductions_and_scans(size, dtype):
    if dtype == "bool":
        x = np.random.default_rng(3).random((512 // size, size)) > [[0.02], [0.98]] * (256 // size)
    else:
        x = numbers(dtype, 512 // size, size)
    check_combined(bitwise, x, ("and", "or", "xor"))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_special_values(size, dtype):
    """NaNs lose against numbers in min and max; zeros keep their signs; infinities cancel to NaN."""
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, np.finfo(dtype).tiny / 2], dtype)
    x = np.random.default_rng(5).choice(special, (512 // size, size), p=[0.3, 0.4, 0.1, 0.05, 0.05, 0.05, 0.05])
    x[0] = np.nan
    x[1] = -0.0
    y = np.zeros((12, x.size), x.dtype)
    reductions(x.ravel(), y)
    for row, op in ((0, "add"), (1, "mul")):
        same_bits(y[row].reshape(x.shape), oracle.reduce(op, x))
    same_bits(y[4].reshape(x.shape), oracle.inclusive("add", x))
    for row, op in ((2, "min"), (3, "max"), (6, "min"), (7, "max")):
        expected = (oracle.reduce if row < 4 else oracle.inclusive)(op, x)
        found = y[row].reshape(x.shape)
        assert ((found == expected) | ((found != found) & (expected != expected))).all()
    assert np.isnan(y[2, :size]).all()
    assert np.signbit(y[0].reshape(x.shape)[1]).all()


def test_the_last_lane_of_a_scan_has_the_reduction(size):
    x = numbers("float32", 8, size, seed=11)
    y = np.zeros((12, x.size), np.float32)
    reductions(x.ravel(), y)
    rows = y.reshape(12, 8, size)
    same_bits(rows[4, :, -1], rows[0, :, 0])
    same_bits(rows[5, :, -1], rows[1, :, 0])


@qp.kernel
def moves(x: A(ndim=1), k: A(dtype=qp.i32, ndim=1), y: A(ndim=2), n: qp.i32):
    for i in range(x.shape[0]):
        y[0, i] = subgroup.shuffle(x[i], k[i])
        y[1, i] = subgroup.shuffle_up(x[i], n)
        y[2, i] = subgroup.shuffle_down(x[i], n)
        y[3, i] = subgroup.shuffle_xor(x[i], n)
        y[4, i] = subgroup.broadcast(x[i], n)
        y[5, i] = subgroup.broadcast_first(x[i])
        y[6, i] = subgroup.broadcast(x[i], k[i])


@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
@pytest.mark.parametrize("n", [0, 1, 5, 16, 31, 32, 47, 70, -1])
def test_moves_by_numbers_that_the_kernel_learns_late(size, dtype, n):
    x = numbers("uint8", 256 // size, size).astype(bool) if dtype == "bool" else numbers(dtype, 256 // size, size)
    k = np.random.default_rng(2).integers(-200, 200, x.shape, np.int32)
    y = np.zeros((7, x.size), x.dtype)
    moves(x.ravel(), k.ravel(), y, n)
    expected = [
        oracle.shuffle(x, k), oracle.shuffle_up(x, np.full(x.shape, n)), oracle.shuffle_down(x, np.full(x.shape, n)),
        oracle.shuffle_xor(x, np.full(x.shape, n)), oracle.shuffle(x, np.full(x.shape, n)),
        oracle.shuffle(x, np.zeros(x.shape, int)), oracle.shuffle(x, np.repeat(k[:, :1], size, axis=1)),
    ]  # fmt: skip
    for found, wanted in zip(y, expected, strict=True):
        same_bits(found.reshape(x.shape), wanted)


CONSTANTS = (0, 1, 2, 3, 4, 6, 7, 8, 9, 12, 15, 16, 21, 31, 32, 37, 48, 63)
"""Each way in which a distance or mask becomes instructions."""


@qp.kernel
def constant_moves(x: A(ndim=1), y: A(ndim=3)):
    for i in range(x.shape[0]):
        for n in qp.static([n for n in CONSTANTS if n < subgroup.group_size()]):
            y[0, n, i] = subgroup.shuffle_xor(x[i], n)
            y[1, n, i] = subgroup.shuffle_up(x[i], n)
            y[2, n, i] = subgroup.shuffle_down(x[i], n)
            y[3, n, i] = subgroup.broadcast(x[i], n)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_moves_by_constants(size, dtype):
    x = numbers(dtype, 256 // size, size, seed=4)
    y = np.zeros((4, size, x.size), x.dtype)
    constant_moves(x.ravel(), y)
    for n in [n for n in CONSTANTS if n < size]:
        by = np.full(x.shape, n)
        rules = (oracle.shuffle_xor, oracle.shuffle_up, oracle.shuffle_down, oracle.shuffle)
        for found, rule in zip(y[:, n], rules, strict=True):
            same_bits(found.reshape(x.shape), rule(x, by))


@qp.kernel
def votes(x: A(dtype=qp.i32, ndim=1), y: A(dtype=qp.u64, ndim=2), z: A(dtype=qp.i32, ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = subgroup.ballot(x[i] > 1)
        y[1, i] = subgroup.match_any(x[i])
        y[2, i] = subgroup.match_all(x[i])
        y[3, i] = subgroup.ballot_first_n(x[i] > 1, 12)
        z[0, i] = subgroup.any_true(x[i] > 1)
        z[1, i] = subgroup.all_true(x[i] > 1)
        z[2, i] = subgroup.all_equal(x[i])
        z[3, i] = subgroup.reduce_add(x[i] > 1)


def test_votes(size):
    x = np.random.default_rng(7).integers(0, 5, (768 // size, size), np.int32)
    x[0], x[1], x[2], x[3] = 0, 4, np.arange(size), 1 << np.arange(size) % 31
    y, z = np.zeros((4, x.size), np.uint64), np.zeros((4, x.size), np.int32)
    votes(x.ravel(), y, z)
    y, z = y.reshape(4, *x.shape), z.reshape(4, *x.shape)
    equal = (x == x[:, :1]).all(axis=1, keepdims=True)
    assert (y[0] == oracle.ballot(x > 1)).all()
    assert (y[1] == oracle.match_any(x)).all()
    assert (y[2] == np.where(equal, np.uint64((1 << size) - 1), np.uint64(0))).all()
    assert (y[3] == (oracle.ballot(x > 1) & np.uint64(0xFFF))).all()
    assert (z[0] == (x > 1).any(axis=1, keepdims=True)).all()
    assert (z[1] == (x > 1).all(axis=1, keepdims=True)).all()
    assert (z[2] == equal).all()
    assert (z[3] == (x > 1).sum(axis=1, keepdims=True)).all()


@qp.kernel
def matches(x: A(ndim=1), y: A(dtype=qp.u64, ndim=1), z: A(dtype=qp.i32, ndim=1)):
    for i in range(x.shape[0]):
        y[i] = subgroup.match_any(x[i])
        z[i] = subgroup.all_equal(x[i])


@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
def test_values_match_to_the_bit(size, dtype):
    x = np.random.default_rng(1).integers(0, 3, (512 // size, size)).astype(dtype)
    x[0] = x[0, 0]
    if np.dtype(dtype).kind == "f":
        x[1, ::3], x[1, 1::3] = 0.0, -0.0
        x[2] = np.nan
    y, z = np.zeros(x.size, np.uint64), np.zeros(x.size, np.int32)
    matches(x.ravel(), y, z)
    assert (y.reshape(x.shape) == oracle.match_any(x)).all()
    assert (z.reshape(x.shape)[0] == 1).all()
    assert (z.reshape(x.shape)[1] == 0).all()
    assert (z.reshape(x.shape)[2] == (np.dtype(dtype).kind == "f")).all()


@qp.kernel
def masks(y: A(dtype=qp.u64, ndim=2), z: A(dtype=qp.u64, ndim=2)):
    for i in range(y.shape[1]):
        y[0, i] = subgroup.lanemask_lt()
        y[1, i] = subgroup.lanemask_le()
        y[2, i] = subgroup.lanemask_eq()
        y[3, i] = subgroup.lanemask_gt()
        y[4, i] = subgroup.lanemask_ge()
        lane = subgroup.group_size() - 1 - subgroup.invocation_id()
        z[0, i] = subgroup.lanemask_lt(lane)
        z[1, i] = subgroup.lanemask_ge(lane)


def test_masks_of_lanes(size):
    y, z = np.zeros((5, 256), np.uint64), np.zeros((2, 256), np.uint64)
    masks(y, z)
    full = (1 << size) - 1
    for i in range(256):
        bit = 1 << i % size
        wanted = [bit - 1, 2 * bit - 1, bit, full & ~(2 * bit - 1), full & ~(bit - 1)]
        assert y[:, i].tolist() == wanted
        other = 1 << (size - 1 - i % size)
        assert z[:, i].tolist() == [other - 1, full & ~(other - 1)]


vec3 = qp.types.vector(3, qp.f32)


@qp.kernel
def vectors(x: A(dtype=vec3, ndim=1), y: A(dtype=vec3, ndim=1), z: A(dtype=vec3, ndim=1), m: A(dtype=qp.f32, ndim=1)):
    for i in range(x.shape[0]):
        y[i] = subgroup.reduce_add(x[i])
        z[i] = subgroup.shuffle_xor(x[i], 3)
        both = qp.Matrix([[x[i].x, x[i].y], [x[i].z, 1.0]])
        m[i] = subgroup.inclusive_max(both)[1, 0] + subgroup.all_equal(x[i])


def test_vectors_go_by_components(size):
    x = numbers("float32", 768 // size, size).reshape(256, 3)
    y, z, m = np.zeros_like(x), np.zeros_like(x), np.zeros(256, np.float32)
    vectors(x, y, z, m)
    for c in range(3):
        part = x[:, c].reshape(-1, size)
        same_bits(y[:, c].reshape(part.shape).copy(), oracle.reduce("add", part))
        same_bits(z[:, c].reshape(part.shape).copy(), oracle.shuffle_xor(part, np.full(part.shape, 3)))
    same_bits(m.reshape(-1, size), oracle.inclusive("max", x[:, 2].reshape(-1, size)))


@qp.kernel
def flow(x: A(dtype=qp.i32, ndim=1), y: A(dtype=qp.i32, ndim=1), n: qp.i32):
    """Loops and branches that a wave takes together: by parameters, by votes, by the number of the wave."""
    for i in range(x.shape[0]):
        value, turns = x[i], 0
        while subgroup.any_true(value > 0):
            value -= 1
            turns += 1
        total = 0
        for k in range(n):
            if k == 2:
                continue
            total += subgroup.shuffle_xor(turns + k, 1)
        if subgroup.subgroup_id() == 1:
            total += 1000 * subgroup.reduce_max(x[i])
        else:
            total -= subgroup.broadcast(x[i], 3)
        if block.thread_idx() >= 128:
            total = subgroup.reduce_add(total)
        y[i] = total


block = qp.simt.block


def test_waves_go_their_own_ways(size):
    x = np.random.default_rng(9).integers(0, 9, 512).astype(np.int32)
    y = np.zeros_like(x)
    flow(x, y, 4)
    w = x.reshape(-1, size)
    turns = w.max(axis=1, keepdims=True)
    total = np.repeat(3 * turns + 0 + 1 + 3, size, axis=1)
    wave = np.arange(len(w))[:, None] % (256 // size)
    total = np.where(wave == 1, total + 1000 * turns, total - w[:, 3:4])
    upper = np.arange(len(w))[:, None] * size % 256 >= 128
    total = np.where(upper, total.sum(axis=1, keepdims=True), total)
    assert (y.reshape(w.shape) == total).all()


@qp.kernel
def through_memory(x: A(dtype=qp.f32, ndim=1), y: A(dtype=qp.f32, ndim=1)):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        tile = block.SharedArray(128, qp.f32)
        t = block.thread_idx()
        tile[t] = x[i]
        subgroup.sync()
        mine = tile[t ^ 1]
        block.sync()
        tile[t] = subgroup.reduce_add(mine)
        block.sync()
        y[i] = tile[127 - t] + subgroup.inclusive_add(1.0)


def test_waves_and_barriers_and_shared_memory(size):
    x = numbers("float32", 384 // size, size)
    y = np.zeros(x.size, np.float32)
    through_memory(x.ravel(), y)
    swapped = oracle.shuffle_xor(x, np.ones(x.shape, int))
    sums = oracle.reduce("add", swapped).reshape(-1, 128)[:, ::-1].reshape(-1)
    same_bits(y, (sums + (np.arange(x.size) % size + 1).astype(np.float32)).astype(np.float32))


@qp.kernel
def by_other_names(x: A(dtype=qp.f32, ndim=1), y: A(dtype=qp.f32, ndim=2)):
    for i in range(x.shape[0]):
        y[0, i] = subgroup.reduce_all_add(x[i])
        subgroup.barrier()
        subgroup.memory_barrier()
        block.mem_sync()
        y[1, i] = subgroup.reduce_all_max(x[i])


def test_the_references_other_names(size):
    x = numbers("float32", 256 // size, size)
    y = np.zeros((2, 256), np.float32)
    by_other_names(x.ravel(), y)
    same_bits(y[0].reshape(x.shape), oracle.reduce("add", x))
    same_bits(y[1].reshape(x.shape), oracle.reduce("max", x))


@qp.func
def total_of(v):
    return subgroup.reduce_add(v)


@qp.kernel(wave_size=64)
def of_64(x: A(dtype=qp.i32, ndim=1)):
    for i in range(x.shape[0]):
        x[i] = total_of(1) * 100 + subgroup.group_size()


@qp.kernel(wave_size=32)
def of_32(x: A(dtype=qp.i32, ndim=1)):
    for i in range(x.shape[0]):
        x[i] = total_of(1) * 100 + subgroup.group_size()


def test_a_kernel_chooses_its_waves(arch):
    x = np.zeros(256, np.int32)
    ran = 0
    needs_waves_of(64, arch)
    for kernel, lanes in ((of_64, 64), (of_32, 32)):
        try:
            kernel(x)
        except qp.UnknownTargetError:
            assert arch != "cpu"
            continue
        assert (x == lanes * 101).all()
        ran += 1
    assert ran


BAD = {
    "if S.invocation_id() == 0: x[i] = S.reduce_add(x[i])": (qp.KernelSyntaxError, "not reached by all lanes", 7),
    "if B.thread_idx() < 16: S.sync()": (qp.KernelSyntaxError, "not reached by all lanes", 7),
    "if S.elect(): x[i] = S.shuffle(x[i], 1)": (qp.KernelSyntaxError, "not reached by all lanes", 7),
    "if B.thread_idx() % 2: continue\n    x[i] = S.any_true(x[i] > 0)": (qp.KernelSyntaxError, "comes after this", 7),
    "for k in range(S.invocation_id()): x[i] += S.reduce_add(k)": (qp.KernelSyntaxError, "not reached by all lanes", 7),
    "x[i] = S.shuffle(x[i], 64)": (qp.KernelTypeError, "from 0 to 31", 7),
    "x[i] = S.shuffle_up(x[i], -1)": (qp.KernelTypeError, "from 0 to 31", 7),
    "x[i] = S.shuffle(x[i], 1.5)": (qp.KernelTypeError, "integers", 7),
    "x[i] = S.shuffle(x[i], x[i])": (qp.KernelTypeError, "integers, not f32", 7),
    "x[i] = S.reduce_and(x[i])": (qp.KernelTypeError, "combines integers and truths, not f32", 7),
    "x[i] = S.ballot_first_n(x[i] > 0, 33)": (qp.KernelTypeError, "from 1 to 32", 7),
    "x[i] = S.match_any(qp.Vector([x[i], x[i]]))[0]": (qp.KernelTypeError, "a scalar is needed", 7),
    "x[i] = S.reduce_add()": (qp.KernelTypeError, "reduce_add", 7),
    "x[i] = S.reduce_add('a')": (qp.KernelTypeError, "a number is needed", 7),
}


@pytest.mark.parametrize("line", BAD)
def test_misuse_is_refused_with_its_line(load, init, line):
    init(wave_size=None)
    kind, message, number = BAD[line]
    module = load(
        f"""
        S, B = qp.simt.subgroup, qp.simt.block
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in range(x.shape[0]):
                {line.replace(chr(10), chr(10) + " " * 12)}
        """
    )
    if "31" in message and qp.runtime.device.current.current_config().arch == "amdgpu":
        message = "from 0 to"
    with pytest.raises(kind, match=message) as caught:
        module.k(np.zeros(256, np.float32))
    assert caught.value.span.line >= number


def test_outside_of_loops_there_are_no_lanes(load):
    module = load(
        """
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            x[0] = qp.simt.subgroup.reduce_add(x[0])
        """
    )
    with pytest.raises(
        qp.KernelSyntaxError, match=r"subgroup.reduce_add\(\) can only be called inside a parallel loop"
    ):
        module.k(np.zeros(4, np.float32))


@qp.kernel
def of_48(x: A(dtype=qp.f32, ndim=1)):
    qp.loop_config(block_dim=48)
    for i in range(x.shape[0]):
        x[i] = subgroup.reduce_add(x[i])


def test_a_block_has_whole_waves():
    with pytest.raises(qp.KernelTypeError, match="a block of 48 iterations does not consist of whole waves") as caught:
        of_48(np.zeros(48, np.float32))
    assert caught.value.hint.startswith("write qp.loop_config(block_dim=64)")


def test_a_loop_has_whole_blocks():
    with pytest.raises(qp.ArgumentError, match=r"100 iterations.*whole blocks of 256"):
        reductions(np.zeros(100, np.float32), np.zeros((12, 100), np.float32))


@pytest.mark.parametrize("wrong", [16, 0, 33, "32"])
def test_sizes_that_no_wave_has(wrong):
    with pytest.raises(qp.ArgumentError, match="wave_size must be 32 or 64"):
        qp.kernel(wave_size=wrong)
    with pytest.raises(qp.ArgumentError, match="wave_size must be 32 or 64"):
        qp.init(wave_size=wrong)


@qp.kernel
def extremes_of_truths(x: A(dtype=qp.u1, ndim=1), y: A(dtype=qp.u1, ndim=2)):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        y[0, i] = subgroup.reduce_min(x[i])
        y[1, i] = subgroup.reduce_max(x[i])
        y[2, i] = subgroup.inclusive_min(x[i])
        y[3, i] = subgroup.inclusive_max(x[i])
        y[4, i] = subgroup.exclusive_min(x[i])
        y[5, i] = subgroup.exclusive_max(x[i])
        y[6, i] = subgroup.exclusive_min_tiled(x[i], 2)
        y[7, i] = subgroup.exclusive_max_tiled(x[i], 2)
        y[8, i] = qp.simt.block.exclusive_min(x[i])
        y[9, i] = qp.simt.block.exclusive_max(x[i])
        y[10, i] = subgroup.segmented_reduce_max(x[i], i % 4 == 0)


@pytest.mark.parametrize("given", [0, 1, 2])
def test_the_least_and_the_greatest_truth_are_truths(size, given):
    """Before the first lane, the least is true and the greatest false."""
    x = [np.zeros(256, bool), np.ones(256, bool), np.random.default_rng(1).random(256) < 0.05][given]
    y = np.zeros((11, 256), bool)
    extremes_of_truths(x, y)
    least, greatest = np.minimum.accumulate, np.maximum.accumulate

    def before(group, scan, first):
        rows = scan(x.reshape(-1, group), axis=1)
        return np.concatenate([np.full((len(rows), 1), first), rows[:, :-1]], axis=1).ravel()

    waves = x.reshape(-1, size)
    assert (y[0] == waves.min(axis=1).repeat(size)).all()
    assert (y[1] == waves.max(axis=1).repeat(size)).all()
    assert (y[2] == least(waves, axis=1).ravel()).all()
    assert (y[3] == greatest(waves, axis=1).ravel()).all()
    for row, group in ((4, size), (6, 4), (8, 128)):
        assert (y[row] == before(group, least, True)).all()
        assert (y[row + 1] == before(group, greatest, False)).all()
    assert (y[10] == greatest(x.reshape(-1, 4), axis=1).ravel()).all()


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_extremes_of_truths_compile(target):
    assert extremes_of_truths.compile(target).image
