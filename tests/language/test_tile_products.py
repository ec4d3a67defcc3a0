"""Tiles of any size: operators, reductions and transposition against NumPy, products against a loop of ``qp.fma``."""

from __future__ import annotations

import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.objects.metadata import read_metadata

A = qp.types.ndarray
Tile = qp.simt.Tile


@qp.kernel
def by_fma(a: A(ndim=2), b: A(ndim=2), c: A(ndim=2)):
    """``c += a @ b`` as it is defined: one fma for each k, in ascending order."""
    for i, j in c:
        total = c[i, j]
        for k in range(a.shape[1]):
            total = qp.fma(qp.cast(a[i, k], c.dtype), qp.cast(b[k, j], c.dtype), total)
        c[i, j] = total


@qp.kernel
def whole(a: A(ndim=2), b: A(ndim=2), c: A(ndim=2), tile: qp.template(), threads: qp.template()):
    """``c += a @ b`` by tiles, for any sizes."""
    qp.loop_config(block_dim=threads)
    for _ in range((c.shape[0] + tile[0] - 1) // tile[0] * ((c.shape[1] + tile[1] - 1) // tile[1]) * threads):
        across = (c.shape[1] + tile[1] - 1) // tile[1]
        i = qp.simt.block.block_idx() // across * tile[0]
        j = qp.simt.block.block_idx() % across * tile[1]
        total = Tile[tile[0], tile[1], c.dtype].zeros()
        total[:] = c[i : i + tile[0], j : j + tile[1]]
        total += a[i : i + tile[0], :] @ b[:, j : j + tile[1]]
        c[i : i + tile[0], j : j + tile[1]] = total


def numbers(rng, shape, dtype):
    """Numbers of all magnitudes and signs, among them both zeros."""
    found = rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([0.0, -0.0], shape), found).astype(dtype)


def same_bits(x, y):
    return x.dtype == y.dtype and x.tobytes() == y.tobytes()


@pytest.mark.parametrize(
    ("tile", "threads", "shape", "dtype"),
    [
        ((16, 16), 32, (37, 21, 19), np.float32),  # edges everywhere
        ((16, 16), 32, (32, 16, 16), np.float32),  # none
        ((8, 32), 64, (9, 33, 100), np.float64),
        ((6, 4), 8, (7, 5, 3), np.float32),  # parts that are no vectors
        ((32, 32), 64, (1, 1, 1), np.float32),
        ((8, 8), 64, (8, 8, 0), np.float32),  # no k
        ((8, 8), 16, (0, 3, 2), np.float32),
    ],
)
def test_products_of_arrays_have_the_bits_of_fmas_in_order(tile, threads, shape, dtype):
    rng = np.random.default_rng(0)
    m, n, k = shape
    a, b, c = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype), numbers(rng, (m, n), dtype)
    wanted = c.copy()
    by_fma(a, b, wanted)
    whole(a, b, c, tile, threads)
    assert same_bits(c, wanted)


@pytest.mark.parametrize("options", [{"arch": qp.python}, {"fast_math": True}, {"debug": True}])
def test_the_bits_are_the_same_everywhere(init, options):
    rng = np.random.default_rng(1)
    a, b, c = numbers(rng, (9, 11), np.float32), numbers(rng, (11, 7), np.float32), numbers(rng, (9, 7), np.float32)
    wanted, found = c.copy(), c.copy()
    by_fma(a, b, wanted)
    init(**options)
    whole(a, b, found, (8, 4), 8)
    assert same_bits(found, wanted)


def test_zeros_keep_their_sign_and_infinities_their_effect():
    a = np.array([[-1.0, 0.0, np.inf], [1.0, 2.0, 3.0]], np.float32)
    b = np.array([[0.0, 1.0], [5.0, np.nan], [-0.0, 1.0]], np.float32)
    for inner in (1, 2, 3):
        c = np.full((2, 2), -0.0, np.float32)
        wanted = c.copy()
        x, y = a[:, :inner].copy(), b[:inner].copy()
        by_fma(x, y, wanted)
        whole(x, y, c, (8, 8), 8)
        assert np.array_equal(c, wanted, equal_nan=True)
        assert (np.signbit(c) == np.signbit(wanted))[~np.isnan(c)].all()


@qp.kernel
def all_factors(a: A(ndim=2), b: A(ndim=2), out: A(ndim=3)):
    """The same product of each kind of factor, added and subtracted."""
    qp.loop_config(block_dim=32)
    for _ in range(32):
        x, y = Tile[8, 12, a.dtype].zeros(), Tile[12, 16, b.dtype].zeros()
        x[:] = a[0:8, 0:12]
        y[:] = b[0:12, 0:16]
        t = Tile[8, 16, out.dtype].full(1.0)
        t += x @ y
        out[0, 0:8, 0:16] = t
        t.fill(1.0)
        t += x @ b[0:12, 0:16]
        out[1, 0:8, 0:16] = t
        t.fill(1.0)
        t += a[0:8, 0:12] @ y
        out[2, 0:8, 0:16] = t
        t.fill(1.0)
        t += x.transpose().transpose() @ y
        out[3, 0:8, 0:16] = t
        t.fill(-1.0)
        t -= x @ y
        out[4, 0:8, 0:16] = t
        t.fill(-1.0)
        t -= a[0:8, 0:12] @ b[0:12, 0:16]
        out[5, 0:8, 0:16] = t
        out[6, 0:8, 0:16] = x @ y


@pytest.mark.parametrize("options", [{}, {"arch": qp.python}])
def test_factors_are_tiles_and_parts_of_arrays(init, options):
    init(**options)
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((8, 12)).astype(np.float32), rng.standard_normal((12, 16)).astype(np.float32)
    out = np.zeros((7, 8, 16), np.float32)
    all_factors(a, b, out)
    one, zero = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32)
    by_fma(a, b, one)
    by_fma(a, b, zero)
    for k in range(4):
        assert same_bits(out[k], one), k
    assert same_bits(out[4], -one)
    assert same_bits(out[5], -one)
    assert same_bits(out[6], zero)


def test_narrow_factors_have_wide_sums_and_integers_are_multiplied():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((8, 12)).astype(np.float16), rng.standard_normal((12, 8)).astype(np.float16)
    found, wanted = np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)
    whole(a, b, found, (8, 8), 16)
    by_fma(a, b, wanted)
    assert same_bits(found, wanted)
    a, b = (rng.integers(-(2**31), 2**31, shape, np.int32) for shape in ((8, 12), (12, 8)))
    found = np.ones((8, 8), np.int32)
    whole(a, b, found, (8, 8), 16)
    assert (found == a @ b + 1).all()


@qp.kernel
def windows(x: A(ndim=2), out: A(ndim=2), r: qp.i32, c: qp.i32, n: qp.i32, m: qp.i32, turned: qp.template()):
    qp.loop_config(block_dim=16)
    for _ in range(16):
        t = Tile[8, 16, x.dtype].full(9.0)
        if qp.static(turned):
            t[:] = x[r : r + n, c : c + m].transpose()
        else:
            t[:] = x[r : r + n, c : c + m]
        out[0:8, 0:16] = t


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "window", [(0, 0, 8, 16), (3, 5, 4, 7), (-2, -3, 16, 16), (10, 0, 16, 16), (0, 0, 0, 9), (40, 2, 5, 5)]
)
def test_loads_keep_what_lies_outside(window, turned):
    r, c, n, m = window
    x = np.arange(13 * 17, dtype=np.float32).reshape(13, 17)
    wanted = np.full((8, 16), 9.0, np.float32)
    for i, j in np.ndindex(8, 16):
        p, q = (j, i) if turned else (i, j)
        if p < n and q < m and 0 <= r + p < 13 and 0 <= c + q < 17:
            wanted[i, j] = x[r + p, c + q]
    out = np.zeros((8, 16), np.float32)
    windows(x, out, r, c, n, m, turned)
    assert same_bits(out, wanted)


@qp.func
def scaled(x, y, i, j):
    return x * y + 100.0 * i + j


@qp.func
def longest(x, y):
    return qp.max(abs(x), abs(y))


@qp.kernel
def elementwise(x: A(ndim=2), out: A(ndim=3), lines: A(ndim=2), threads: qp.template()):
    qp.loop_config(block_dim=threads)
    for _ in range(threads):
        t = Tile[16, 8, x.dtype].zeros()
        t[:] = x[0:16, 0:8]
        u = 2.0 * t - t / 4.0 + 1.0
        u += t
        u *= -t
        out[0, 0:16, 0:8] = u
        out[1, 0:16, 0:8] = (t - t.max(axis=1)).map(qp.exp)
        out[2, 0:16, 0:8] = t * t.min(axis=0)
        out[3, 0:16, 0:8] = t.map(scaled, t.sum(axis=1), origin=(5, 0))
        out[4, 0:8, 0:16] = t.transpose()
        lines[0:1, 0:8] = t.sum(axis=0)
        lines[1:2, 0:16] = t.sum(axis=1).transpose()
        total, most = t.sum(), t.reduce(longest)
        corner = Tile[16, 8, x.dtype].eye()
        out[5, 0:16, 0:8] = corner
        if qp.simt.block.thread_idx() == threads - 1:
            lines[2, 0] = total
            lines[2, 1] = most
            lines[2, 2] = t.own[0]


@pytest.mark.parametrize(
    ("threads", "options"), [(32, {}), (128, {}), (16, {"arch": qp.python}), (32, {"debug": True})]
)
def test_operators_maps_and_reductions(init, threads, options):
    init(**options)
    x = np.random.default_rng(5).standard_normal((16, 8)).astype(np.float32)
    out, lines = np.zeros((6, 16, 16), np.float32), np.zeros((3, 16), np.float32)
    elementwise(x, out, lines, threads)
    i, j = np.indices((16, 8))
    wide = x.astype(np.float64)
    assert np.allclose(out[0, :, :8], (2 * wide - wide / 4 + 1 + wide) * -wide, rtol=1e-5, atol=1e-6)
    assert np.allclose(out[1, :, :8], np.exp(wide - wide.max(1, keepdims=True)), rtol=1e-6)
    assert same_bits(np.ascontiguousarray(out[2, :, :8]), x * x.min(0))
    assert np.allclose(out[3, :, :8], x * wide.sum(1, keepdims=True) + 100 * (i + 5) + j, rtol=1e-6, atol=1e-4)
    assert (out[4, :8] == x.T).all()
    assert (out[5, :, :8] == np.eye(16, 8)).all()
    assert np.allclose(lines[0, :8], wide.sum(0), atol=1e-5)
    assert np.allclose(lines[1], wide.sum(1), atol=1e-5)
    assert np.allclose(lines[2, 0], wide.sum(), atol=1e-5)
    assert lines[2, 1] == np.abs(x).max()


@qp.kernel
def attention(
    q: A(dtype=qp.f32, ndim=2), k: A(dtype=qp.f32, ndim=2), v: A(dtype=qp.f32, ndim=2), out: A(dtype=qp.f32, ndim=2)
):
    """softmax(q @ k^T) @ v without the matrix in between; rows in multiples of 8."""
    qp.loop_config(block_dim=16)
    for _ in range(q.shape[0] // 8 * 16):
        i = qp.simt.block.block_idx() * 8
        rows, result = Tile[8, 8, qp.f32].zeros(), Tile[8, 8, qp.f32].zeros()
        rows[:] = q[i : i + 8, 0:8]
        most, total = result.max(axis=1) - 1e30, result.sum(axis=1)
        for step in range(k.shape[0] // 8):
            j = step * 8
            scores = Tile[8, 8, qp.f32].zeros()
            scores += rows @ k[j : j + 8, 0:8].transpose()
            before, most = most, most.map(qp.max, scores.max(axis=1))
            weights, scale = (scores - most).map(qp.exp), (before - most).map(qp.exp)
            total = total * scale + weights.sum(axis=1)
            result *= scale
            result += weights @ v[j : j + 8, 0:8]
        out[i : i + 8, 0:8] = result / total


@pytest.mark.parametrize("options", [{}, {"arch": qp.python}])
def test_tiles_are_variables_of_loops(init, options):
    init(**options)
    q, k, v = np.random.default_rng(8).standard_normal((3, 16, 8)).astype(np.float32)
    out = np.zeros((16, 8), np.float32)
    attention(q, k, v, out)
    weights = np.exp(q.astype(np.float64) @ k.T)
    assert np.allclose(out, weights / weights.sum(1, keepdims=True) @ v, atol=1e-5)


def test_fields_shared_arrays_and_views(init):
    init()
    cube, flat = qp.field(qp.f64, (2, 20, 20), offset=(0, -4, 0)), qp.field(qp.f64, (20, 20))
    rng = np.random.default_rng(6)
    cube.from_numpy(rng.integers(-9, 9, (2, 20, 20)).astype(np.float64))
    flat.from_numpy(rng.integers(-9, 9, (20, 20)).astype(np.float64))

    @qp.kernel
    def run(x: A(dtype=qp.f64, ndim=2), out: A(dtype=qp.f64, ndim=3)):
        qp.loop_config(block_dim=16)
        for _ in range(16):
            shared = qp.simt.block.SharedArray((16, 8), qp.f64)
            t = Tile[16, 8, qp.f64].zeros()
            t += cube[1, -4:12, :] @ flat[:, 3:11]
            shared[0:16, 0:8] = t
            qp.simt.block.sync()
            u = Tile[8, 8, qp.f64].zeros()
            u += shared[:, 0:8].transpose() @ x[0:8, 0:16].transpose()
            out[0, 0:16, 0:8] = t
            out[1, 0:8, 0:8] = u

    x = rng.integers(-9, 9, (20, 30)).astype(np.float64)[2:18:2, ::-1][:, :16]
    out = np.zeros((2, 16, 8))
    run(x, out)
    t = cube.to_numpy()[1, :16] @ flat.to_numpy()[:, 3:11]
    assert (out[0] == t).all()
    assert (out[1, :8] == t.T @ x.T).all()


def test_graphs_and_streams_take_tiles():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 24, 24)).astype(np.float32)
    x, y, c = (qp.ndarray(qp.f32, (24, 24)) for _ in range(3))
    x.from_numpy(a)
    y.from_numpy(b)
    wanted = np.zeros((24, 24), np.float32)
    by_fma(a, b, wanted)
    by_fma(a, b, wanted)
    stream = qp.create_stream()
    whole(x, y, c, (16, 8), 32, stream=stream)
    stream.synchronize()
    with qp.graph.capture() as captured:
        whole(x, y, c, (16, 8), 32)
    captured.instantiate().launch()
    qp.sync()
    assert same_bits(c.to_numpy(), wanted)


MATMUL = """
@qp.kernel
def k(a: qp.types.ndarray(qp.{dtype}, 2), b: qp.types.ndarray(qp.{dtype}, 2), c: qp.types.ndarray(qp.{dtype}, 2)):
    qp.loop_config(block_dim={threads})
    for _ in range({threads}):
        t = qp.simt.Tile[{tile}, qp.{dtype}].zeros()
        t += a[0:{rows}, :] @ b[:, 0:{rows}]
        c[0:{rows}, 0:{rows}] = t
"""


@pytest.mark.parametrize(
    ("target", "dtype", "tile", "threads"),
    [("gfx942", "f32", "64, 64", 64), ("gfx1100", "f32", "32, 64", 64), ("gfx942", "f64", "32, 32", 64), ("sm_90", "f64", "16, 32", 32), ("sm_90", "f32", "32, 64", 32)],
)  # fmt: skip
def test_products_stay_in_registers_and_load_vectors(load, target, dtype, tile, threads):
    module = load(MATMUL.format(dtype=dtype, tile=tile, threads=threads, rows=64))
    made = module.k.compile(target)
    if target.startswith("gfx"):
        (info,) = read_metadata(made.image).kernels
        assert info.vgpr_spills == info.scratch_bytes == 0
    else:
        text = bytes(made.image).decode(errors="replace")
        assert ".local" not in text
        assert "ld.shared.v4" in text if dtype == "f32" else "ld.shared.v2" in text
        assert "ld.shared.b" not in text


MISTAKES = {
    "t += u": ("tiles of 8 x 8 and 8 x 4 elements do not fit", "one row or column"),
    "t += x @ x": ("is neither a tile nor a part of an array", "with tiles, or with slices"),
    "t += x[0:8, 0:4] @ 3.0": ("float is neither a tile", ""),
    "t += u @ u": ("a product of tiles of 8 x 4 and 8 x 4 elements cannot be added to one of 8 x 8", ""),
    "v = x[0:8, 0:8] @ t": ("slices along two axes of an array are part of a tile", ""),
    "t = t + x": ("not defined for a tile and array", "write t\\[:\\] = x"),
    "t[0, 0] = 1.0": ("a tile must be assigned as a whole", ""),
    "v = t.sum(axis=2)": ("axis is 0", ""),
    "v = qp.simt.Tile[8].zeros()": ("8 is not a shape of tiles", "rows, columns, dtype"),
    "v = qp.simt.Tile[8, 0, qp.f32].zeros()": ("is not a shape of tiles", ""),
    "v = qp.simt.Tile[3, 5, qp.f32].zeros()": ("15 elements, of which 16 threads cannot have equal parts", "block_dim"),
    "v = qp.simt.Tile[128, 128, qp.f32].zeros()": ("1024 elements for each of 16 threads", "block_dim"),
    "t.cholesky_(1.0)": ("has no member 'cholesky_'", ""),
    "t -= qp.outer(x[0:8, 0], x[0:8, 0])": ("only be subtracted from a Tile16x16", ""),
    "t += x[0:8:2, 0:4] @ x[0:4, 0:8]": ("cannot have a step", ""),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes(load, line):
    message, hint = MISTAKES[line]
    module = load(f"""
        @qp.kernel
        def k(x: qp.types.ndarray(qp.f32, 2)):
            qp.loop_config(block_dim=16)
            for i in range(16):
                t, u = qp.simt.Tile[8, 8, qp.f32].zeros(), qp.simt.Tile[8, 4, qp.f32].zeros()
                {line}
                x[0:8, 0:8] = t
        """)
    with pytest.raises(qp.KernelTypeError, match=message) as caught:
        module.k.compile("cpu")
    assert re.search(hint, str(caught.value))
    assert "quadpy_test" in str(caught.value)


def test_not_all_threads_reach_a_product(load):
    module = load("""
        @qp.kernel
        def k(x: qp.types.ndarray(qp.f32, 2)):
            qp.loop_config(block_dim=16)
            for i in range(16):
                t = qp.simt.Tile[8, 8, qp.f32].zeros()
                if i < 3:
                    t += x[0:8, :] @ x[:, 0:8]
                x[0:8, 0:8] = t
        """)
    with pytest.raises(qp.KernelSyntaxError, match="not reached by all threads"):
        module.k.compile("cpu")


def test_products_have_no_adjoint_yet():
    x = [qp.ndarray(qp.f32, (8, 8), needs_grad=True) for _ in range(3)]
    with pytest.raises(qp.KernelTypeError, match="adjoint of shared memory"):
        whole.grad(*x, (8, 8), 16)
