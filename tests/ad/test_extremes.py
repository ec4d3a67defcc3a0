"""Atomic minima and maxima: the derivative goes to the last iteration that computes the result."""

from __future__ import annotations

import numpy as np
import pytest
from backends import backends
from derivatives import check_both, traced

import quadpy as qp

vec, ints = qp.types.ndarray(qp.f64, ndim=1), qp.types.ndarray(qp.i32, ndim=1)


@pytest.fixture(params=[*backends(), "python"])
def arch(request):
    qp.init(arch=request.param, default_fp=qp.f64)
    yield request.param
    qp.init(arch=qp.cpu)


@pytest.fixture
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def field(shape=()):
    return qp.field(qp.f64, shape, needs_grad=True, needs_dual=True)


def both_ways(loss, x, run, start):
    """The gradient of ``x``, which forward mode must confirm."""
    x.from_numpy(np.array(start))
    with qp.ad.Tape(loss):
        run()
    gradient = x.grad.to_numpy()
    for k in range(len(start)):
        x.from_numpy(np.array(start))
        loss.fill(0)
        with qp.ad.FwdMode(loss, x, seed=np.eye(len(start))[k]):
            run()
        assert loss.dual[None] == gradient[k]
    return gradient.tolist()


def test_into_an_element(arch):
    x, loss = field(5), field()

    @qp.kernel
    def largest():
        for i in x:
            qp.atomic_max(loss[None], x[i] ** 2)

    assert both_ways(loss, x, largest, [1.0, 3.0, 2.0, -3.0, 1.0]) == [0, 0, 0, -6, 0]  # the last of equal ones


def test_into_a_variable(arch):
    x, loss = field(5), field()

    @qp.kernel
    def spread():
        low, high = 100.0, -100.0
        for i in x:
            qp.atomic_min(low, x[i])
            qp.atomic_max(high, 2.0 * x[i])
        loss[None] += high * low

    assert both_ways(loss, x, spread, [1.0, 5.0, 2.0, 3.0, 4.0]) == [10, 2, 0, 0, 0]


def test_a_returned_result(arch):
    x = qp.field(qp.f64, 4, needs_grad=True)

    @qp.kernel
    def largest() -> qp.f64:
        found = -100.0
        for i in x:
            qp.atomic_max(found, x[i] * 3.0)
        return found

    x.from_numpy(np.array([1.0, 7.0, 7.0, 2.0]))
    with qp.ad.Tape() as tape:
        tape.loss = largest()
    assert float(tape.loss) == 21
    assert x.grad.to_numpy().tolist() == [0, 0, 3, 0]


def test_what_was_there_before(arch):
    x, y, loss = field(3), field(2), field()

    @qp.kernel
    def set_first():
        for i in y:
            y[i] = x[0] * 2.0

    @qp.kernel
    def limit():
        for i in x:
            qp.atomic_max(y[i % 2], x[i])

    @qp.kernel
    def add_up():
        for i in y:
            loss[None] += y[i]

    def run():
        set_first()
        limit()
        add_up()

    assert both_ways(loss, x, run, [1.0, 5.0, 0.5]) == [2, 1, 0]


def test_gradients_flow_to_many_elements(arch):
    """Each element has its own winner, which data decide; some have none."""
    n = 200
    x, low, loss = field(n), field(7), field()
    bins = qp.field(qp.i32, n)
    data = np.random.default_rng(0)
    numbers, at = data.integers(0, 9, n).astype(float), data.integers(0, 6, n)
    bins.from_numpy(at.astype(np.int32))
    x.from_numpy(numbers)

    @qp.kernel
    def lowest():
        for i in x:
            qp.atomic_min(low[bins[i]], x[i])

    @qp.kernel
    def weigh():
        for i in low:
            loss[None] += low[i] * (i + 1)

    low.fill(100)
    with qp.ad.Tape(loss):
        lowest()
        weigh()
    expected = np.zeros(n)
    for k in range(6):
        members = np.flatnonzero(at == k)
        expected[members[numbers[members] == numbers[members].min()][-1]] = k + 1
    assert x.grad.to_numpy().tolist() == expected.tolist()
    assert low.grad.to_numpy().tolist() == [0, 0, 0, 0, 0, 0, 7]


@qp.kernel
def in_loops(x: vec, y: vec, w: vec, n: ints):
    for i in x:
        for k in range(n[i]):
            if x[i] > 0.2 * k:
                qp.atomic_max(y[(i + k) % 3], x[i] * qp.sin(x[(i + 1) % 5] + k))
        qp.atomic_max(y[0], x[i] + 0.1)


@qp.kernel
def own_element(x: vec, y: vec, w: vec, n: ints):
    for i in x:
        qp.atomic_min(y[i], qp.sin(x[i]))
        qp.atomic_min(y[i], x[(i + 1) % 5] ** 2)


@qp.kernel
def one_thread(x: vec, y: vec, w: vec, n: ints):
    for _ in range(1):
        for i in range(5):
            qp.atomic_max(y[i % 2], x[i] * x[0])


@qp.kernel
def after_a_store(x: vec, y: vec, w: vec, n: ints):
    best = -5.0
    for i in x:
        y[i] = qp.sin(x[i])
        qp.atomic_max(best, y[i] * x[0])
    for i in w:
        w[i] += best * x[i]


@qp.kernel
def variables_in_loops(x: vec, y: vec, w: vec, n: ints):
    low, total = 9.0, 0.0
    for i in x:
        for k in range(n[i] * 8):
            qp.atomic_min(low, qp.tanh(x[i] + k))
            total += qp.sin(x[i]) * 0.1
    y[3] += qp.sin(low) * total


@pytest.mark.parametrize("kernel", [in_loops, own_element, one_thread, after_a_store, variables_in_loops])
def test_against_differences(kernel, doubles):
    data = np.random.default_rng(2)
    given = {
        "x": data.uniform(0.1, 0.9, 5), "y": data.uniform(-0.3, 0.3, 5), "w": data.uniform(-1, 1, 5), "n": data.integers(0, 4, 5).astype(np.int32),
    }  # fmt: skip
    check_both(traced(kernel), ["x", "y", "w"], given, step=1e-4)


def refusals(kernel, *arrays, **options):
    """The messages of the two modes."""
    loss = qp.ndarray(qp.f64, (), needs_grad=True, needs_dual=True)
    messages = []
    for mode in (qp.ad.Tape(loss), qp.ad.FwdMode(loss, loss)):
        with mode, pytest.raises(qp.KernelTypeError) as caught:
            kernel(*arrays, **options)
        messages.append(str(caught.value))
    return messages


def test_an_order_that_matters_is_an_error(doubles):
    @qp.kernel
    def mixed(x: vec, y: vec):
        for i in x:
            qp.atomic_max(y[0], x[i])
            y[0] += x[i]

    x, y = (qp.ndarray(qp.f64, 3, needs_grad=True, needs_dual=True) for _ in range(2))
    line = mixed.source.span.line + 3
    for said in refusals(mixed, x, y):
        assert "depends on the order of iterations" in said
        assert f":{line}:" not in said or f"line {line}" in said


def test_an_overwritten_maximum_is_an_error(doubles):
    @qp.kernel
    def forget(x: vec, y: vec):
        for i in x:
            qp.atomic_max(y[0], x[i])
        for i in y:
            y[i] = 3.0 * y[i]

    x, y = (qp.ndarray(qp.f64, 3, needs_grad=True) for _ in range(2))
    loss = qp.ndarray(qp.f64, (), needs_grad=True)
    line = forget.source.span.line + 5
    with qp.ad.Tape(loss), pytest.raises(qp.KernelTypeError, match=f"line {line} overwrites it"):
        forget(x, y)


def test_values_that_fast_math_may_change_are_an_error():
    qp.init(arch=qp.cpu, fast_math=True)

    @qp.kernel
    def largest(x: vec, y: vec):
        for i in x:
            qp.atomic_max(y[0], x[i] * x[i])

    x, y = (qp.ndarray(qp.f64, 3, needs_grad=True, needs_dual=True) for _ in range(2))
    assert all("fast_math" in said for said in refusals(largest, x, y))
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"cpu_max_num_threads": 1}, {"cpu_max_num_threads": 2}])
def test_the_winner_is_the_same_with_any_number_of_threads(options):
    qp.init(arch=qp.cpu, **options)
    n = 5000
    x, loss = field(n), field()

    @qp.kernel
    def largest():
        for i in x:
            qp.atomic_max(loss[None], x[i])

    x.from_numpy((np.arange(n) % 100).astype(float))
    with qp.hazards.check() as found, qp.ad.Tape(loss):
        largest()
    assert not found.certain
    assert np.flatnonzero(x.grad.to_numpy()).tolist() == [n - 1]
    qp.init(arch=qp.cpu)


def test_captured(doubles):
    x, loss = field(4), field()

    @qp.kernel
    def largest():
        for i in x:
            qp.atomic_max(loss[None], x[i] * x[i])

    with qp.graph.capture() as graph:
        loss.fill(0)
        with qp.ad.Tape(loss):
            largest()
    run = graph.instantiate()
    for winner in (2, 0):
        x.from_numpy(np.eye(4)[winner] + 1)
        run.launch()
        run.synchronize()
        assert x.grad.to_numpy().tolist() == (4 * np.eye(4)[winner]).tolist()


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_compiled_for_gpus(doubles, target):
    assert in_loops.grad.compile(target).image
