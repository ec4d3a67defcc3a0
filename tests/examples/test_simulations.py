"""Examples of classes and structs: what they compute is known from physics."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quadpy as qp
from quadpy.examples import cloth, lattice_boltzmann, materials, path_tracer, sph, two_stream

# a path tracer


def light_of(scene, passes=4):
    """The picture of a scene in the middle of a sky that is 1 everywhere."""
    camera = path_tracer.Camera(scene, 24, 24)
    camera.eye, camera.target, camera.opening = [0, 0, 4], [0, 0, 0], 1.0
    camera.zenith = camera.horizon = [1, 1, 1]
    for _ in range(passes):
        camera.step()
    return camera.film.to_numpy() / passes


def test_in_even_light_a_matt_ball_is_as_bright_as_its_colour():
    light = light_of([{"centre": [0, 0, 0], "radius": 1, "colour": [0.5, 0.25, 1]}])
    np.testing.assert_allclose(light[12, 12], [0.5, 0.25, 1], rtol=1e-6)
    np.testing.assert_allclose(light[0, 0], 1)
    assert (light[..., 1] >= 0.25 - 1e-6).all()


@pytest.mark.parametrize("surface", [path_tracer.MATT, path_tracer.METAL, path_tracer.GLASS])
def test_in_even_light_white_things_cannot_be_seen(surface):
    """The furnace test: no light is lost or made, also between two balls."""
    scene = [
        {"centre": [x, 0, 0], "radius": 0.7, "colour": [1, 1, 1], "surface": surface, "rough": 0.1} for x in (-0.6, 0.9)
    ]
    light = light_of(scene)
    assert light.max() < 1 + 1e-5
    assert light.mean() > 0.99  # a few paths end after too many bounces


def test_glass_refracts_by_snells_law_and_reflects_by_schlicks_formula():
    n, index, angle = 200_000, 1.5, math.radians(60)
    found = qp.Vector.ndarray(3, qp.f32, n)

    @qp.kernel
    def send(x: qp.f32, y: qp.f32, out: qp.types.ndarray(dtype=qp.math.vec3, ndim=1)):
        for i in out:
            out[i] = path_tracer.through_glass(qp.math.vec3(x, y, 0.0), qp.math.vec3(0.0, 1.0, 0.0), index)

    for x, y, bent in [
        (math.sin(angle), -math.cos(angle), math.sin(angle) / index),
        (math.sin(angle) / index, math.sqrt(1 - (math.sin(angle) / index) ** 2), math.sin(angle)),
    ]:
        send(x, y, found)
        directions = found.to_numpy()
        reflected = directions[:, 1] * y < 0
        np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(directions[~reflected, 0], bent, atol=1e-5)
        np.testing.assert_allclose(directions[reflected, 0], x, atol=1e-5)
        schlick = 0.04 + 0.96 * (1 - math.cos(angle)) ** 5
        assert reflected.mean() == pytest.approx(schlick, abs=0.005)
    send(0.8, 0.6, found)
    assert (found.to_numpy()[:, 1] < 0).all(), "beyond the critical angle all is reflected"


# lattice Boltzmann


def box(n):
    return np.zeros((n, n), bool)


def test_vortices_decay_by_viscosity():
    """Taylor and Green's vortices: the velocity keeps its shape and falls by exp(-2 nu k^2 t)."""
    n, viscosity, steps = 48, 0.02, 300
    k = 2 * np.pi / n
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    start = 0.03 * np.stack([np.sin(k * x) * np.cos(k * y), -np.cos(k * x) * np.sin(k * y)], -1).astype(np.float32)
    flow = lattice_boltzmann.Flow(box(n), viscosity)
    flow.start(start)
    for _ in range(steps):
        flow.step()
    velocity, expected = flow.velocity.to_numpy(), np.exp(-2 * viscosity * k * k * steps)
    np.testing.assert_allclose((velocity * start).sum() / (start**2).sum(), expected, rtol=0.005)
    np.testing.assert_allclose(velocity, expected * start, atol=0.01 * 0.03)
    assert flow.f.to_numpy().sum(dtype=float) == pytest.approx(n * n, rel=1e-5)


def test_a_flow_between_plates_is_a_parabola():
    width, viscosity, push = 16, 0.15, 1e-4
    solid = np.zeros((3, width + 2), bool)
    solid[:, [0, -1]] = True
    flow = lattice_boltzmann.Flow(solid, viscosity, push)
    flow.start(np.zeros((3, width + 2, 2), np.float32))
    for _ in range(4000):
        flow.step()
    y = np.arange(width) + 0.5  # walls are halfway between cells
    parabola = push / (2 * viscosity) * y * (width - y)
    np.testing.assert_allclose(flow.velocity.to_numpy()[1, 1:-1, 0], parabola, atol=0.01 * parabola.max())


def test_a_cylinder_drags_the_stream():
    channel = lattice_boltzmann.Channel(36)
    for _ in range(200):
        channel.step()
    speed = channel.velocity.to_numpy()[..., 0]
    assert not speed[channel.solid.to_numpy() == 1].any()
    behind = speed[int(36 * 0.6 + channel.radius) + 2, 18]
    assert behind < 0.3 * channel.speed < channel.speed < speed.max() < 2 * channel.speed


# particle in cell


def test_plasma_oscillates_at_its_frequency():
    n, cells = 4000, 64
    x = (np.arange(n) + 0.5) / n
    plasma = two_stream.Plasma(x + 1e-3 * np.sin(2 * np.pi * x), np.zeros(n), cells)
    wave, found = np.sin(2 * np.pi * np.arange(cells) / cells), []
    for _ in range(650):
        plasma.step()
        found.append(float(plasma.field.to_numpy() @ wave))
    crossings = np.flatnonzero(np.diff(np.sign(found)))
    assert len(crossings) == 21
    period = 2 * two_stream.dt * (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    assert period == pytest.approx(2 * np.pi, rel=0.01)


def test_two_beams_are_unstable_at_the_rate_of_theory():
    """Fluid theory of cold beams: 1 = (1/2) / (w - k v)^2 + (1/2) / (w + k v)^2."""
    plasma = two_stream.beams(20_000, 128)
    momentum, energy, electric = plasma.electrons.v.to_numpy().sum(), sum(plasma.energies()), []
    for _ in range(220):
        plasma.step()
        electric.append(plasma.energies()[1])
    rate = np.polyfit(np.arange(140, 220) * two_stream.dt, 0.5 * np.log(electric[140:]), 1)[0]
    kv = 2 * np.pi * two_stream.beam_speed
    assert rate == pytest.approx(math.sqrt(math.sqrt(2 * kv**2 + 0.25) - kv**2 - 0.5), rel=0.03)
    assert plasma.electrons.v.to_numpy().sum() == pytest.approx(momentum, abs=1e-11)
    assert sum(plasma.energies()) == pytest.approx(energy, rel=0.01)


# smoothed particles


def cloud(pull):
    x = np.random.default_rng(1).uniform([0.4, 0.4], [0.9, 0.8], (300, 2)).astype(np.float32)
    return x, sph.Water(x, 0.02, pull)


def test_the_grid_finds_all_neighbours():
    x, water = cloud(0.0)
    water.sort()
    water.compress()
    assert sorted(water.order.to_numpy()) == list(range(len(water.order.to_numpy())))
    r = np.linalg.norm(x[:, None].astype(float) - x[None], axis=2) / water.h
    shares = np.where(r < 2, 7 / (4 * np.pi * water.h**2) * (1 - r / 2) ** 4 * (1 + 2 * r), 0)
    density = water.particles.density.to_numpy()[: water.moving]
    np.testing.assert_allclose(density, water.mass * shares.sum(1), rtol=1e-5)


def test_water_far_from_walls_keeps_its_momentum_and_falls():
    _, water = cloud(sph.gravity)
    v = np.zeros(water.particles.v.to_numpy().shape, np.float32)
    v[: water.moving] = np.random.default_rng(2).normal(size=(water.moving, 2))
    water.particles.v.from_numpy(v)
    for _ in range(20):
        water.step()
    after = water.particles.v.to_numpy()
    gained = (after - v)[: water.moving].mean(0)
    np.testing.assert_allclose(gained, [0, -20 * water.dt * sph.gravity], atol=1e-5)
    assert not after[water.moving :].any()


def test_friction_takes_energy():
    i, j = np.meshgrid(np.arange(15), np.arange(15), indexing="ij")
    x = (np.stack([i, j], -1).reshape(-1, 2) * 0.025 + 0.5).astype(np.float32)  # so sparse that there is no pressure
    water = sph.Water(x, 0.02, pull=0.0)
    v = np.zeros(water.particles.v.to_numpy().shape, np.float32)
    v[: water.moving] = 0.1 * np.random.default_rng(2).normal(size=(water.moving, 2))
    water.particles.v.from_numpy(v)
    for _ in range(20):
        water.step()
    assert not water.particles.pressure.to_numpy()[: water.moving].any()
    assert (water.particles.v.to_numpy() ** 2).sum() < 0.99 * (v**2).sum()


def test_pressure_in_a_lake_grows_with_depth():
    spacing = 0.05
    i, j = np.meshgrid(np.arange(40), np.arange(12), indexing="ij")
    x = ((np.stack([i, j], -1).reshape(-1, 2) + 0.5) * spacing).astype(np.float32)
    water = sph.Water(x, spacing)
    for _ in range(2500):
        water.step()
    x, pressure = water.particles.x.to_numpy()[: water.moving], water.particles.pressure.to_numpy()[: water.moving]
    inner = (np.abs(x[:, 0] - 1) < 0.7) & (x[:, 1] > 2 * spacing) & (x[:, 1] < 9 * spacing)
    slope = np.polyfit(x[inner, 1], pressure[inner], 1)[0]
    assert slope == pytest.approx(-sph.density0 * sph.gravity, rel=0.15)
    assert x[:, 1].min() > 0
    assert x[:, 0].min() > 0
    assert x[:, 0].max() < 2


# the material point method


@qp.kernel
def flow(box: qp.template(), stress: qp.types.ndarray(dtype=qp.math.mat2, ndim=1)):
    for p in box.particles:
        stress[p] = box.particles[p].flow()


def flowed(deformation, kind):
    """The stress of deformations, and the elastic part that is left of each."""
    box = materials.Box(len(deformation))
    box.particles.F.from_numpy(np.asarray(deformation, np.float32))
    box.particles.kind.from_numpy(np.full(len(deformation), kind, np.int32))
    box.particles.hardness.fill(1.0)
    stress = qp.Matrix.ndarray(2, 2, qp.f32, len(deformation))
    flow(box, stress)
    return stress.to_numpy(), box.particles.F.to_numpy().astype(float), box


def rotations(angles):
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


@pytest.mark.parametrize("kind", [materials.JELLY, materials.SNOW, materials.SAND])
def test_a_rotation_costs_nothing(kind):
    stress, F, _ = flowed(rotations(np.linspace(0, 6, 20)), kind)
    np.testing.assert_allclose(stress, 0, atol=2e-3)
    np.testing.assert_allclose(F, rotations(np.linspace(0, 6, 20)), atol=1e-5)


def test_jelly_has_henckys_stress_and_keeps_its_deformation():
    rng = np.random.default_rng(3)
    deformation = np.eye(2) + rng.normal(0, 0.2, (50, 2, 2))
    stress, F, _ = flowed(deformation, materials.JELLY)
    U, sigma, _ = np.linalg.svd(deformation)
    mu, la = materials.shear[0], materials.bulk[0]
    tau = 2 * mu * np.log(sigma) + la * np.log(sigma).sum(1, keepdims=True)
    np.testing.assert_allclose(stress, U * tau[:, None] @ U.swapaxes(1, 2), atol=0.05)
    np.testing.assert_allclose(F, deformation, atol=1e-5)


def test_snow_bears_little_and_hardens_under_pressure():
    _, F, box = flowed([np.diag([0.8, 1.0]), np.diag([1.0, 1.3]), np.diag([0.99, 1.0])], materials.SNOW)
    stretches = np.linalg.svd(F)[1]
    assert np.log(stretches).max() <= 5e-3 + 1e-5
    assert np.log(stretches).min() >= -2.5e-2 - 1e-5
    pressed, pulled, untouched = box.particles.hardness.to_numpy()
    assert pressed > 1 > pulled
    assert untouched == pytest.approx(1, abs=1e-4)


def test_sand_bears_no_pull_and_shear_up_to_its_friction():
    rng = np.random.default_rng(5)
    stress, _, _ = flowed(np.eye(2) + rng.normal(0, 0.1, (300, 2, 2)), materials.SAND)
    a, b = np.linalg.eigvalsh(stress.astype(float)).T
    assert a.max() < 0.05, "no pull"
    mu, la = materials.shear[2], materials.bulk[2]
    shear = np.hypot(a - b, b - a) / 2
    allowed = -materials.slope * 2 * mu * (la + mu) / mu * (a + b) / (2 * mu + 2 * la)
    assert (shear <= allowed + 0.5).all()
    assert (np.abs(shear - allowed) < 0.5).mean() > 0.3, "much of it is at the limit"


def test_momentum_changes_by_gravity_only():
    box = materials.blocks(300)
    box.particles.v.from_numpy(np.random.default_rng(0).normal(0, 0.3, (900, 2)).astype(np.float32))
    mass = np.array(materials.density)[box.particles.kind.to_numpy()][:, None] * materials.volume
    before = (mass * box.particles.v.to_numpy()).sum(0)
    for _ in range(40):
        box.step()
    after = (mass * box.particles.v.to_numpy()).sum(0)
    pull = [0, -mass.sum() * materials.gravity * 40 * materials.dt]
    np.testing.assert_allclose(after - before, pull, atol=2e-6)
    assert box.mass.to_numpy().sum() == pytest.approx(mass.sum(), rel=1e-5)


# cloth


def chain(n, k, **options):
    x = np.zeros((n, 3), np.float32)
    x[:, 1] = 5 - 0.1 * np.arange(n)
    return cloth.Cloth(x, [(i, i + 1, k) for i in range(n - 1)], np.arange(n) > 0, mass=0.01, **options)


def test_a_hanging_chain_is_stretched_by_the_weight_below():
    n, k = 9, 50.0
    hanging = chain(n, k)
    for _ in range(1500):
        hanging.step()
    stretch = -np.diff(hanging.x.to_numpy()[:, 1]) - 0.1
    below = 0.01 * cloth.gravity * np.arange(n - 1, 0, -1)
    np.testing.assert_allclose(stretch, below / k, atol=1e-4)
    np.testing.assert_allclose(hanging.v.to_numpy(), 0, atol=1e-3)


def test_a_step_solves_the_implicit_equation():
    """(M + dt^2 K) dv = dt (f - dt K v), with the matrix written out."""
    rng, n = np.random.default_rng(4), 6
    x = rng.normal(size=(n, 3)).astype(np.float32) * 0.2 + [0, 2, 0]
    springs = [(a, b, 30.0 + a) for a in range(n) for b in range(a)]
    free = np.array([1, 1, 0, 1, 1, 1])
    made = cloth.Cloth(x.astype(np.float32), springs, free, mass=0.02)
    moved = x + rng.normal(size=(n, 3)) * 0.05
    v = rng.normal(size=(n, 3)) * free[:, None]
    made.x.from_numpy(moved.astype(np.float32))
    made.v.from_numpy(v.astype(np.float32))
    K, f = np.zeros((n, n, 3, 3)), np.zeros((n, 3))
    f[:, 1] -= 0.02 * cloth.gravity
    for a, b, k in springs:
        d, length = moved[a] - moved[b], np.linalg.norm(x[a] - x[b])
        r = np.linalg.norm(d)
        along = np.outer(d, d) / r**2
        block = k * (along + max(0, 1 - length / r) * (np.eye(3) - along))
        push = -k * (r - length) * d / r
        f[a] += push
        f[b] -= push
        for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            K[i, j] += sign * block
    K = K.swapaxes(1, 2).reshape(3 * n, 3 * n)
    keep = np.repeat(free, 3).astype(bool)
    right = cloth.dt * (f.ravel() - cloth.dt * K @ v.ravel())
    A = 0.02 * np.eye(3 * n) + cloth.dt**2 * K
    expected = np.zeros(3 * n)
    expected[keep] = np.linalg.solve(A[keep][:, keep], right[keep])
    made.step()
    np.testing.assert_allclose(made.v.to_numpy().ravel() - v.ravel(), expected, atol=2e-4 * np.abs(expected).max())


def test_a_free_cloth_keeps_its_momentum():
    floating = cloth.square(8)
    floating.pull = 0.0
    n = len(floating.free.to_numpy())
    x = floating.x.to_numpy() + np.array([0, 3, 0])
    floating.x.from_numpy((x * [1.1, 1, 1]).astype(np.float32))
    v = np.random.default_rng(1).normal(size=(n, 3)).astype(np.float32)
    floating.v.from_numpy(v)
    for _ in range(20):
        floating.step()
    after = floating.v.to_numpy()
    np.testing.assert_allclose(after.mean(0), v.mean(0), atol=1e-3)


def test_a_cloth_stays_outside_the_ball():
    falling = cloth.square(16)
    for _ in range(80):
        falling.step()
    x = falling.x.to_numpy()
    assert np.linalg.norm(x - cloth.ball, axis=1).min() > 0.9 * cloth.radius
    assert x[:, 1].min() < 0.1, "its corners hang"
