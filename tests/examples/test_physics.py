"""Physical properties of the examples: what is conserved, exact or convergent."""

import numpy as np
import pytest

import quadpy as qp
from quadpy.examples import conjugate_gradient, mpm88, nbody, stable_fluids
from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture(scope="module", autouse=True)
def cpu():
    """Fields of examples stay where the first kernel met them, whatever an earlier test has chosen."""
    before = current_config()
    qp.init(arch=qp.cpu)
    yield
    set_config(before)


@pytest.fixture
def splash():
    mpm88.start()


def particles_momentum():
    return mpm88.mass * mpm88.v.to_numpy().astype(float).sum(0)


def test_mpm88_moves_all_mass_and_momentum_to_the_grid(splash):
    rng = np.random.default_rng(1)
    mpm88.v.from_numpy(rng.normal(1, 1, (mpm88.n_particles, 2)).astype(np.float32))
    mpm88.C.from_numpy(rng.normal(0, 9, (mpm88.n_particles, 2, 2)).astype(np.float32))
    squeezed = np.tile(np.eye(2) * 0.98, (mpm88.n_particles, 1, 1))
    mpm88.F.from_numpy(squeezed.astype(np.float32))  # inner forces add nothing in all
    mpm88.p2g()
    assert mpm88.grid_m.to_numpy().sum(dtype=float) == pytest.approx(mpm88.n_particles * mpm88.mass, rel=1e-5)
    np.testing.assert_allclose(
        mpm88.grid_v.to_numpy().sum((0, 1), dtype=float), particles_momentum(), rtol=1e-4, atol=1e-5
    )


def test_mpm88_falls_freely_away_from_the_walls(splash):
    x = 0.4 + 0.2 * np.random.default_rng(2).random((mpm88.n_particles, 2))
    mpm88.x.from_numpy(x.astype(np.float32))
    mpm88.step()
    fallen = -mpm88.gravity * mpm88.dt * mpm88.substeps
    mean = mpm88.v.to_numpy().astype(float).mean(0)
    np.testing.assert_allclose(mean, [0, fallen], rtol=1e-4, atol=1e-6)


def test_mpm88_leaves_what_turns_or_rests_without_stress(splash):
    angle = np.linspace(0, 3, mpm88.n_particles)
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    jelly = mpm88.material.to_numpy() == mpm88.JELLY
    turned[~jelly] = np.eye(2)  # water remembers no turn
    mpm88.F.from_numpy(turned.astype(np.float32))
    mpm88.p2g()
    # A stress of the size of the moduli would give 1e-3 here; the rest is rounding of the determinant.
    assert np.abs(mpm88.grid_v.to_numpy()).max() < 1e-3 * 4 * mpm88.dt * mpm88.volume / mpm88.dx * mpm88.bulk


def test_mpm88_stays_in_its_box(splash):
    for _ in range(60):
        mpm88.step()
    x = mpm88.x.to_numpy()
    margin = (mpm88.walls - 1.5) * mpm88.dx
    assert x.min() > margin
    assert x.max() < 1 - margin
    water = mpm88.material.to_numpy() == mpm88.WATER
    assert np.abs(np.linalg.det(mpm88.F.to_numpy()[water]) - 1).max() < 0.3, "water is nearly incompressible"


def test_two_bodies_circle_each_other():
    m = np.array([1, 1], np.float32)
    x = np.array([[0.5, 0, 0], [-0.5, 0, 0]], np.float32)
    pull = 1 / (1 + nbody.softening**2) ** 1.5
    speed = np.sqrt(pull / 2)
    v = np.array([[0, speed, 0], [0, -speed, 0]], np.float32)
    steps = 500
    h = 2 * np.pi * 0.5 / speed / steps
    start = x.copy()
    for _ in range(steps):
        nbody.drift(h / 2, x, v)
        nbody.kick(h, x, v, m)
        nbody.drift(h / 2, x, v)
    np.testing.assert_allclose(x, start, atol=2e-3)


def test_kick_is_the_sum_over_all_pairs():
    rng = np.random.default_rng(3)
    x, m = rng.normal(size=(50, 3)).astype(np.float32), rng.random(50).astype(np.float32)
    d = x[None].astype(float) - x[:, None]
    expected = (d * (m / ((d**2).sum(2) + nbody.softening**2) ** 1.5)[..., None]).sum(1)
    v = np.zeros_like(x)
    nbody.kick(1.0, x, v, m)
    np.testing.assert_allclose(v, expected, rtol=1e-4, atol=1e-4)


def test_galaxies_keep_energy_and_momentum():
    galaxies = nbody.Galaxies(150)
    before = galaxies.energy()
    for _ in range(50):
        galaxies.step()
    assert before < 0
    assert galaxies.energy() == pytest.approx(before, rel=1e-3)
    momentum = (galaxies.m[:, None].astype(float) * galaxies.v).sum(0)
    np.testing.assert_allclose(momentum, 0, atol=1e-5)


@pytest.fixture
def stirred():
    fluid = stable_fluids.Fluid(24)
    rng = np.random.default_rng(4)
    fluid.u[1:-1], fluid.v[:, 1:-1] = rng.normal(size=(23, 24)), rng.normal(size=(24, 23))
    return fluid


def divergence(fluid):
    return fluid.u[1:] - fluid.u[:-1] + fluid.v[:, 1:] - fluid.v[:, :-1]


def test_projection_takes_out_the_divergence(stirred):
    assert np.abs(divergence(stirred)).max() > 1
    stirred.project(400)
    assert np.abs(divergence(stirred)).max() < 1e-4


def test_projection_leaves_a_flow_without_divergence_alone(stirred):
    stirred.project(400)
    u, v = stirred.u.copy(), stirred.v.copy()
    stirred.p[:] = 0
    stirred.project(10)
    np.testing.assert_allclose(stirred.u, u, atol=1e-4)
    np.testing.assert_allclose(stirred.v, v, atol=1e-4)


def test_projection_takes_energy_out_only(stirred):
    before = (stirred.u**2).sum() + (stirred.v**2).sum()
    stirred.project(400)
    assert 0 < (stirred.u**2).sum() + (stirred.v**2).sum() < before


def test_ink_moves_with_a_uniform_flow():
    n, fluid = 16, stable_fluids.Fluid(16)
    fluid.u[:], fluid.v[:] = 2, 1
    fluid.ink[:] = np.random.default_rng(5).random((n, n, 3))
    moved = np.empty_like(fluid.ink)
    stable_fluids.advect_ink(1.0, fluid.u, fluid.v, fluid.ink, moved)
    np.testing.assert_allclose(moved[2:, 1:], fluid.ink[:-2, :-1], atol=1e-5)


def test_no_flow_passes_the_walls_and_ink_stays_bounded():
    fluid = stable_fluids.Fluid(32)
    for _ in range(30):
        fluid.step()
    assert not fluid.u[[0, -1]].any()
    assert not fluid.v[:, [0, -1]].any()
    assert fluid.ink.min() >= -1e-6
    assert fluid.ink.max() <= 1 + 1e-5


def grid_equation(x):
    """Four times each point minus its neighbours."""
    padded = np.pad(x.astype(float), 1)
    return 4 * padded[1:-1, 1:-1] - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]


def test_conjugate_gradients_solve_the_equation():
    b = np.random.default_rng(5).normal(size=(40, 40)).astype(np.float32)
    x, count = conjugate_gradient.Solver(40).solve(b, 500)
    assert 20 < count < 300
    assert np.linalg.norm(grid_equation(x) - b) < 1e-4 * np.linalg.norm(b)


def test_conjugate_gradients_know_a_wave_after_one_iteration():
    n = 31
    wave = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    b = np.outer(wave, wave).astype(np.float32)
    x, count = conjugate_gradient.Solver(n).solve(b, 500)
    assert count == 1
    np.testing.assert_allclose(x, b / (4 - 4 * np.cos(np.pi / (n + 1))), rtol=1e-4)


def test_conjugate_gradients_stop_where_they_are_told_to_and_where_nothing_is_left():
    solver = conjugate_gradient.Solver(16)
    b = conjugate_gradient.random_charges(16, seed=1)
    assert solver.solve(b, 3)[1] == 3
    x, count = solver.solve(np.zeros_like(b), 9)
    assert count == 1
    assert not x.any()
