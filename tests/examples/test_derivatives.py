"""Examples that use derivatives: their gradients are those of what they compute, and they learn."""

import numpy as np
import pytest

import quadpy as qp
from quadpy.examples import crawler, heat_sink, predator_prey, seismic, throw
from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    qp.init(arch=qp.cpu)
    yield
    set_config(before)


def test_seismic_finds_the_gradient_of_the_misfit_and_goes_down():
    plate = seismic.problem(16)
    before = plate.improve(1e-9)
    gradient, speed = plate.speed.grad.to_numpy().astype(float), plate.speed.to_numpy()
    direction = np.random.default_rng(1).standard_normal(speed.shape).astype(np.float32)
    direction[: 2 * seismic.depth + 1] = 0

    def misfit(h):
        plate.speed.from_numpy(speed + h * direction)
        return plate.improve(1e-9)

    h = 2e-3
    assert np.sum(gradient * direction) == pytest.approx((misfit(h) - misfit(-h)) / (2 * h), rel=2e-2)
    plate.speed.from_numpy(speed)
    assert [plate.improve(0.01) for _ in range(6)][-1] < 0.65 * before


def test_seismic_keeps_as_much_memory_as_it_says():
    plate = seismic.problem(16)
    few, many = seismic.Plate(16, 64, slots=4), seismic.Plate(16, 64, slots=64)
    kept = [qp.ad.memory(each.misfit_and_gradient) for each in (few, many)]
    state = 3 * 16 * 16 * 4
    assert kept[0] < 12 * state < kept[1]
    assert plate.misfit[None] == 0, "nothing ran"


def test_predator_prey_finds_the_parameters():
    fit = predator_prey.Fit()
    for _ in range(120):
        last = fit.improve()
    assert last < 0.2
    assert np.abs(predator_prey.residuals(fit)).max() < 0.05  # it began at 0.15


def test_predator_prey_goes_back_through_the_steps_that_were_taken():
    fit = predator_prey.Fit()
    value, (gradient,) = qp.ad.value_and_grad(lambda p: fit.loss())(fit.p)
    p, h = fit.p.to_numpy(), 1e-4  # the error control lets the number of steps jump
    for k in range(4):
        found = []
        for sign in (1, -1):
            fit.p.from_numpy(p + sign * h * np.eye(4)[k])
            found.append(float(fit.loss()))
        assert gradient[k] == pytest.approx((found[0] - found[1]) / (2 * h), rel=1e-2)
    assert value > 1


def test_throw_hits_the_target_and_its_gradient_is_right():
    thrower = throw.Thrower()
    start = thrower.throw.to_numpy()
    first = thrower.improve()
    gradient, h = thrower.throw.grad.to_numpy(), 1e-6
    for k in range(3):
        found = []
        for sign in (1, -1):
            thrower.throw.from_numpy(start + sign * h * np.eye(3)[k])
            found.append(float(throw.fly(thrower.throw, thrower.path)))
        assert gradient[k] == pytest.approx((found[0] - found[1]) / (2 * h), rel=1e-4, abs=1e-6)
    last = min(thrower.improve() for _ in range(120))
    assert last < throw.radius < first


def test_heat_sink_has_the_gradient_of_the_solution_and_cools():
    plate = heat_sink.Plate(8)
    plate.k.from_numpy(np.random.default_rng(2).uniform(0.2, 0.6, (8, 8)))
    with qp.ad.Tape() as tape:
        heat_sink.cool(plate.t, plate.k)
        tape.loss = heat_sink.mean(plate.t)
    gradient, k, h = plate.k.grad.to_numpy(), plate.k.to_numpy(), 1e-6
    direction = np.random.default_rng(3).standard_normal(k.shape)
    found = []
    for sign in (1, -1):
        plate.k.from_numpy(k + sign * h * direction)
        heat_sink.cool(plate.t, plate.k)
        found.append(float(heat_sink.mean(plate.t)))
    assert np.sum(gradient * direction) == pytest.approx((found[0] - found[1]) / (2 * h), rel=1e-5)
    plate = heat_sink.Plate(8)
    means = [plate.improve() for _ in range(6)]
    assert means[-1] < 0.8 * means[0]
    assert plate.k.to_numpy().mean() == pytest.approx(heat_sink.share, rel=1e-3)


def test_crawler_learns_to_walk():
    body = crawler.Crawler(40)
    distances = [body.improve() for _ in range(6)]
    assert distances[-1] > distances[0] + 1e-4
    assert np.abs(body.weights.grad.to_numpy()).max() > 0
