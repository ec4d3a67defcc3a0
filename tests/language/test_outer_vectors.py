"""Vectors, matrices and small NumPy arrays from outside a kernel, alone and in containers."""

import numpy as np
import pytest

import quadpy as qp

G = np.array([0.0, -9.8, 0.0])
A = np.arange(6.0).reshape(2, 3)
V, M = qp.Vector([1.0, 2.0, 3.0]), qp.Matrix([[1.0, 2.0], [3.0, 4.0]])
PAIR = V, M
NAMED = {"v": V, "l": [V, V]}
ROWS = [qp.Vector([1, 2]), qp.Vector([3, 4])]
out = qp.Vector.field(3, qp.f32, 2)
mat = qp.Matrix.field(2, 2, qp.f32, 2)


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


CASES = {
    "an array as a vector": ("qp.Vector(G)", [0, -9.8, 0]),
    "an array as a matrix": ("qp.Matrix(A)[1, :]", [3, 4, 5]),
    "a row of an array": ("qp.Vector(A[1])", [3, 4, 5]),
    "arrays as rows": ("qp.Vector([G, A[0]])[1, :]", [0, 1, 2]),
    "arrays as columns": ("qp.Matrix.cols([G[:2], A[0, :2]])[1, :].xyy", [-9.8, 1, 1]),
    "an array as a vector type": ("qp.math.vec3(G)", [0, -9.8, 0]),
    "parts as a vector type": ("qp.math.vec3(G[:2], 5)", [0, -9.8, 5]),
    "an array with a type": ("qp.Vector(G, qp.i32)", [0, -9, 0]),
    "an array and a vector": ("V + G", [1, -7.8, 3]),
    "an array in a product": ("qp.Matrix(A).transpose() @ M[0, :]", [6, 9, 12]),
    "a vector times an array": ("qp.Vector([1.0, 1.0, 1.0]).cross(G) * i", [9.8, 0, -9.8]),
    "a matrix that is an array": ("A[:, :2] @ V[:2] @ M @ A", [144, 227, 310]),
    "an array as a parameter": ("shifted(G)", [1, -8.8, 1]),
    "an array without a type": ("same(A[1])", [3, 4, 5]),
    "a vector of a tuple": ("PAIR[0] * 2", [2, 4, 6]),
    "a matrix of a tuple": ("(PAIR[1] @ M)[1, :].xyx", [15, 22, 15]),
    "unpacked": ("unpacked()", [14 + 1, 14 + 2, 14 + 3]),
    "of a dict": ("NAMED['v'] + NAMED['l'][1]", [2, 4, 6]),
    "as rows": ("qp.Matrix.rows(ROWS)[1, :].xyy + qp.Matrix(ROWS)[0, :].xyy", [4, 6, 6]),
    "one by one": ("sum(r[0] * r[1] for r in ROWS) * V", [14, 28, 42]),
    "a component at run time": ("V[i] + PAIR[0][i] + M[i, 0] + V * 0", [7, 7, 7]),
    "assigned": ("assigned()", [9, 2, 3]),
    "a list of lists": ("qp.Matrix([[1, 2, 3], [4, 5, 6]])[i, :]", [4, 5, 6]),
}


@qp.func
def shifted(g: qp.math.vec3):
    return g + 1


@qp.func
def same(g: qp.types.vector(3)):
    return g


@qp.func
def unpacked():
    v, m = PAIR
    return (v @ v) * m[0, 0] + v


@qp.func
def assigned():
    v, _ = PAIR
    v[0] = 9
    return v


@pytest.mark.parametrize("case", CASES)
def test_case(load, case):
    text, expected = CASES[case]
    module = load(
        f"from {__name__} import *\nfrom {__name__} import A, G, V, M, PAIR, NAMED, ROWS, out, shifted, same, unpacked, assigned\n"
        f"@qp.kernel\ndef kernel():\n    for i in out:\n        out[i] = {text}\n"
    )
    module.kernel()
    np.testing.assert_allclose(out.to_numpy()[1], expected, rtol=1e-6)


def test_attributes_of_objects_and_templates():
    @qp.data_oriented
    class Solver:
        def __init__(self, g):
            self.g, self.pair = g, (V, M)

        @qp.kernel
        def step(self):
            for i in out:
                out[i] = qp.Vector(self.g) + self.pair[0]

    @qp.kernel(graph=True)
    def kernel(g: qp.template()):
        for i in out:
            out[i] = qp.Vector(g)

    solver = Solver(np.array([1, 2, 3]))
    solver.step()
    assert out[1].to_list() == [2, 4, 6]
    solver.g = np.array([10, 20, 30])
    solver.step()
    assert out[1].to_list() == [11, 22, 33]
    for _ in range(2):
        kernel(G)
    np.testing.assert_allclose(out.to_numpy()[0], G, rtol=1e-6)


def test_numbers_have_the_default_types(init):
    init(default_fp=qp.f64)
    tenth = np.array([0.1])

    @qp.kernel
    def kernel() -> qp.f64:
        return qp.Vector(tenth)[0]

    assert kernel() == 0.1


def test_too_large_an_array_is_an_error():
    large = np.zeros(10**7)

    @qp.kernel
    def kernel():
        v = qp.Vector(large)
        out[0] = v[:3]

    with pytest.raises(qp.CompilationError):
        kernel()
