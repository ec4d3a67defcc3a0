"""Programs of Taichi's that are certain to leave an array run, with a warning; nothing outside is read or written."""

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.quadrants as qd
import quadpy.compat.taichi as ti

N = 8


@pytest.fixture(params=[ti, qd], ids=["taichi", "quadrants"], autouse=True)
def names(request):
    request.param.init(arch=request.param.cpu)
    return request.param


@pytest.fixture
def fields():
    """Two fields that are neighbours in memory, and a third."""
    x, y, out = (qp.field(qp.f32) for _ in range(3))
    qp.root.dense(qp.i, N).place(x)
    qp.root.dense(qp.i, N).place(y)
    qp.root.dense(qp.i, N).place(out)
    x.from_numpy(np.arange(1, N + 1, dtype=np.float32))
    y.fill(-1)
    return x, y, out


def test_a_stencil_reads_zeros_beyond_the_edges(names, fields):
    x, y, out = fields

    @names.kernel
    def k():
        for i in x:
            out[i] = x[i - 1] + 10 * x[i + 1]

    with pytest.warns(RuntimeWarning, match=r"certain to reach index (-1|8) of x, .* here elements outside read as 0"):
        k()
    k()
    assert out.to_numpy().tolist() == [20, 31, 42, 53, 64, 75, 86, 7]
    assert y.to_numpy().tolist() == [-1] * N


def test_writes_and_updates_beyond_the_end_are_dropped(names, fields):
    x, y, _ = fields

    @names.kernel
    def k(n: int):
        for i in range(n):
            x[i] = 5
            names.atomic_add(x[i], 1)
            x[i] += 1

    k(3)
    assert x.to_numpy().tolist() == [7, 7, 7, 4, 5, 6, 7, 8]
    with pytest.warns(RuntimeWarning, match="certain to reach index 19 of x"):
        k(20)
    k(30)
    assert x.to_numpy().tolist() == [7] * N
    assert y.to_numpy().tolist() == [-1] * N


def test_indices_that_are_known_while_compiling(names, fields):
    x, y, _ = fields

    @names.kernel
    def k() -> float:
        x[9] = 3
        x[-1] = 4
        x[8] += 1
        s = 0.0
        for i in names.static(range(-2, 10)):
            s += x[i]
        return s

    with pytest.warns(RuntimeWarning, match="is out of range: the axis has extent 8; here elements"):
        assert k() == 36
    assert x.to_numpy().tolist() == [*range(1, 9)]
    assert y.to_numpy().tolist() == [-1] * N


def test_ndarrays_numpy_arrays_vectors_and_structs(names):
    vectors = qp.Vector.field(2, qp.f32, 3)
    structs = qp.types.struct(a=qp.f32, b=qp.i32).field(3)

    @names.kernel
    def k(a: names.types.ndarray(), b: names.types.ndarray()):
        for i in a:
            a[i] = b[i]
            vectors[i] += names.Vector([1.0, 2.0])
            vectors[i][0] = vectors[i][1]
            structs[i].b += 1

    a, b = np.full(5, 9.0), np.array([1.0, 2.0])
    with pytest.warns(RuntimeWarning, match="certain to reach index 4 of"):
        k(a, b)
    assert a.tolist() == [1, 2, 0, 0, 0]
    a, b = _ndarray([9.0] * 5), _ndarray([1.0, 2.0])
    k(a, b)
    assert [a[i] for i in range(5)] == [1, 2, 0, 0, 0]
    assert vectors.to_numpy().tolist() == [[4, 4]] * 3
    assert structs.to_numpy()["b"].tolist() == [2] * 3


def _ndarray(values):
    made = qp.ndarray(qp.f64, len(values))
    made.from_numpy(np.array(values))
    return made


def test_methods_defaults_and_keywords(names):
    @names.data_oriented
    class Solver:
        def __init__(self):
            self.f = qp.field(qp.f32, 4)

        @names.kernel
        def fill(self, n: int, value: float = 2.0):
            for i in range(n):
                self.f[i] = value

    solver = Solver()
    with pytest.warns(RuntimeWarning, match="index 8 of self.f"):
        solver.fill(n=9)
    solver.fill(9, value=3.0)
    assert solver.f.to_numpy().tolist() == [3] * 4


def test_kernels_in_graphs(names, fields):
    x, y, _ = fields

    @names.kernel
    def k(n: int):
        for i in range(n):
            x[i] += 1

    graph = qp.graph.Graph()
    with pytest.warns(RuntimeWarning, match="index 19 of x"):
        graph.add_kernel(k, 20)
    graph.instantiate().launch()
    qp.sync()
    assert x.to_numpy().tolist() == [*range(2, 10)]
    assert y.to_numpy().tolist() == [-1] * N


@pytest.mark.parametrize("constant", [False, True])
def test_under_debug_it_is_an_error(names, fields, constant):
    x, _, _ = fields
    names.init(arch=names.cpu, debug=True)

    @names.kernel
    def loop():
        for i in range(9):
            x[i] = 1

    @names.kernel
    def one():
        x[8] = 1

    with pytest.raises(qp.QuadpyError, match="out of range"):
        (one if constant else loop)()


def test_in_quadpy_it_is_an_error(fields):
    x, _, _ = fields
    qp.init(arch=qp.cpu)

    @qp.kernel
    def k():
        for i in range(9):
            x[i] = 1

    with pytest.raises(qp.BoundsError, match="certain to reach index 8 of x"):
        k()
