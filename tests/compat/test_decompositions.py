"""``ti.svd`` and ``ti.polar_decompose``: the signs and the order that Taichi 1.7.4 gives."""

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti

MIRRORED = [[0.7295733667149729, -1.2384011992630604], [-0.9650830714906913, -0.00834464482691244]]
"""A matrix with a negative determinant; what Taichi makes of it follows."""
U = [[0.903596460775046, -0.4283846823531518], [-0.4283846823531518, -0.903596460775046]]
SIGMA = [[1.5475208483905387, 0.0], [0.0, 0.7762403104244378]]
V = [[0.6931517066021623, 0.7207917255591312], [-0.7207917255591312, 0.6931517066021623]]
REFLECTION = [[0.3175532944694684, -0.9482404258264816], [-0.9482404258264816, -0.3175532944694684]]
STRETCH = [[1.146809208825783, -0.38534565113688324], [-0.38534565113688324, 1.1769519499891936]]


def decomposed(a, library=ti):
    """``u``, ``sigma``, ``v`` and both parts of the polar decomposition, by a kernel in f64."""
    n = len(a)
    x, out = ti.Matrix.field(n, n, ti.f64, shape=1), ti.Matrix.field(n, n, ti.f64, shape=5)
    x.from_numpy(np.array([a]))

    @ti.kernel
    def k():
        for i in x:
            out[0], out[1], out[2] = library.svd(x[i], ti.f64)
            out[3], out[4] = library.polar_decompose(x[i], ti.f64)

    k()
    return out.to_numpy()


@pytest.fixture(params=["compiled", "python"], autouse=True)
def mode(request):
    ti.init(arch=qp.python if request.param == "python" else ti.cpu, fast_math=False)


def test_the_numbers_of_taichi():
    assert decomposed(MIRRORED) == pytest.approx(np.array([U, SIGMA, V, REFLECTION, STRETCH]), abs=1e-14)


@pytest.mark.parametrize("n", [2, 3])
def test_any_matrix_is_the_product_of_its_parts(n):
    numbers = np.random.default_rng(5).normal(size=(12, n, n))
    for a in [*numbers, np.eye(n), -np.eye(n), np.zeros((n, n)), np.ones((n, n))]:
        u, sigma, v, rotation, stretch = decomposed(a)
        assert u @ sigma @ v.T == pytest.approx(a, abs=1e-13)
        assert rotation @ stretch == pytest.approx(a, abs=1e-13)
        assert stretch == pytest.approx(stretch.T, abs=1e-13)
        for orthogonal in (u, v, rotation):
            assert orthogonal @ orthogonal.T == pytest.approx(np.eye(n), abs=1e-13)
        if n == 2:
            assert np.diag(sigma).min() >= 0
            assert np.linalg.eigvalsh(stretch).min() >= -1e-13
            assert max(v[0], key=abs) > 0


def test_quadpy_itself_gives_rotations():
    u, sigma, v, rotation, _ = decomposed(MIRRORED, qp)
    assert [np.linalg.det(m) for m in (u, v, rotation)] == pytest.approx([1, 1, 1])
    assert sigma[1, 1] == pytest.approx(-SIGMA[1][1])


def test_on_the_host_as_in_a_kernel():
    u, sigma, _ = ti.svd(ti.Matrix(MIRRORED, ti.f64))
    assert u.to_numpy() == pytest.approx(np.array(U))
    assert sigma.to_numpy() == pytest.approx(np.array(SIGMA))
