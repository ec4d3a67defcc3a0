"""Every example gives the same bytes whether its kernels are called, captured, replayed, or added to a graph."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.cli.demo import EXAMPLES
from quadpy.examples import (
    _transformer,
    conjugate_gradient,
    decode,
    game_of_life,
    image_filter,
    lattice_boltzmann,
    mandelbrot,
    materials,
    mpm88,
    nbody,
    sph,
    stable_fluids,
    two_stream,
)
from quadpy.runtime.device.current import current_config, set_config

STEPS = 3


@pytest.fixture(params=backends())
def arch(request):
    before = current_config()
    qp.init(arch=request.param)
    yield request.param
    set_config(before)


@pytest.fixture
def cpu():
    before = current_config()
    qp.init(arch=qp.cpu)
    yield
    set_config(before)


def by_hand(module, calls):
    """A graph of the kernels of ``module`` that ``calls`` launches, made node by node."""
    graph = qp.graph.Graph()

    def adder(kernel):
        return lambda *args: graph.add_kernel(kernel, *args)

    with pytest.MonkeyPatch.context() as patch:
        for name, thing in list(vars(module).items()):
            if hasattr(type(thing), "__quadpy_kernel__"):
                patch.setattr(module, name, adder(thing))
        calls()
    return graph


def captured(calls):
    with qp.graph.capture() as graph:
        calls()
    return graph


def launch(graph):
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()


# examples with a method ``step`` over NumPy arrays, which a graph of a GPU does not take


def life():
    return game_of_life.Life((np.random.default_rng(1).random((12, 9)) < 0.4).astype(np.uint8))


MAKERS = {
    "game_of_life": (game_of_life, life),
    "image_filter": (image_filter, lambda: image_filter.Filter(image_filter.test_card(24), "cartoon")),
    "nbody": (nbody, lambda: nbody.Galaxies(24)),
    "stable_fluids": (stable_fluids, lambda: stable_fluids.Fluid(12)),
}


def contents(thing):
    return {name: a.tobytes() for name, a in sorted(vars(thing).items()) if isinstance(a, np.ndarray)}


@pytest.mark.parametrize("name", MAKERS)
def test_an_example_with_a_state(cpu, name):
    module, make = MAKERS[name]
    eager, noted, replayed, explicit = make(), make(), make(), make()

    def steps(example):
        for _ in range(STEPS):
            example.step()

    steps(eager)
    launch(captured(lambda: steps(noted)))
    launch(by_hand(module, lambda: steps(explicit)))
    step = qp.graph.replay(type(replayed).step)
    for _ in range(STEPS):
        step(replayed)
    assert contents(eager) == contents(noted) == contents(replayed) == contents(explicit)
    assert "host array" in step.stats.reason  # which Python may use as soon as a kernel was called


def test_mandelbrot(cpu):
    place = (-0.7 + 0.1j, 0.5, 60, 32)
    eager = mandelbrot.draw(*place)
    pictures = []
    for make in (captured, lambda calls: by_hand(mandelbrot, calls)):
        launch(make(lambda: pictures.append(mandelbrot.draw(*place))))
    replayed = qp.graph.replay(mandelbrot.draw)
    pictures += [replayed(*place) for _ in range(2)]
    assert {picture.tobytes() for picture in pictures} == {eager.tobytes()}


@pytest.mark.parametrize("kind", ["smooth", "edges", "cartoon"])
def test_what_a_filter_shows(cpu, kind):
    work = image_filter.Filter(image_filter.test_card(20), kind)
    work.step()
    before = work.now.copy()
    launch(captured(work.step))
    launch(by_hand(image_filter, work.step))
    again = image_filter.Filter(before, kind)
    again.step()
    again.step()
    assert work.draw().tobytes() == again.draw().tobytes()


# examples over device memory


def test_mpm88(cpu):
    """On a GPU the order of the sums on the grid, and so their last bits, may vary."""
    importlib.reload(mpm88)  # its fields stay where the first kernel that any test launched met them
    fields = [mpm88.x, mpm88.v, mpm88.C, mpm88.F, mpm88.grid_m, mpm88.grid_v]

    def run(step):
        mpm88.start()
        for _ in range(2):
            step()
        return [field.to_numpy().tobytes() for field in fields]

    mpm88.start()
    step = qp.graph.replay(mpm88.step)
    noted, made = captured(mpm88.step), by_hand(mpm88, mpm88.step)
    with noted.instantiate() as capture, made.instantiate() as explicit:
        assert run(mpm88.step) == run(capture.launch) == run(step) == run(explicit.launch)
    assert (step.stats.fallbacks, step.stats.captures) == (0, 1)


def test_decode(cpu):
    """Like the tests of the example itself, on every device."""
    size = _transformer.Size(layers=1, width=16, heads=2, hidden=16, context=8)

    def run(call, decoder):
        decode.start(decoder, "ab")
        for _ in range(size.context - 1):
            call(decoder)
        return decode.written(decoder), decoder.logits.to_numpy().tobytes()

    def as_graph(make, decoder):
        with make(lambda: decode.step(decoder)).instantiate() as exec_:
            return run(lambda _: exec_.launch(), decoder)

    forked, chain = decode.make_decoder(size, 3), decode.make_decoder(size, 3, forks=False)
    eager = run(decode.step, chain)
    assert run(decode.step, forked) == eager
    assert run(qp.graph.replay(decode.step), forked) == eager
    assert as_graph(captured, forked) == eager
    assert as_graph(captured, chain) == eager
    assert as_graph(lambda calls: by_hand(_transformer, calls), chain) == eager


@pytest.mark.parametrize("fuse", [False, True])
def test_conjugate_gradient(arch, fuse):
    """If the loop is not a single launch, a GPU replays it by calling it."""
    n, most = 10, 60
    b = conjugate_gradient.random_charges(n, seed=2)
    made = conjugate_gradient.Solver(n, fuse)

    def result():
        return made.x.to_numpy().tobytes(), int(made.count.to_numpy())

    eager = made.solve(b, most)
    expected = eager[0].tobytes(), eager[1]
    assert 5 < expected[1] < most
    solve = qp.graph.replay(lambda solver: solver.kernel(*solver.arguments(most)))
    for _ in range(2):
        made.x.fill(0)
        solve(made)
        assert result() == expected
    assert solve.stats.fallbacks == 0 or (arch != "cpu" and "has a loop" in solve.stats.reason)
    if arch == "cpu":
        made.x.fill(0)
        launch(captured(lambda: made.kernel(*made.arguments(most))))
        assert result() == expected


CLASSES = {
    "lattice_boltzmann": lambda: lattice_boltzmann.Channel(18),
    "materials": lambda: materials.blocks(40),
    "sph": lambda: sph.dam(0.1),
    "two_stream": lambda: two_stream.beams(60, 16),
}
"""Examples whose kernels are methods, over fields."""

UNCAPTURED = {
    "cloth": "how many launches a step has depends on what they return",
    "path_tracer": "each launch draws other random numbers",
    "predator_prey": "a kernel returns the misfit",
    "throw": "a kernel returns the distance",
    "heat_sink": "conjugate gradients on the host decide when they end",
    "seismic": "it is a graph already",
    "crawler": "it is a graph already",
}


def state_of(thing):
    fields = {name: field.to_numpy() for name, field in sorted(vars(thing).items()) if hasattr(field, "to_numpy")}
    arrays = {name: value if isinstance(value, dict) else {"": value} for name, value in fields.items()}
    return {(name, member): a.tobytes() for name, value in arrays.items() for member, a in value.items()}


@pytest.mark.parametrize("name", CLASSES)
def test_an_example_of_a_class(name):
    before = current_config()
    qp.init(arch=qp.cpu, cpu_max_num_threads=1)  # more threads sort particles in any order
    try:
        eager, noted = CLASSES[name](), CLASSES[name]()
        start = state_of(eager)
        for _ in range(STEPS):
            eager.step()
        launch(captured(lambda: [noted.step() for _ in range(STEPS)]))
        assert state_of(noted) == state_of(eager) != start
    finally:
        set_config(before)


def test_every_example_is_here():
    assert {*MAKERS, *CLASSES, *UNCAPTURED, "mandelbrot", "mpm88", "decode", "conjugate_gradient"} == set(EXAMPLES)
