"""Every example, captured and replayed, gives the bytes that it gives when its kernels are called."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.examples import game_of_life, image_filter, mandelbrot, mpm88, nbody, stable_fluids
from quadpy.runtime.current import current_config, set_config

STEPS = 3


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    qp.init(arch=qp.cpu)
    yield
    set_config(before)


def life():
    return game_of_life.Life((np.random.default_rng(1).random((12, 9)) < 0.4).astype(np.uint8))


MAKERS = {
    "game_of_life": life,
    "image_filter": lambda: image_filter.Filter(image_filter.test_card(24), "ink"),
    "nbody": lambda: nbody.Galaxies(24),
    "stable_fluids": lambda: stable_fluids.Fluid(12),
}


def contents(thing):
    return {name: a.tobytes() for name, a in sorted(vars(thing).items()) if isinstance(a, np.ndarray)}


@pytest.mark.parametrize("name", MAKERS)
def test_an_example_with_a_state(name):
    make = MAKERS[name]
    eager, captured, replayed = make(), make(), make()
    for _ in range(STEPS):
        eager.step()
    with qp.graph.capture() as graph:
        for _ in range(STEPS):
            captured.step()
    with graph.instantiate() as run:
        run.launch()
    step = qp.graph.replay(type(replayed).step)
    for _ in range(STEPS):
        step(replayed)
    assert contents(eager) == contents(captured) == contents(replayed)
    assert (step.stats.fallbacks, step.stats.captures) == (0, 1)


def test_mpm88():
    fields = [mpm88.x, mpm88.v, mpm88.C, mpm88.F, mpm88.grid_m, mpm88.grid_v]

    def run(step):
        mpm88.start()
        for _ in range(2):
            step()
        return [field.to_numpy().tobytes() for field in fields]

    mpm88.start()
    with qp.graph.capture() as graph:
        mpm88.step()
    step = qp.graph.replay(mpm88.step)
    with graph.instantiate() as captured:
        assert run(mpm88.step) == run(captured.launch) == run(step)
    assert (step.stats.fallbacks, step.stats.captures) == (0, 1)


def test_mandelbrot():
    place = (-0.7 + 0.1j, 0.5, 60, 32)
    eager = mandelbrot.draw(*place)
    with qp.graph.capture() as graph:
        captured = mandelbrot.draw(*place)
    with graph.instantiate() as run:
        run.launch()
    assert eager.tobytes() == captured.tobytes()
    replayed = qp.graph.replay(mandelbrot.draw)
    for _ in range(2):
        assert replayed(*place).tobytes() == eager.tobytes()
