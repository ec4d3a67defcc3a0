"""Tapes and graphs: inside captures and replays, and over launches of graphs; and several streams."""

from __future__ import annotations

import gc
from functools import partial

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.device.current import current_config

F64 = qp.Array1D[qp.f64]


pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def kick(x: F64, v: F64, k: qp.f64) -> None:
    for i in x:
        v[i] -= k * qp.sin(x[i])


@qp.kernel
def drift(x: F64, v: F64) -> None:
    for i in x:
        x[i] += 0.1 * v[i]


@qp.kernel
def noisy(x: F64, y: F64) -> None:
    for i in x:
        y[i] = x[i] * qp.random(qp.f64)


@qp.kernel
def square(a: F64, b: F64) -> None:
    for i in a:
        b[i] = a[i] * a[i]


@qp.kernel
def add_up(a: F64, total: qp.Array0D[qp.f64]) -> None:
    for i in a:
        total[None] += a[i]


def noisy_step(x, y, loss):
    loss.fill(0)
    with qp.ad.Tape(loss):
        noisy(x, y)
        add_up(y, loss)


def arrays(*numbers):
    x = qp.ndarray(qp.f64, len(numbers), needs_grad=True)
    x.from_numpy(np.array(numbers, float))
    return x, qp.ndarray(qp.f64, len(numbers), needs_grad=True), qp.ndarray(qp.f64, (), needs_grad=True)


START = np.array([1.1, 0.9, -2.0])


def eager(steps):
    """The pendulum's last state, and its derivatives, from calls one by one."""
    x, v, loss = arrays(*START)
    with qp.ad.Tape(loss):
        for _ in range(steps):
            kick(x, v, 0.1)
            drift(x, v)
        add_up(x, loss)
    return [each.to_numpy().tobytes() for each in (x, v, loss, x.grad, v.grad)]


def test_a_tape_in_a_capture():
    x, v, loss = arrays(*START)
    with qp.graph.capture() as graph:
        loss.fill(0)
        with qp.ad.Tape(loss):
            for _ in range(5):
                kick(x, v, 0.1)
                drift(x, v)
            add_up(x, loss)
    with graph.instantiate() as run:
        for _ in range(2):
            x.from_numpy(START)
            v.fill(0)
            run.launch()
            run.synchronize()
            assert [each.to_numpy().tobytes() for each in (x, v, loss, x.grad, v.grad)] == eager(5)


def test_a_tape_in_a_replay():
    gc.collect()  # a tape clears all gradients: where those of other tests end meanwhile, it is captured again
    x, v, loss = arrays(*START)

    @qp.graph.replay
    def learn(k):
        loss.fill(0)
        with qp.ad.Tape(loss):
            for _ in range(5):
                kick(x, v, k)
                drift(x, v)
            add_up(x, loss)

    for k in (0.1, 0.2, 0.1):
        x.from_numpy(START)
        v.fill(0)
        learn(k)
    assert [each.to_numpy().tobytes() for each in (x, v, loss, x.grad, v.grad)] == eager(5)
    assert learn.state == "captured"
    assert learn.stats.captures == 1


def test_host_writes_in_a_captured_tape():
    x, y, loss = arrays(1, 2, 3)
    with qp.graph.capture() as graph:
        loss.fill(0)
        with qp.ad.Tape(loss):
            square(x, y)
            y[1] = 7.0
            x.fill(5)
            add_up(y, loss)
    with graph.instantiate() as run:
        run.launch()
    assert loss[None] == 17
    assert x.grad.to_numpy().tolist() == [2, 0, 6]
    assert x.to_numpy().tolist() == [5, 5, 5]


@pytest.mark.parametrize("steps", [1, 3])
def test_launches_of_a_graph(steps):
    x, v, loss = arrays(*START)
    with qp.graph.capture() as graph:
        for _ in range(2):
            kick(x, v, 0.1)
            drift(x, v)
    with graph.instantiate() as run, qp.ad.Tape(loss):
        for _ in range(steps):
            run.launch()
        add_up(x, loss)
    assert [each.to_numpy().tobytes() for each in (x, v, loss, x.grad, v.grad)] == eager(2 * steps)


def test_launches_of_a_graph_in_a_captured_tape():
    x, v, loss = arrays(*START)
    with qp.graph.capture() as step:
        kick(x, v, 0.1)
        drift(x, v)
    with step.instantiate() as one:
        with qp.graph.capture() as graph:
            loss.fill(0)
            with qp.ad.Tape(loss):
                for _ in range(3):
                    one.launch()
                add_up(x, loss)
        with graph.instantiate() as run:
            run.launch()
    assert [each.to_numpy().tobytes() for each in (x, v, loss, x.grad, v.grad)] == eager(3)


def test_a_graph_whose_nodes_change():
    x, y, loss = arrays(1, 2, 3)
    z = qp.ndarray(qp.f64, 3, needs_grad=True)
    graph = qp.graph.Graph()
    graph.add_memset(y, 0.0)
    node = graph.add_kernel(kick, x, y, 1.0)
    with graph.instantiate() as run:
        for k, array in ((1.0, y), (2.0, y), (2.0, z)):
            z.fill(0)
            run.update(node.name, x, array, k)
            with qp.ad.Tape(loss):
                run.launch()
                add_up(array, loss)
            assert x.grad.to_numpy() == pytest.approx(-k * np.cos([1, 2, 3]))


def test_replays_on_a_tape():
    x, v, loss = arrays(*START)

    @qp.graph.replay
    def step(k):
        kick(x, v, k)
        drift(x, v)

    with qp.ad.Tape(loss):
        for k in (0.1, 0.3, 0.1, 0.2):
            step(k)
        add_up(x, loss)
    assert step.state == "captured"
    found = [each.to_numpy().tobytes() for each in (x, v, loss, x.grad, v.grad)]
    y, w, total = arrays(*START)
    with qp.ad.Tape(total):
        for k in (0.1, 0.3, 0.1, 0.2):
            kick(y, w, k)
            drift(y, w)
        add_up(y, total)
    assert found == [each.to_numpy().tobytes() for each in (y, w, total, y.grad, w.grad)]


def test_what_a_graph_overwrites_is_kept_for_calls_before():
    x, y, loss = arrays(1, 2, 3)
    with qp.graph.capture() as graph:
        x.fill(9)
        y[1] = 4.0
    with graph.instantiate() as run, qp.ad.Tape(loss):
        square(x, y)
        run.launch()
        add_up(y, loss)
    assert x.grad.to_numpy().tolist() == [2, 0, 6]
    assert x.to_numpy().tolist() == [9, 9, 9]


def test_independent_adjoints_are_forks():
    x, y, loss = arrays(1, 2, 3)
    u, w, _ = arrays(1, 2, 3)
    with qp.graph.capture() as graph:
        square(x, y)
        square(u, w)
    from quadpy.ad.graphs import backward_of

    with graph.instantiate() as run, qp.ad.Tape(loss):
        run.launch()
        add_up(y, loss)
        add_up(w, loss)
        nodes = backward_of(run).run.nodes
    assert [node.after for node in nodes] == [(), (), (), ()]
    assert x.grad.to_numpy().tolist() == u.grad.to_numpy().tolist() == [2, 4, 6]


def test_streams_go_back_at_once():
    x, y, loss = arrays(1, 2, 3)
    _, w, _ = arrays(1, 2, 3)
    first, second = qp.create_stream(), qp.create_stream()

    def run():
        fork, join = qp.create_event(), qp.create_event()
        fork.record()
        for stream in (first, second):
            fork.wait(stream)
        square(x, y, stream=first)
        square(x, w, stream=second)
        for stream in (first, second):
            join.record(stream)
            join.wait()
        add_up(y, loss)
        add_up(w, loss)

    with qp.hazards.check() as found, qp.ad.Tape(loss):
        run()
    assert not found.certain
    assert not found.possible
    assert x.grad.to_numpy().tolist() == [4, 8, 12]
    eager_bits = x.grad.to_numpy().tobytes()
    with qp.graph.capture() as graph:
        loss.fill(0)
        with qp.ad.Tape(loss):
            run()
    with qp.hazards.check() as found, graph.instantiate() as launched:
        launched.launch()
    assert not found.certain
    assert x.grad.to_numpy().tobytes() == eager_bits


def test_captures_around_and_inside_do_not_mix():
    x, y, loss = arrays(1, 2, 3)
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="began outside the capture"), qp.graph.capture():
        square(x, y)
    side = qp.create_stream()
    with qp.graph.capture(), qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="does not record"):
        square(x, y, stream=side)


def test_host_functions_are_refused():
    x, y, loss = arrays(1, 2, 3)
    graph = qp.graph.Graph()
    graph.add_kernel(square, x, y)
    graph.add_host(print, "node")
    with qp.ad.Tape(loss):
        with pytest.raises(qp.ArgumentError, match="host function"):
            qp.graph.host_function(print)
        with graph.instantiate() as run, pytest.raises(qp.ArgumentError, match="kind host"):
            run.launch()


def test_random_numbers_in_a_graph_are_drawn_again():
    x, y, loss = arrays(1, 2, 3)

    with qp.graph.capture() as graph:
        noisy(x, y)
        add_up(y, loss)
        noisy(x, y)
        add_up(y, loss)
    found = []
    with graph.instantiate() as run:
        for _ in range(2):
            loss.fill(0)
            with qp.ad.Tape(loss):
                run.launch()
            found.append(x.grad.to_numpy().tolist())
            assert x.grad.to_numpy() @ x.to_numpy() == pytest.approx(loss[None], rel=1e-12)
    assert found[0] == found[1]  # as a graph draws the same numbers in each launch
    assert len(set(found[0])) == 3


def test_random_numbers_on_captured_and_replayed_tapes():
    x, y, loss = arrays(1, 2, 3)

    step = partial(noisy_step, x, y, loss)

    def result():
        assert x.grad.to_numpy() @ x.to_numpy() == pytest.approx(loss[None], rel=1e-12)
        return x.grad.to_numpy().tolist()

    with qp.graph.capture() as graph:
        step()
    with graph.instantiate() as run:
        found = []
        for _ in range(2):
            run.launch()
            found.append(result())
    assert found[0] == found[1]
    replayed = qp.graph.replay(step)
    seen = []
    for _ in range(5):
        replayed()
        seen.append(tuple(result()))
    assert len(set(seen)) == 5
    assert replayed.stats.captures <= 2


def test_what_a_captured_tape_draws_is_what_calls_draw():
    x, y, loss = arrays(1, 2, 3)

    step = partial(noisy_step, x, y, loss)

    def found(call):
        qp.init(arch=current_config().arch, random_seed=5)
        return [(call(), x.grad.to_numpy().tolist())[1] for _ in range(4)]

    assert found(step) == found(qp.graph.replay(step))


def test_derivatives_lost_in_a_graph_are_an_error():
    x, _, loss = arrays(1, 2, 3)
    between = qp.ndarray(qp.f64, 3)
    with qp.graph.capture() as graph:
        add_up(between, loss)
    with graph.instantiate() as run, qp.ad.Tape(loss):
        square(x, between)
        with pytest.raises(qp.ArgumentError, match="which has no grad"):
            run.launch()


@qp.kernel(graph=True)
def two_ways(x: F64, y: F64, w: F64) -> None:
    with qp.graph.parallel_context():
        with qp.graph.parallel():
            for i in x:
                y[i] = x[i] * x[i]
        with qp.graph.parallel():
            for i in w:
                w[i] = 3 * w[i]


@qp.kernel(graph=True)
def shared_input(x: F64, y: F64, w: F64) -> None:
    with qp.graph.parallel_context():
        with qp.graph.parallel():
            for i in x:
                y[i] = x[i] * x[i]
        with qp.graph.parallel():
            for i in x:
                w[i] = 3 * x[i]


@pytest.mark.parametrize("captured", [False, True])
def test_parallel_sections(captured):
    x, y, loss = arrays(1, 2, 3)
    w = qp.ndarray(qp.f64, 3, needs_grad=True)
    for kernel, of_x, of_w in ((two_ways, [2, 4, 6], [3, 3, 3]), (shared_input, [5, 7, 9], [0, 0, 0])):

        def step(kernel=kernel):
            loss.fill(0)
            with qp.ad.Tape(loss):
                kernel(x, y, w)
                add_up(y, loss)
                add_up(w, loss)

        if captured:
            with qp.graph.capture() as graph:
                step()
            graph.instantiate().launch()
        else:
            step()
        assert x.grad.to_numpy().tolist() == of_x
        assert w.grad.to_numpy().tolist() == of_w


def test_structs_in_a_captured_tape():
    body = qp.types.struct(position=qp.types.vector(2, qp.f64), mass=qp.f64, number=qp.i32)
    bodies, loss = body.field(shape=3, needs_grad=True), qp.field(qp.f64, (), needs_grad=True)

    @qp.kernel
    def moment() -> None:
        for i in bodies:
            loss[None] += bodies[i].mass * bodies[i].position.norm_sqr()

    @qp.kernel
    def grow() -> None:
        for i in bodies:
            bodies[i].mass *= 3.0

    def step():
        loss.fill(0)
        with qp.ad.Tape(loss):
            moment()
            grow()
            moment()

    numbers = {"position": [1.0, 2.0], "mass": 3.0, "number": 1}
    bodies.fill(numbers)
    step()
    bits = [bodies.mass.grad.to_numpy().tobytes(), bodies.position.grad.to_numpy().tobytes()]
    assert bodies.mass.grad.to_numpy().tolist() == [20, 20, 20]
    with qp.graph.capture() as graph:
        step()
    with graph.instantiate() as run:
        bodies.fill(numbers)
        run.launch()
    assert [bodies.mass.grad.to_numpy().tobytes(), bodies.position.grad.to_numpy().tobytes()] == bits


def test_forward_mode_in_captures_and_replays():
    x, y = (qp.field(qp.f64, (), needs_dual=True) for _ in range(2))

    @qp.kernel
    def cube() -> None:
        y[None] = x[None] ** 3

    replayed = qp.graph.replay(cube)
    x[None] = 2
    with qp.ad.FwdMode(y, x):
        replayed()
    assert y.dual[None] == 12
    with qp.graph.capture() as graph, qp.ad.FwdMode(y, x):
        cube()
    with graph.instantiate() as run:
        x[None] = 3
        run.launch()
        assert y.dual[None] == 27
        with qp.ad.FwdMode(y, x), pytest.raises(qp.ArgumentError, match="a graph is launched"):
            run.launch()
