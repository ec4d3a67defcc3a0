"""Checkpoints: the same gradients from few kept states, and no more steps than the theory says."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import quadpy as qp
from quadpy.ad.steps import kept_first, segments
from quadpy.runtime.device.current import current_config
from quadpy.runtime.memory.accounting import Accounting

F64 = qp.Array1D[qp.f64]


pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def kick(x: F64, v: F64, force: F64, k: qp.f64) -> None:
    for i in x:
        v[i] -= k * force[i] * qp.sin(x[i])


@qp.kernel
def drift(x: F64, v: F64, new: F64) -> None:
    for i in x:
        new[i] = x[i] + 0.1 * v[i]


@qp.kernel
def add_up(a: F64, total: qp.Array0D[qp.f64]) -> None:
    for i in a:
        total[None] += a[i] ** 2


class Pendulum:
    """Two arrays in turn hold the positions; the host writes one more."""

    def __init__(self):
        self.x, self.new, self.v, self.force = (qp.ndarray(qp.f64, 3, needs_grad=True) for _ in range(4))
        self.loss, self.steps = qp.ndarray(qp.f64, (), needs_grad=True), []

    def start(self):
        self.x.from_numpy(np.array([1.1, 0.9, -2.0]))
        self.v.fill(0)
        self.force.fill(1)
        self.loss.fill(0)

    def step(self, number):
        self.steps.append(number)
        x, new = (self.x, self.new) if number % 2 == 0 else (self.new, self.x)
        if number == 3:
            self.v[1] = 0.5
        kick(x, self.v, self.force, 0.1 + 0.01 * number)
        drift(x, self.v, new)

    def run(self, n, way):
        self.start()
        with qp.ad.Tape(self.loss):
            kick(self.x, self.v, self.force, 0.3)
            way(self, n)
            add_up((self.x, self.new)[n % 2], self.loss)
        arrays = self.x, self.new, self.v, self.force
        return [part.to_numpy() for each in arrays for part in (each, each.grad)]


def plain(pendulum, n):
    for number in range(n):
        pendulum.step(number)


@pytest.mark.parametrize("n", [1, 2, 7, 12])
@pytest.mark.parametrize("slots", [1, 2, 3, None])
def test_the_same_bits(n, slots):
    pendulum = Pendulum()
    expected = pendulum.run(n, plain)
    found = pendulum.run(n, lambda self, n: qp.ad.checkpoint(self.step, n, slots=slots))
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


@functools.cache
def fewest(steps, slots):
    """How many steps are repeated at least, by dynamic programming; not counted is the one before going back."""
    if steps == 1 or slots == 1:
        return steps * (steps - 1) // 2
    return min(m + fewest(steps - m, slots - 1) + fewest(m, slots) for m in range(1, steps))


@functools.cache
def repeated(steps, slots):
    if steps == 1 or slots == 1:
        return steps * (steps - 1) // 2
    first = kept_first(steps, slots)
    return first + repeated(steps - first, slots - 1) + repeated(first, slots)


def test_the_schedule_repeats_as_few_steps_as_possible():
    for steps in range(1, 60):
        for slots in range(1, 8):
            assert repeated(steps, slots) == fewest(steps, slots)
            parts = segments(steps, slots)
            assert len(parts) <= slots
            assert (parts[0][0], parts[-1][1]) == (0, steps)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_how_often_steps_run(slots):
    n, pendulum = 13, Pendulum()
    pendulum.run(n, lambda self, n: qp.ad.checkpoint(self.step, n, slots=slots))
    last = n - segments(n, slots)[-1][0]  # the first run is the one before, except for the last part
    assert len(pendulum.steps) == n + n + fewest(n, slots) - (n - last)


def test_of_a_graph_and_in_a_graph():
    pendulum = Pendulum()
    expected = pendulum.run(6, plain)
    steps = []
    for parity in range(2):
        with qp.graph.capture() as graph:
            kick(*(pendulum.x, pendulum.v) if parity == 0 else (pendulum.new, pendulum.v), pendulum.force, 0.1)
            drift(*((pendulum.x, pendulum.v, pendulum.new) if parity == 0 else (pendulum.new, pendulum.v, pendulum.x)))
        steps.append(graph.instantiate())

    def by_graphs(self, n):
        qp.ad.checkpoint(lambda number: steps[number % 2].launch(), n, slots=2)

    def eagerly(self, n):
        for number in range(n):
            x, new = (self.x, self.new) if number % 2 == 0 else (self.new, self.x)
            kick(x, self.v, self.force, 0.1)
            drift(x, self.v, new)

    found, same = pendulum.run(6, by_graphs), pendulum.run(6, eagerly)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in same]

    with qp.graph.capture() as graph, qp.ad.Tape(pendulum.loss):
        kick(pendulum.x, pendulum.v, pendulum.force, 0.3)
        qp.ad.checkpoint(pendulum.step, 6, slots=2)
        add_up(pendulum.x, pendulum.loss)
    with graph.instantiate() as run:
        for _ in range(2):
            pendulum.start()
            run.launch()
            run.synchronize()
            arrays = pendulum.x, pendulum.new, pendulum.v, pendulum.force
            found = [part.to_numpy().tobytes() for each in arrays for part in (each, each.grad)]
            assert found == [each.tobytes() for each in expected]


def test_without_a_tape_it_is_a_loop():
    pendulum = Pendulum()
    pendulum.start()
    qp.ad.checkpoint(pendulum.step, 5)
    assert pendulum.steps == [0, 1, 2, 3, 4]


def test_bad_arguments_and_steps():
    pendulum = Pendulum()
    for n, slots in ((-1, None), (1.5, None), (3, 0)):
        with pytest.raises(qp.ArgumentError, match="is not a number of"):
            qp.ad.checkpoint(pendulum.step, n, slots=slots)
    other = qp.ndarray(qp.f64, 3)

    def writes_a_part(number):
        other[1] = number
        kick(pendulum.x, pendulum.v, other, 1.0)

    with qp.ad.Tape(pendulum.loss), pytest.raises(qp.ArgumentError, match="writes to a part"):
        qp.ad.checkpoint(writes_a_part, 3)
    x = qp.field(qp.f64, (), needs_dual=True)
    with qp.ad.FwdMode(x, x), pytest.raises(qp.ArgumentError, match="forward mode"):
        qp.ad.checkpoint(pendulum.step, 3)


def test_lost_derivatives_are_an_error():
    pendulum, between = Pendulum(), qp.ndarray(qp.f64, 3)

    def step(number):
        drift(pendulum.x, pendulum.v, between)
        drift(between, pendulum.v, pendulum.x)

    with qp.ad.Tape(pendulum.loss), pytest.raises(qp.ArgumentError, match="which has no grad"):
        qp.ad.checkpoint(step, 3)


def test_an_error_in_a_step_leaves_the_tape_as_it_was():
    pendulum = Pendulum()

    def fails(number):
        pendulum.step(number)
        if number == 2:
            raise ZeroDivisionError

    def run():
        with qp.ad.Tape(pendulum.loss):
            qp.ad.checkpoint(fails, 5)

    with pytest.raises(ZeroDivisionError):
        run()
    assert pendulum.x.grad.to_numpy().tolist() == [0, 0, 0]
    assert [e.tobytes() for e in pendulum.run(4, plain)] == [
        e.tobytes() for e in pendulum.run(4, lambda self, n: qp.ad.checkpoint(self.step, n))
    ]


@pytest.mark.parametrize("slots", [1, 3, 20])
def test_memory_is_told_before(slots):
    pendulum = Pendulum()
    pendulum.start()

    def learn():
        pendulum.loss.fill(0)
        with qp.ad.Tape(pendulum.loss):
            kick(pendulum.x, pendulum.v, pendulum.force, 0.3)
            qp.ad.checkpoint(pendulum.step, 12, slots=slots)
            add_up(pendulum.x, pendulum.loss)

    before = [each.to_numpy().tolist() for each in (pendulum.x, pendulum.v)]
    told = qp.ad.memory(learn)
    assert [each.to_numpy().tolist() for each in (pendulum.x, pendulum.v)] == before
    state = 3 * 3 * 8  # x, v, new
    assert told >= slots * state if slots < 12 else told >= 11 * state
    learn()  # compiled
    with Peak() as peak:
        learn()
    if current_config().arch in ("cpu", "python"):  # GPUs take memory in larger pieces
        assert peak.most == told


class Peak:
    """The memory that is allocated while it is open, at most."""

    def __enter__(self):
        self.now = self.most = 0
        self.before, Accounting.told = Accounting.told, self
        return self

    def __call__(self, driver, nbytes, stream):
        self.now += nbytes
        self.most = max(self.most, self.now)

    def __exit__(self, *exception):
        Accounting.told = self.before


def test_memory_without_checkpoints_grows_with_the_steps():
    pendulum = Pendulum()

    def learn(n):
        with qp.ad.Tape(pendulum.loss):
            plain(pendulum, n)
            add_up(pendulum.x, pendulum.loss)

    assert qp.ad.memory(learn, 20) - qp.ad.memory(learn, 10) >= 10 * 24


def test_steps_with_derivatives_of_their_own_and_without():
    """The custom function squares the speeds; what is seen under ``no_grad`` has no influence."""
    pendulum, seen = Pendulum(), qp.ndarray(qp.f64, ())

    @qp.kernel
    def half(v: F64) -> None:
        for i in v:
            v[i] *= 0.5

    @qp.ad.custom
    def damp(v):
        half(v)

    @damp.backward
    def _(v):
        half(v.grad)

    def step(number):
        pendulum.step(number)
        damp(pendulum.v)
        with qp.ad.no_grad():
            add_up(pendulum.x, seen)

    def plainly(self, n):
        for number in range(n):
            pendulum.step(number)
            half(pendulum.v)

    found = pendulum.run(6, lambda self, n: qp.ad.checkpoint(step, n, slots=2))
    assert [each.tobytes() for each in found] == [each.tobytes() for each in pendulum.run(6, plainly)]


def test_steps_inside_steps():
    pendulum = Pendulum()

    def outer(self, n):
        qp.ad.checkpoint(lambda k: qp.ad.checkpoint(lambda j: self.step(3 * k + j), 3, slots=1), n // 3, slots=2)

    found = pendulum.run(12, outer)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in pendulum.run(12, plain)]


@pytest.mark.parametrize("slots", [1, 2, 7])
@pytest.mark.parametrize("nested", [False, True])
def test_random_numbers_in_steps_are_drawn_again(slots, nested):
    pendulum, noise = Pendulum(), qp.ndarray(qp.f64, 3, needs_grad=True)

    @qp.kernel
    def draw(a: F64) -> None:
        for i in a:
            a[i] = qp.random(qp.f64)

    def step(number):
        draw(noise)
        kick(pendulum.x, pendulum.v, noise, 0.1)
        if number % 2:
            draw(noise)
            kick(pendulum.x, pendulum.v, noise, 0.05)
        pendulum.step(number)

    def pairs(number):
        qp.ad.checkpoint(lambda k: step(2 * number + k), 2, slots=1)

    def steps(_, n):
        qp.ad.checkpoint(pairs if nested else step, n // 2 if nested else n, slots=slots)

    def all_steps(_, n):
        for number in range(n):
            step(number)

    def found(how):
        qp.init(arch=current_config().arch, random_seed=11)
        return [each.tobytes() for each in pendulum.run(8, how)]

    assert found(steps) == found(all_steps)
