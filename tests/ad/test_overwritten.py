"""Kernels that overwrite what their derivative needs: on a tape, the old values are kept."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import quadpy as qp

F64 = qp.Array1D[qp.f64]
N = 7


pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def squares(x: F64, v: F64, n: qp.i32) -> None:
    for i in x:
        x[i] = x[i] * x[i] + v[i]


@qp.kernel
def bounces(x: F64, v: F64, n: qp.i32) -> None:
    """As particles at a wall."""
    for i in x:
        x[i] += 0.1 * v[i]
        if x[i] < 0.0:
            x[i] = -0.5 * x[i] * v[i]
            v[i] = -v[i] * v[i]
        elif x[i] > 1.0:
            x[i] = 2.0 - x[i]
            v[i] *= -0.9 * x[i]
        v[i] += qp.sin(x[i])


@qp.kernel
def loops(x: F64, v: F64, n: qp.i32) -> None:
    for i in x:
        for _ in range(n):
            x[i] = qp.sin(x[i]) + v[i]
            v[i] *= x[i]


@qp.kernel
def nested(x: F64, v: F64, n: qp.i32) -> None:
    for i in x:
        for k in range(n):
            for _ in range(k):
                x[i] = 0.5 * x[i] * x[i] + 0.1
            v[i] += x[i] * x[i]


@qp.kernel
def leaves(x: F64, v: F64, n: qp.i32) -> None:
    for i in x:
        x[i] = 0.4 * x[i] ** 3
        for k in range(n):
            if x[i] > 2.0:
                break
            x[i] = x[i] * 1.1 + 0.1 * k
            if x[i] < 0.5:
                continue
            v[i] *= x[i]


@qp.kernel
def repeats(x: F64, v: F64, n: qp.i32) -> None:
    for i in x:
        x[i] += v[i]
        while x[i] * x[i] > 0.5:
            x[i] = 0.7 * x[i] * qp.cos(v[i])
        v[i] = v[i] * x[i]


@qp.kernel
def swaps(x: F64, v: F64, n: qp.i32) -> None:
    for i in x:
        old = x[i]
        x[i] = v[i] * old
        v[i] = old * x[i]


@qp.kernel
def neighbours(x: F64, v: F64, n: qp.i32) -> None:
    """Two elements that an iteration has for itself."""
    for i in range(x.shape[0] // 2):
        a, b = x[2 * i], x[2 * i + 1]
        x[2 * i] = a * b
        x[2 * i + 1] = x[2 * i] * b + v[i] * v[i]


@qp.kernel
def serial(x: F64, v: F64, n: qp.i32) -> None:
    if n > 0:
        x[2] = x[2] * x[2]
        x[3] = x[2] * v[1] * x[3]


PROGRAMS = [squares, bounces, loops, nested, leaves, repeats, swaps, neighbours, serial]


def start():
    rng = np.random.default_rng(3)
    return rng.uniform(-1.2, 1.4, N), rng.uniform(-1.0, 1.0, N)


def differences(kernel, calls=1, n=3):
    """The gradient of the sum of squares after ``calls`` calls, by differences of order 4."""

    def loss(numbers):
        x, v = (qp.ndarray(qp.f64, N) for _ in range(2))
        x.from_numpy(numbers[:N].copy())
        v.from_numpy(numbers[N:].copy())
        for _ in range(calls):
            kernel(x, v, n)
        return (x.to_numpy() ** 2).sum() + 0.5 * (v.to_numpy() ** 2).sum()

    at, h = np.concatenate(start()), 1e-4
    found = []
    for step in h * np.eye(2 * N):
        near = loss(at + step) - loss(at - step)
        far = loss(at + 2 * step) - loss(at - 2 * step)
        found.append((8 * near - far) / (12 * h))
    return np.array(found)


@qp.kernel
def add_up(x: F64, v: F64, total: qp.Array0D[qp.f64]) -> None:
    for i in x:
        total[None] += x[i] ** 2 + 0.5 * v[i] ** 2


class Arrays:
    def __init__(self):
        self.x, self.v = (qp.ndarray(qp.f64, N, needs_grad=True) for _ in range(2))
        self.total = qp.ndarray(qp.f64, (), needs_grad=True)
        self.reset()

    def reset(self):
        for array, numbers in zip((self.x, self.v), start(), strict=True):
            array.from_numpy(numbers)
        self.total.fill(0)

    def gradient(self):
        return np.concatenate([self.x.grad.to_numpy(), self.v.grad.to_numpy()])


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("kernel", PROGRAMS, ids=lambda each: each.source.name)
def test_as_differences(kernel, calls):
    own = Arrays()
    with qp.ad.Tape(own.total):
        for _ in range(calls):
            kernel(own.x, own.v, 3)
        add_up(own.x, own.v, own.total)
    after = own.x.to_numpy()
    assert np.allclose(own.gradient(), differences(kernel, calls), rtol=1e-6, atol=1e-8)
    again = Arrays()
    for _ in range(calls):
        kernel(again.x, again.v, 3)
    assert np.array_equal(again.x.to_numpy(), after), "arrays are as the forward pass left them"


def test_in_a_chain_with_what_runs_on_the_values_afterwards():
    """Before and after it, calls need the values as they were then."""

    def step(x, v):
        squares(x, v, 0)
        bounces(x, v, 0)
        add_up_into(x, v)
        squares(v, x, 0)

    own = Arrays()
    with qp.ad.Tape(own.total):
        step(own.x, own.v)
        add_up(own.x, own.v, own.total)
    assert np.allclose(own.gradient(), differences(lambda x, v, n: step(x, v)), rtol=1e-6, atol=1e-8)


@qp.kernel
def add_up_into(x: F64, v: F64) -> None:
    for i in x:
        v[i] += x[i] * x[i]


@pytest.mark.parametrize("kernel", PROGRAMS, ids=lambda each: each.source.name)
def test_replayed_and_over_graphs(kernel):
    own = Arrays()
    with qp.ad.Tape(own.total):
        kernel(own.x, own.v, 3)
        kernel(own.x, own.v, 2)
        add_up(own.x, own.v, own.total)
    wanted = own.gradient()

    @qp.graph.replay
    def step():
        with qp.ad.Tape(own.total):
            kernel(own.x, own.v, 3)
            kernel(own.x, own.v, 2)
            add_up(own.x, own.v, own.total)

    for _ in range(3):
        own.reset()
        step()
        assert own.gradient().tobytes() == wanted.tobytes()

    with qp.graph.capture() as graph:
        kernel(own.x, own.v, 3)
        kernel(own.x, own.v, 2)
    own.reset()
    with graph.instantiate() as run, qp.ad.Tape(own.total):
        run.launch()
        add_up(own.x, own.v, own.total)
    assert own.gradient().tobytes() == wanted.tobytes()


def test_vectors_components_and_structs():
    @qp.dataclass
    class Ball:
        x: qp.types.vector(2, qp.f64)
        v: qp.types.vector(2, qp.f64)

    balls = Ball.field(3, needs_grad=True)
    loss = qp.field(qp.f64, (), needs_grad=True)

    @qp.kernel
    def step() -> None:
        for i in balls:
            balls[i].x += 0.1 * balls[i].v * balls[i].x[0]
            for d in qp.static(range(2)):
                if balls[i].x[d] < 0.0:
                    balls[i].x[d] *= balls[i].x[1 - d]
                    balls[i].v[d] *= -0.5 * balls[i].x[d]

    @qp.kernel
    def add() -> None:
        for i in balls:
            loss[None] += balls[i].x.dot(balls[i].x) + balls[i].v.dot(balls[i].v) * balls[i].x[0]

    start = np.random.default_rng(1).uniform(-1, 1, (2, 3, 2))

    def set_to(numbers):
        balls.x.from_numpy(numbers[0])
        balls.v.from_numpy(numbers[1])
        loss.fill(0)

    set_to(start)
    with qp.ad.Tape(loss):
        step()
        step()
        add()
    found = np.stack([balls.x.grad.to_numpy(), balls.v.grad.to_numpy()])
    for at in np.ndindex(start.shape):
        sides = []
        for h in (1e-6, -1e-6):
            moved = start.copy()
            moved[at] += h
            set_to(moved)
            step()
            step()
            add()
            sides.append(loss[None])
        assert abs(found[at] - (sides[0] - sides[1]) / 2e-6) < 1e-6


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_what_cannot_be_kept_is_refused_with_both_lines():
    @qp.kernel
    def two_loops(x: F64) -> None:
        for i in x:
            x[i] = x[i] * x[i]
        for i in x:
            x[i] = x[i] * x[i]

    @qp.kernel
    def moves(x: F64, at: qp.Array1D[qp.i32]) -> None:
        for _i in range(1):
            for k in range(3):
                x[at[k]] = x[at[k + 1]] * x[k]

    own, at = Arrays(), qp.ndarray(qp.i32, N)
    for kernel, args, text in ((two_loops, (own.x,), "x[i] = x[i]"), (moves, (own.x, at), "x[at[k]]")):
        with qp.ad.Tape(own.total), pytest.raises(qp.KernelTypeError, match="the adjoint needs") as caught:
            kernel(*args)
        assert f"line {line_of(kernel.source.fn, text)}" in str(caught.value)


def test_by_hand_it_is_an_error_that_names_the_tape():
    own = Arrays()
    squares(own.x, own.v, 0)
    with pytest.raises(qp.KernelTypeError, match="on a tape, which keeps the old value"):
        squares.grad(own.x, own.v, 0)


def test_a_failed_call_leaves_nothing_on_the_tape():
    own = Arrays()
    with qp.ad.Tape(own.total):
        squares(own.x, own.v, 0)
        with pytest.raises(qp.ArgumentError):
            squares(own.x, own.v)
        add_up(own.x, own.v, own.total)
    assert np.allclose(own.gradient(), differences(squares), rtol=1e-6)


def test_memory_is_told_before():
    own = Arrays()

    def run():
        with qp.ad.Tape(own.total):
            squares(own.x, own.v, 0)
            add_up(own.x, own.v, own.total)

    assert qp.ad.memory(run) >= 8 * N
