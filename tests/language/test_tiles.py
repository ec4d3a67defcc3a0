"""Tiles of 16 and 32 rows, one in each lane: against NumPy."""

from __future__ import annotations

import re
import runpy

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.objects.metadata import read_metadata

A = qp.types.ndarray
SIZES = {16: qp.simt.Tile16x16, 32: qp.simt.Tile32x32}
DTYPES = {16: np.float32, 32: np.float64}
UNIT = {np.float32: 2.0**-23, np.float64: 2.0**-52}


def kernels_of(tile):
    """Kernels over tiles of this type, for arrays of any type of floats."""
    size = tile.SIZE

    @qp.kernel
    def factor(x: A(ndim=3), right: A(ndim=3), eps: qp.f64):
        qp.loop_config(block_dim=size)
        for i in range(x.shape[0] * size):
            low = tile.zeros(dtype=x.dtype)
            low[:] = x[i // size, 0:size, 0:size]
            low.cholesky_(eps)
            b = tile.zeros(dtype=x.dtype)
            b[:] = right[i // size, 0:size, 0:size]
            low.solve_triangular_(b)
            x[i // size, 0:size, 0:size] = low
            right[i // size, 0:size, 0:size] = b

    @qp.kernel
    def part(x: A(ndim=2), y: A(ndim=2), r: qp.i32, c: qp.i32, n: qp.i32, m: qp.i32):
        qp.loop_config(block_dim=size)
        for _ in range(size):
            t = tile.eye(dtype=x.dtype)
            t[:] = x[r : r + n, c : c + m]
            y[0:size, 0:size] = t

    @qp.kernel
    def put(y: A(ndim=2), r: qp.i32, c: qp.i32, n: qp.i32, m: qp.i32):
        qp.loop_config(block_dim=size)
        for _ in range(size):
            t = tile.zeros(dtype=y.dtype)
            t.eye_()
            y[r : r + n, c : c + m] = t

    @qp.kernel
    def update(a: A(ndim=2), b: A(ndim=2), y: A(ndim=2)):
        qp.loop_config(block_dim=size)
        for _ in range(size):
            t = tile.zeros(dtype=y.dtype)
            t[:] = y[0:size, 0:size]
            for k in range(a.shape[1]):
                t -= qp.outer(a[0:size, k], b[0:size, k])
            y[0:size, 0:size] = t

    @qp.kernel
    def blocked(x: A(ndim=2), eps: qp.f64):
        """The Cholesky factor of a matrix of any size, by tiles, in place."""
        qp.loop_config(block_dim=size)
        for _ in range(size):
            n = x.shape[0]
            count = (n + size - 1) // size
            for kb in range(count):
                k0, k1 = kb * size, qp.min(kb * size + size, n)
                low = tile.eye(dtype=x.dtype)
                low[:] = x[k0:k1, k0:k1]
                for j in range(k0):
                    v = x[k0:k1, j]
                    low -= qp.outer(v, v)
                low.cholesky_(eps)
                for ib in range(kb + 1, count):
                    i0, i1 = ib * size, qp.min(ib * size + size, n)
                    below = tile.zeros(dtype=x.dtype)
                    below[:] = x[i0:i1, k0:k1]
                    for j in range(k0):
                        below -= qp.outer(x[i0:i1, j], x[k0:k1, j])
                    low.solve_triangular_(below)
                    x[i0:i1, k0:k1] = below
                x[k0:k1, k0:k1] = low
                qp.simt.block.sync()

    return {"factor": factor, "part": part, "put": put, "update": update, "blocked": blocked}


KERNELS = {size: kernels_of(tile) for size, tile in SIZES.items()}


@pytest.fixture(params=[16, 32])
def size(request, init):
    init()
    return request.param


def definite(count, n, dtype, seed=0):
    m = np.random.default_rng(seed).standard_normal((count, n, n))
    return (m @ m.transpose(0, 2, 1) + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize(("size", "dtype"), [(16, np.float32), (16, np.float64), (32, np.float64)])
def test_cholesky_and_the_triangular_solve_of_many_tiles(init, size, dtype):
    init()
    x = definite(3, size, dtype)
    right = np.random.default_rng(1).standard_normal((3, size, size)).astype(dtype)
    low, solved = x.copy(), right.copy()
    KERNELS[size]["factor"](low, solved, 0.0)
    wanted = np.linalg.cholesky(x.astype(np.float64))
    assert np.abs(low - wanted).max() <= 20 * UNIT[dtype] * np.abs(wanted).max()
    assert (np.triu(low, 1) == 0).all()
    error = np.abs(solved.astype(np.float64) @ low.transpose(0, 2, 1).astype(np.float64) - right)
    assert error.max() <= 20 * UNIT[dtype] * np.abs(right).max()


def test_a_matrix_of_any_size_is_factored_by_tiles(size):
    dtype = DTYPES[size]
    for n in (5, 32, 75):
        x = definite(1, n, dtype)[0]
        low = x.copy()
        KERNELS[size]["blocked"](low, 0.0)
        wanted = np.linalg.cholesky(x.astype(np.float64))
        assert np.abs(np.tril(low) - wanted).max() <= 20 * UNIT[dtype] * np.abs(wanted).max(), n


def test_rank_one_updates(size):
    dtype = DTYPES[size]
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-8, 9, (size, 5)).astype(dtype) for _ in range(2))
    y = rng.integers(-8, 9, (size, size)).astype(dtype)
    wanted = y - a @ b.T  # of small integers: exact
    KERNELS[size]["update"](a, b, y)
    assert (y == wanted).all()


def test_cholesky_raises_small_pivots_to_eps_and_keeps_nan(size):
    x = np.zeros((1, size, size))
    KERNELS[size]["factor"](x, np.zeros_like(x), 0.25)
    assert (x[0] == 0.5 * np.eye(size)).all()
    x = definite(1, size, np.float64)
    x[0, 0, 0] = np.nan
    KERNELS[size]["factor"](x, np.zeros_like(x), 0.25)
    assert np.isnan(np.diagonal(x[0])).all()


WINDOWS = [(0, 0, 32, 32), (3, 5, 7, 4), (0, 0, 40, 2), (20, 20, 32, 32), (-2, -3, 16, 16), (5, 5, 0, 3), (50, 0, 9, 9)]


@pytest.mark.parametrize("window", WINDOWS)
def test_edges_clamp(size, window):
    r, c, n, m = window
    x = np.random.default_rng(3).standard_normal((23, 27))
    inside = np.zeros((size, size), bool)
    wanted, there = np.eye(size), x + 0
    for i in range(min(n, size)):
        for j in range(min(m, size)):
            if 0 <= r + i < 23 and 0 <= c + j < 27:
                inside[i, j] = True
                wanted[i, j] = x[r + i, c + j]
                there[r + i, c + j] = i == j
    loaded = np.full((size, size), 9.0)
    KERNELS[size]["part"](x, loaded, r, c, n, m)
    assert (loaded == wanted).all()
    KERNELS[size]["put"](x, r, c, n, m)
    assert (x == there).all()
    assert inside.any() == (n > 0 and r < 23)


def test_fields_shared_arrays_and_columns(size, init):
    tile = SIZES[size]
    x = qp.field(qp.f32, (3, 40), offset=(0, -4))
    cube = qp.field(qp.f32, (2, 40, 40))
    x.from_numpy(np.arange(120, dtype=np.float32).reshape(3, 40))
    cube.from_numpy(np.arange(3200, dtype=np.float32).reshape(2, 40, 40))

    @qp.kernel
    def run(line: A(dtype=qp.f32, ndim=2), out: A(dtype=qp.f32, ndim=2), back: A(dtype=qp.f32, ndim=2)):
        qp.loop_config(block_dim=size)
        for i in range(size):
            shared = qp.simt.block.SharedArray((size, size), qp.f32)
            t = tile.zeros()
            t[:] = cube[1, 2 : 2 + size, 3:8]
            shared[0:size, 0:size] = t
            qp.simt.block.sync()
            out[0, i] = shared[0:size, 1]
            out[1, i] = line[2:9, 0]
            out[2, i] = x[1, -4:3]
            out[3, i] = cube[1, 0:size, 5]
            u = tile.eye()
            u[:] = shared[:, :size]
            u[:] = x[:, -6:0]
            back[0:size, 0:size] = u

    line, out, back = (
        np.arange(5, dtype=np.float32)[:, None],
        np.empty((4, size), np.float32),
        np.empty((size, size), np.float32),
    )
    run(line, out, back)
    host = cube.to_numpy()
    assert (out[0] == host[1, 2 : 2 + size, 4]).all()
    assert out[1].tolist() == [2, 3, 4] + [0] * (size - 3)
    assert out[2].tolist() == [*range(40, 47)] + [0] * (size - 7)
    assert (out[3] == host[1, :size, 5]).all()
    wanted = np.zeros((size, size))
    wanted[:, :5] = host[1, 2 : 2 + size, 3:8]
    wanted[:3, 2:6] = x.to_numpy()[:, :4]
    assert (back == wanted).all()


def test_checks_of_indices_find_nothing_in_clamped_edges(init):
    init(debug=True)
    x, loaded = np.ones((5, 6)), np.empty((16, 16))
    KERNELS[16]["part"](x, loaded, 2, 3, 16, 16)
    assert loaded.sum() == 3 * 3 + (16 - 3)
    KERNELS[16]["put"](x, 2, 3, 16, 16)
    assert x.sum() == 30 - 9 + 3
    y = np.ones((16, 16))
    KERNELS[16]["update"](np.ones((16, 2)), np.ones((16, 2)), y)
    assert (y == -1).all()


@pytest.mark.parametrize(
    ("target", "size", "dtype"),
    [("gfx942", 16, "f32"), ("gfx1100", 16, "f32"), ("sm_90", 16, "f64"), ("gfx942", 32, "f64")],
)
def test_tiles_compile_for_gpus_and_stay_in_registers(load, target, size, dtype):
    made = load(BLOCKED.format(size=size, dtype=dtype)).compile(target)
    assert made.image
    if target.startswith("gfx"):
        (info,) = read_metadata(made.image).kernels
        assert info.vgpr_spills == info.scratch_bytes == 0


BLOCKED = """
@qp.kernel
def k(x: qp.types.ndarray(dtype=qp.{dtype}, ndim=2)):
    qp.loop_config(block_dim={size})
    for i in range({size}):
        t = qp.simt.Tile{size}x{size}.eye(dtype=qp.{dtype})
        t[:] = x[0:{size}, 0:{size}]
        t -= qp.outer(x[0:{size}, 0], x[0:{size}, 1])
        t.cholesky_(1e-6)
        u = qp.simt.Tile{size}x{size}.zeros(dtype=qp.{dtype})
        u[:] = x[{size}:64, 0:{size}]
        t.solve_triangular_(u)
        x[{size}:64, 0:{size}] = u
"""


@pytest.fixture
def load(tmp_path):
    """The function ``k`` of a module made of text."""

    def run(text):
        file = tmp_path / "tiles.py"
        file.write_text("import quadpy as qp\n" + text, encoding="utf-8")
        return runpy.run_path(str(file))["k"]

    return run


MISTAKES = {
    "t[0] = 1.0": ("a tile must be assigned as a whole", "write t\\[:\\] = x"),
    "u = x[0:16, 0:16]": ("slices along two axes of an array are part of a tile, not a value", "write t\\[:\\] = x"),
    "t.solve_triangular_(1.0)": ("solve_triangular_: ", ""),
    "t[:] = 0.0": ("a tile takes two axes of an array", "write t\\[:\\] = x"),
    "t[:] = x[0:16, 0]": ("a tile takes two axes of an array", "write t\\[:\\] = x"),
    "t[:] = y[0:16, 0:16]": ("2 indices for an array of 3 dimensions", ""),
    "t[:] = y[0:16, 0:16, 0]": ("a tile takes the last two axes", "x\\[b, r0:r1, c0:c1\\]"),
    "t[:] = x[0:16:2, 0:16]": ("a slice of an array cannot have a step here", ""),
    "t += qp.outer(x[0:16, 0], x[0:16, 0])": (
        "an outer product can only be subtracted from a Tile16x16 or Tile32x32",
        "write t -= qp.outer",
    ),
    "x[0:16, 0:16] = 1.0": ("an index must be an integer, not slice", "write a loop"),
    "t.solve_triangular_(t, lower=False)": ("lower=True", ""),
    "u = qp.simt.Tile32x32.zeros()": ("a tile has a row for each iteration of a block", ""),
    "t.cholesky(1e-6)": ("has no member 'cholesky'", ""),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes(load, line):
    message, hint = MISTAKES[line]
    kernel = load(
        "@qp.kernel\ndef k(x: qp.types.ndarray(dtype=qp.f32, ndim=2), y: qp.types.ndarray(dtype=qp.f32, ndim=3)):\n"
        f"    qp.loop_config(block_dim=16)\n    for i in range(16):\n        t = qp.simt.Tile16x16.zeros()\n        {line}\n"
        "        x[0:16, 0:16] = t\n"
    )
    with pytest.raises(qp.KernelTypeError, match=message) as caught:
        kernel.compile("cpu")
    assert re.search(hint, str(caught.value))
    assert "tiles.py" in str(caught.value)


def test_a_tile_needs_blocks_of_its_size(load):
    kernel = load("@qp.kernel\ndef k(x: qp.types.ndarray(dtype=qp.f32, ndim=2)):\n    for i in range(16):\n"
                  "        t = qp.simt.Tile16x16.zeros()\n        x[0:16, 0:16] = t\n")  # fmt: skip
    with pytest.raises(qp.KernelTypeError, match=r"block_dim=SIZE"):
        kernel.compile("cpu")
