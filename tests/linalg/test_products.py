"""``qp.linalg.matmul``: the bits of a loop of ``qp.fma``, for all sizes, strides, transpositions and tiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.linalg.products import SHAPES, _tile_for
from quadpy.runtime.device.current import State

A = qp.types.ndarray


@qp.kernel
def by_fma(a: A(ndim=3), b: A(ndim=3), c: A(ndim=3)):
    for p, i, j in c:
        total = c[p, i, j]
        for k in range(a.shape[2]):
            x = qp.cast(a[qp.min(p, a.shape[0] - 1), i, k], c.dtype)
            y = qp.cast(b[qp.min(p, b.shape[0] - 1), k, j], c.dtype)
            total = qp.fma(x, y, total)
        c[p, i, j] = total


def reference(a, b, dtype=np.float32, start=0.0):
    a, b = (np.ascontiguousarray(x if x.ndim == 3 else x[None]) for x in (a, b))
    c = np.full((max(len(a), len(b)), a.shape[1], b.shape[2]), start, dtype)
    by_fma(a, b, c)
    return c


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    return lambda *shape, dtype=np.float32: rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("m", "n", "k"), [(37, 45, 21), (1, 1, 1), (16, 32, 8), (5, 70, 0), (0, 3, 2), (3, 0, 2)])
def test_sizes(numbers, m, n, k):
    a, b = numbers(m, k), numbers(k, n)
    found = qp.linalg.matmul(a, b)
    assert isinstance(found, qp.NDArray)
    assert found.dtype == qp.f32
    assert found.to_numpy().tobytes() == reference(a, b)[0].tobytes()


@pytest.mark.parametrize(
    "shapes", [((3, 9, 7), (3, 7, 11)), ((9, 7), (3, 7, 11)), ((3, 9, 7), (7, 11)), ((1, 9, 7), (3, 7, 11))]
)
def test_several_matrices(numbers, shapes):
    a, b = (numbers(*shape) for shape in shapes)
    assert (qp.linalg.matmul(a, b).to_numpy() == reference(a, b)).all()
    assert qp.linalg.matmul(a[:0], b[:0]).shape[0] == 0 if a.ndim == b.ndim == 3 else True


def test_strides_and_transposition(numbers):
    a, b = numbers(20, 30), numbers(30, 25)
    wanted = reference(a, b)[0]
    columns = np.ascontiguousarray(a.T)
    for x, options in [(columns.T, {}), (columns, {"transpose_a": True}), (a.T, {"transpose_a": True})]:
        assert (qp.linalg.matmul(x, b, **options).to_numpy() == wanted).all()
    columns = np.ascontiguousarray(b.T)
    for y, options in [(columns.T, {}), (columns, {"transpose_b": True}), (b.T, {"transpose_b": True})]:
        assert (qp.linalg.matmul(a, y, **options).to_numpy() == wanted).all()
    wide = numbers(40, 60)
    assert (qp.linalg.matmul(wide[::2, ::-2], b).to_numpy() == reference(wide[::2, ::-2], b)[0]).all()
    out = np.zeros((20, 50), np.float32)
    assert qp.linalg.matmul(a, b, out=out[:, ::2]) is not None
    assert (out[:, ::2] == wanted).all()
    assert (out[:, 1::2] == 0).all()


def test_fields_arrays_and_types(numbers):
    a, b = qp.field(qp.f64, (6, 5)), qp.ndarray(qp.f64, (5, 4))
    a.from_numpy(numbers(6, 5, dtype=np.float64))
    b.from_numpy(numbers(5, 4, dtype=np.float64))
    out = qp.field(qp.f64, (6, 4))
    assert qp.linalg.matmul(a, b, out=out) is out
    assert (out.to_numpy() == reference(a.to_numpy(), b.to_numpy(), np.float64)[0]).all()
    half = numbers(6, 5, dtype=np.float16)
    assert qp.linalg.matmul(half, half, transpose_b=True).dtype == qp.f32
    assert (qp.linalg.matmul(half, half.T).to_numpy() == reference(half, half.T)[0]).all()
    assert qp.linalg.matmul(half, b).dtype == qp.f64
    whole = np.arange(-10, 20, dtype=np.int32).reshape(6, 5)
    assert (qp.linalg.matmul(whole, whole.T).to_numpy() == whole @ whole.T).all()
    assert qp.linalg.matmul(half, half.T, dtype=qp.f64).dtype == qp.f64


def test_sums_start_at_out(numbers):
    a, b = numbers(9, 7), numbers(7, 8)
    out = np.full((9, 8), 2.5, np.float32)
    qp.linalg.matmul(a, b, out=out, accumulate=True)
    assert (out == reference(a, b, start=2.5)[0]).all()


@qp.func
def clipped(value, i, j):
    return qp.max(value, 0.0) + 100 * i + j


@qp.data_oriented
class Biased:
    def __init__(self, bias):
        self.bias = bias

    @qp.func
    def __call__(self, value, number, i, j):
        return value + self.bias[number, j]


def test_epilogues(numbers):
    a, b = numbers(9, 7), numbers(7, 8)
    i, j = np.indices((9, 8)).astype(np.float32)
    found = qp.linalg.matmul(a, b, epilogue=clipped).to_numpy()
    assert np.allclose(found, np.maximum(reference(a, b)[0], 0) + 100 * i + j, rtol=1e-6)
    bias = qp.ndarray(qp.f32, (2, 8))
    for _ in range(2):  # arrays of an object are passed at each launch
        bias.from_numpy(numbers(2, 8))
        found = qp.linalg.matmul(numbers(2, 9, 7), b, epilogue=Biased(bias)).to_numpy()
    assert found.shape == (2, 9, 8)
    x = numbers(2, 9, 7)
    found = qp.linalg.matmul(x, b, epilogue=Biased(bias)).to_numpy()
    assert (found == reference(x, b) + bias.to_numpy()[:, None]).all()


def test_every_tile_of_the_table_gives_the_same_bits(numbers, monkeypatch):
    a, b = numbers(65, 33), numbers(33, 40)
    wanted = reference(a, b)[0]
    for shape in ((64, 64, 64, 1.0), (8, 8, 8, 1.0)):
        for backend in SHAPES:
            monkeypatch.setitem(SHAPES, backend, {4: (shape,)})
        assert (qp.linalg.matmul(a, b).to_numpy() == wanted).all(), shape


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((2048, 2048), (128, 256)), ((2047, 2049), (64, 128)), ((1024, 1024), (64, 128)), ((100_000, 64), (64, 64)),
     ((20_000, 32, 32), (32, 32)), ((256, 256), (32, 32)), ((1, 1), (32, 32))],
)  # fmt: skip
def test_the_tile_fits_the_product(monkeypatch, shape, tile):
    monkeypatch.setitem(SHAPES, State.device[0], SHAPES["cuda"])
    found, _ = _tile_for(shape, qp.f32)
    assert found.shape == tile


def test_streams_graphs_and_hazards(numbers):
    a, b = numbers(9, 7), numbers(7, 8)
    x, y, out = qp.ndarray(qp.f32, (9, 7)), qp.ndarray(qp.f32, (7, 8)), qp.ndarray(qp.f32, (9, 8))
    x.from_numpy(a)
    y.from_numpy(b)
    stream, other = qp.create_stream(), qp.create_stream()
    qp.sync()
    with qp.hazards.check():
        qp.linalg.matmul(x, y, out=out, stream=stream)
        with pytest.warns(qp.HazardWarning, match="write after write"):
            qp.linalg.matmul(x, y, out=out, stream=other)
        qp.sync()
    with qp.graph.capture() as graph:
        qp.linalg.matmul(x, y, out=out, accumulate=True)
    graph.instantiate().launch()
    qp.sync()
    wanted = reference(a, b)
    by_fma(a[None], b[None], wanted)
    assert (out.to_numpy() == wanted[0]).all()


SIMULATED = """import numpy as np, quadpy as qp
from running_gpu import running
rng = np.random.default_rng(0)
a, b = rng.integers(-9, 9, (70, 40)).astype(np.float32), rng.integers(-9, 9, (40, 45)).astype(np.float32)
with running():
    x, y = qp.ndarray(qp.f32, a.shape), qp.ndarray(qp.f32, b.shape)
    x.from_numpy(a)
    y.from_numpy(b)
    found = qp.linalg.matmul(x, y).to_numpy()
print((found == a @ b).all())
"""


def test_on_a_simulated_gpu(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SIMULATED, encoding="utf-8")
    paths = [*sys.path, str(Path(__file__).parents[1] / "support")]
    line = f"import sys; sys.path[:] = {paths}; import runpy; runpy.run_path({str(program)!r})"
    done = subprocess.run(
        [sys.executable, "-c", line], capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "QUADPY_CACHE": "0"}
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr


MISTAKES = {
    "matmul(a, a)": "matrices of shapes \\(4, 3\\) and \\(4, 3\\) have no product",
    "matmul(np.ones((2, 4, 3)), np.ones((3, 3, 4)))": "have no product",
    "matmul(a, 3.0)": "b takes an array of matrices, not 3.0",
    "matmul(a, None)": "b takes an array of matrices, not None",
    "matmul(a, [[1.0]])": "b takes an array of matrices",
    "matmul(a, np.ones(3))": "b takes an array of two or three axes, not of shape \\(3,\\)",
    "matmul(a, np.ones((1, 1, 3, 2)))": "two or three axes",
    "matmul(a, a.T, out=np.ones((4, 3)))": "out has shape \\(4, 3\\), and the product \\(4, 4\\)",
    "matmul(a, a.T, accumulate=True)": "out, which is missing",
    "matmul(a, a.T, dtype=qp.f16)": "of 32 or 64 bits",
    "matmul(a, a.T, dtype='f32')": "of 32 or 64 bits",
    "matmul(a[:3], a[:3].T, out=a[:3])": "out and a overlap",
    "matmul(qp.ndarray(qp.types.vector(2, qp.f32), (3, 3)), a)": "a takes an array of numbers",
    "matmul(np.ones((3, 3), complex), a)": "complex",
}


@pytest.mark.parametrize("call", MISTAKES)
def test_mistakes(call):
    with pytest.raises(qp.QuadpyError, match=MISTAKES[call]):
        eval("qp.linalg." + call, {"qp": qp, "np": np, "a": np.ones((4, 3), np.float32)})


def test_bad_epilogues(numbers):
    a = numbers(4, 4)
    with pytest.raises(qp.CompilationError):
        qp.linalg.matmul(a, a, epilogue=3)
    with pytest.raises(qp.CompilationError):
        qp.linalg.matmul(a, a, epilogue=qp.func(lambda x: x))
