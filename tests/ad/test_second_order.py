"""Derivatives of second order, several directions and several adjoints at once, and the checks of derivatives."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import quadpy as qp
from quadpy.ad.checks import GradientError
from quadpy.errors import ArgumentError, KernelTypeError

pytestmark = pytest.mark.usefixtures("each_backend")


def array(*numbers, ways=True, dtype=qp.f64):
    made = qp.ndarray(dtype, len(numbers), needs_grad=True, needs_dual=ways)
    made.from_numpy(np.array(numbers, float))
    return made


def number(ways=True, dtype=qp.f64):
    return qp.ndarray(dtype, (), needs_grad=True, needs_dual=ways)


@qp.kernel
def turn(x: qp.Array1D[qp.f64], z: qp.Array1D[qp.f64]) -> None:
    for i in x:
        z[i] = qp.sin(x[i]) * x[(i + 1) % x.shape[0]]


@qp.kernel
def double(z: qp.Array1D[qp.f64]) -> None:
    for i in z:
        z[i] *= 2


@qp.kernel
def energy(x: qp.Array1D[qp.f64], z: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]) -> None:
    for i in x:
        loss[None] += z[i] ** 2 * x[i]


@qp.kernel
def power(x: qp.Array1D[qp.f64], n: qp.i32, loss: qp.Array0D[qp.f64]) -> None:
    for i in x:
        p = qp.f64(1.0)
        for _ in range(n):
            if p > 1e6:
                break
            p = p * x[i] + qp.atan(p) * 0.25
        while p > 50.0:
            p = qp.sqrt(p) * x[i]
        loss[None] += p


@qp.kernel
def scattered(x: qp.Array1D[qp.f64], at: qp.Array1D[qp.i32], y: qp.Array1D[qp.f64]) -> None:
    for i in at:
        y[at[i]] += x[at[i]] ** 3 * x[i % x.shape[0]]


@qp.kernel
def add_up(y: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]) -> None:
    for i in y:
        loss[None] += qp.exp(0.1 * y[i])


def hessian_by_differences(run, x, loss, h=1e-5):
    """From gradients on tapes without forward mode."""
    start, rows = x.to_numpy(), []
    for k in range(start.size):
        found = []
        for sign in (1, -1):
            moved = start.copy()
            moved[k] += sign * h
            x.from_numpy(moved)
            loss.fill(0)
            with qp.ad.Tape(loss):
                run()
            found.append(x.grad.to_numpy())
        rows.append((found[0] - found[1]) / (2 * h))
    x.from_numpy(start)
    loss.fill(0)
    return np.array(rows)


def test_several_kernels_with_overwrites():
    x, z, loss, way = array(1, 2, 3), array(0, 0, 0), number(), np.array([0.3, -1, 2])

    def run():
        turn(x, z)
        double(z)
        energy(x, z, loss)
        turn(x, z)  # what the derivative of energy needs is overwritten
        energy(x, z, loss)

    expected = hessian_by_differences(run, x, loss)
    plain = x.grad.to_numpy()
    with qp.ad.FwdMode(loss, x, way), qp.ad.Tape(loss):
        run()
    assert x.grad.dual.to_numpy() == pytest.approx(expected @ way, rel=1e-7)
    assert float(loss.dual[None]) == pytest.approx(x.grad.to_numpy() @ way, rel=1e-12)
    loss.fill(0)
    with qp.ad.Tape(loss):
        run()
    alone = x.grad.to_numpy()
    loss.fill(0)
    with qp.ad.FwdMode(loss, x, way), qp.ad.Tape(loss):
        run()
    assert x.grad.to_numpy().tolist() == alone.tolist() != plain.tolist()  # the bits of a tape alone


def test_loops_of_run_time_length_breaks_and_while():
    x, loss = array(0.9, 1.3, 2.5, -1.1), number()

    def run():
        power(x, 9, loss)

    expected = hessian_by_differences(run, x, loss)
    (product,) = qp.ad.hvp(power, (x, 9, loss), [np.ones(4)], loss)
    assert product.to_numpy() == pytest.approx(expected.sum(0), rel=1e-6)


def test_scattered_reads_and_writes():
    x, y, loss, at = array(0.5, 1.5, -0.7), array(0, 0, 0), number(), qp.ndarray(qp.i32, 5)
    at.from_numpy(np.array([2, 0, 2, 1, 0], np.int32))

    def run():
        y.fill(0)
        scattered(x, at, y)
        add_up(y, loss)

    expected = hessian_by_differences(run, x, loss)
    way = np.array([1.0, -2, 0.5])
    with qp.ad.FwdMode(loss, x, way), qp.ad.Tape(loss):
        run()
    assert x.grad.dual.to_numpy() == pytest.approx(expected @ way, rel=1e-6)


def test_the_whole_hessian_in_one_pass():
    x, z, loss = array(1, 2, 3, ways=3), array(0, 0, 0, ways=3), number(3)

    def run(x, loss):
        turn(x, z)
        energy(x, z, loss)

    expected = hessian_by_differences(lambda: run(x, loss), x, loss)
    (product,) = qp.ad.hvp(run, (x, loss), [np.eye(3)], loss)
    assert product.to_numpy() == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert product.to_numpy() == pytest.approx(product.to_numpy().T, rel=1e-12)


def test_fields_of_vectors_and_matrices_and_structs():
    pair = qp.types.struct(a=qp.f64, b=qp.types.vector(2, qp.f64))
    v = qp.Vector.field(2, qp.f64, 3, needs_grad=True, needs_dual=True)
    s = pair.field(shape=3, needs_grad=True, needs_dual=True)
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)

    @qp.kernel
    def fill():
        for i in v:
            s[i].a = v[i].norm_sqr()
            s[i].b = v[i] * v[(i + 1) % 3][0]

    @qp.kernel
    def total():
        for i in v:
            loss[None] += s[i].a * s[i].b[1] ** 2

    start, way = np.arange(1.0, 7).reshape(3, 2), np.linspace(-1, 1, 6).reshape(3, 2)

    def gradient(numbers):
        v.from_numpy(numbers)
        loss.fill(0)
        with qp.ad.Tape(loss):
            fill()
            total()
        return v.grad.to_numpy()

    expected = (gradient(start + 1e-5 * way) - gradient(start - 1e-5 * way)) / 2e-5
    v.from_numpy(start)
    with qp.ad.FwdMode(loss, v, way), qp.ad.Tape(loss):
        fill()
        total()
    assert v.grad.dual.to_numpy() == pytest.approx(expected, rel=1e-7)


def test_an_adjoint_of_zero_whose_tangent_is_not():
    """Where a choice makes the backward kernel guard infinite slopes, an adjoint of 0 must not end its tangent."""
    x, loss = array(1.0), number()

    @qp.kernel
    def bowl(x: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]):
        for i in x:
            away = qp.sqrt(qp.max(x[i], 0.5)) ** 2 - 1.0
            loss[None] += away * away * 0.5

    (product,) = qp.ad.hvp(bowl, (x, loss), [[1.0]], loss)
    assert (x.grad[0], product[0]) == (0, pytest.approx(1.0))


def test_what_a_branch_does_not_use_makes_no_nan():
    x, loss = array(0.0, 4.0), number()

    @qp.kernel
    def roots(x: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]):
        for i in x:
            loss[None] += x[i] ** 1.5 if x[i] > 1.0 else x[i] ** 3

    (product,) = qp.ad.hvp(roots, (x, loss), [[1.0, 1.0]], loss)
    assert product.to_numpy().tolist() == [0, pytest.approx(0.75 / 2)]


def test_directions_in_one_pass_are_columns_of_the_jacobian():
    x, z, y = (array(1, 2, 3, 4, ways=4) for _ in range(3))

    def run(x, y):
        turn(x, z)
        turn(z, y)

    columns = qp.ad.jvp(run, (x, y), [np.eye(4)], y)[0].to_numpy()
    rows = qp.ad.vjp(run, (x, y), [np.eye(4)], y, several=4)[0].to_numpy()
    assert rows == pytest.approx(columns.T, rel=1e-12)
    single = array(1, 2, 3, 4), array(0, 0, 0, 0), array(0, 0, 0, 0)

    def run_single(x):
        turn(x, single[1])
        turn(single[1], single[2])

    for k, way in enumerate(np.eye(4)):
        (tangent,) = qp.ad.jvp(run_single, (single[0],), [way], single[2])
        assert tangent.to_numpy().tolist() == columns[k].tolist()
        (gradient,) = qp.ad.vjp(run_single, (single[0],), [way], [single[2]])
        assert gradient.to_numpy().tolist() == rows[k].tolist()


def test_fields_with_several_directions():
    x = qp.field(qp.f64, (2, 3), needs_grad=True, needs_dual=2, offset=(1, -1), name="x")
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=2)
    assert (x.dual.shape, x.grad.dual.shape, x.grad.shape) == ((2, 2, 3), (2, 2, 3), (2, 3))

    @qp.kernel
    def run():
        for i, j in x:
            loss[None] += x[i, j] ** 3

    numbers = np.arange(6.0).reshape(2, 3)
    x.from_numpy(numbers)
    ways = np.stack([np.ones((2, 3)), numbers])
    with qp.ad.FwdMode(loss, x, ways), qp.ad.Tape(loss):
        run()
        x[1, 0] = 5.0  # a constant, in both directions
        run()
    first = numbers.copy()
    first[0, 1] = 5.0
    change = np.array(ways)
    assert loss.dual.to_numpy() == pytest.approx(
        [(3 * numbers**2 * w).sum() + (3 * first**2 * w * (first == numbers)).sum() for w in ways]
    )
    expected = np.stack([6 * numbers * w * (1 + (first == numbers)) for w in change])
    assert x.grad.dual.to_numpy() == pytest.approx(expected)


def test_gradcheck_of_both_orders():
    x, z, loss = array(0.5, 1.1, -0.3), array(0, 0, 0), number()

    def run(x, loss):
        loss.fill(0)
        turn(x, z)
        double(z)
        energy(x, z, loss)

    (check,) = qp.ad.gradcheck(run, (x, loss), loss)
    assert check.forward == pytest.approx(check.backward, rel=1e-12)
    (second,) = qp.ad.gradcheck(run, (x, loss), loss, order=2)
    assert second.forward == pytest.approx(second.backward, rel=1e-12)
    assert x.to_numpy().tolist() == [0.5, 1.1, -0.3]


def test_gradcheck_finds_a_wrong_derivative():
    x, loss = array(0.5, 1.1), number()

    @qp.kernel
    def stopped(x: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]):
        for i in x:
            loss[None] += qp.ad.stop(x[i]) * x[i]

    def run(x):
        loss.fill(0)
        stopped(x, loss)

    for order in (1, 2):
        with pytest.raises(GradientError, match="by the backward pass"):
            qp.ad.gradcheck(run, (x,), loss, order=order)
    with pytest.raises(ArgumentError, match="need duals"):
        qp.ad.gradcheck(run, (qp.ndarray(qp.f64, 2, needs_grad=True),), loss, order=2)


def test_a_gradient_without_a_dual_is_an_error():
    x, loss = array(1, 2), number()
    between = qp.ndarray(qp.f64, 2, needs_grad=True)
    with (
        pytest.raises(ArgumentError, match="whose gradient has no dual"),
        qp.ad.FwdMode(loss, x, [1, 1]),
        qp.ad.Tape(loss),
    ):
        turn(x, between)
    tape = qp.ad.Tape(array(1, 2, ways=2), seed=np.eye(2), several=2)
    with pytest.raises(ArgumentError, match="whose gradient has no dual in 2 directions"), tape:
        turn(array(1, 2, ways=2), between)
    with pytest.raises(ArgumentError, match="has duals in"), qp.ad.FwdMode(loss, x, [1, 1]):
        turn(x, array(0, 0, ways=2))


def test_what_is_refused():
    x, y, loss = array(1, 2), array(0, 0), number()
    with pytest.raises(ArgumentError, match="seed has 3 numbers"):
        qp.ad.FwdMode(loss, x, [1, 2, 3])
    with pytest.raises(ArgumentError, match="2 seeds for 1 arrays"):
        qp.ad.FwdMode(loss, [x], [[1, 2], [1, 2]])
    with pytest.raises(ArgumentError, match="needs_dual must be True, False or a number of directions"):
        qp.ndarray(qp.f64, 2, needs_dual=-1)
    with pytest.raises(ArgumentError, match="need a seed"):
        qp.ad.Tape(loss, several=2)
    with pytest.raises(ArgumentError, match="already"), qp.ad.Tape(loss), qp.ad.FwdMode(loss, x, [1, 1]):
        pass
    with qp.ad.FwdMode(loss, x, [1, 1]):
        with pytest.raises(ArgumentError, match="one adjoint"), qp.ad.Tape(loss, seed=[1, 1], several=2):
            pass
        with qp.ad.Tape(loss) as tape:
            for call in (lambda: qp.ad.checkpoint(lambda k: None, 3), qp.ad.custom(lambda: None)):
                with pytest.raises(ArgumentError, match="not supported in forward mode"):
                    call()
            tape.loss = loss
    k = qp.ad.Number(2.0)

    @qp.kernel
    def scale(x: qp.Array1D[qp.f64], k: qp.f64, y: qp.Array1D[qp.f64]):
        for i in x:
            y[i] = k * x[i]

    with pytest.raises(ArgumentError, match="has no dual"), qp.ad.FwdMode(loss, x, [1, 1]), qp.ad.Tape(loss):
        scale(x, k, y)
    with pytest.raises(ArgumentError, match="is a derivative already"):
        scale.grad.grad  # noqa: B018 - the look itself raises


def test_what_the_host_writes_between():
    x, z, loss, way = array(1, 2, 3), array(0, 0, 0), number(), np.array([1.0, 0.5, -1])

    def run():
        turn(x, z)
        energy(x, z, loss)
        z[1] = 2.0
        x[0] = 0.25
        energy(x, z, loss)
        z.fill(0.5)
        energy(x, z, loss)

    start = x.to_numpy()

    def gradient(numbers):
        x.from_numpy(numbers)
        loss.fill(0)
        with qp.ad.Tape(loss):
            run()
        return x.grad.to_numpy()

    expected = (gradient(start + 1e-5 * way) - gradient(start - 1e-5 * way)) / 2e-5
    x.from_numpy(start)
    with qp.ad.FwdMode(loss, x, way), qp.ad.Tape(loss):
        run()
    assert x.grad.dual.to_numpy() == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_in_a_replayed_function():
    x, z, loss = array(1, 2, 3), array(0, 0, 0), number()

    @qp.graph.replay
    def newton_step():
        loss.fill(0)
        with qp.ad.FwdMode(loss, x, [1.0, 0, 0]), qp.ad.Tape(loss):
            turn(x, z)
            energy(x, z, loss)

    found = []
    for _ in range(4):
        newton_step()
        found.append((x.grad.to_numpy().tolist(), x.grad.dual.to_numpy().tolist()))
    (product,) = qp.ad.hvp(lambda x: (loss.fill(0), turn(x, z), energy(x, z, loss)), (x,), [[1.0, 0, 0]], loss)
    assert found == [(x.grad.to_numpy().tolist(), product.to_numpy().tolist())] * 4


def test_streams():
    x, y, z, loss = array(1, 2, 3), array(0, 0, 0), array(0, 0, 0), number()
    one, two = qp.create_stream(), qp.create_stream()
    with qp.ad.FwdMode(loss, x, [1.0, 2, 3]), qp.ad.Tape(loss):
        turn(x, y, stream=one)
        turn(x, z, stream=two)
        one.synchronize()
        two.synchronize()
        energy(x, y, loss)
        energy(x, z, loss)
    found = x.grad.dual.to_numpy()
    loss.fill(0)
    with qp.ad.FwdMode(loss, x, [1.0, 2, 3]), qp.ad.Tape(loss):
        turn(x, y)
        energy(x, y, loss)
    assert found == pytest.approx(2 * x.grad.dual.to_numpy(), rel=1e-13)


def test_an_error_inside_leaves_nothing_open():
    x, z, loss = array(1, 2, 3), array(0, 0, 0), number()

    @qp.kernel
    def cut(x: qp.Array1D[qp.f64], z: qp.Array1D[qp.f64]):
        for i in x:
            z[i] = qp.i32(x[i])

    def run(last):
        with qp.ad.FwdMode(loss, x, [1, 1, 1]), qp.ad.Tape(loss):
            turn(x, z)
            last()

    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 / 0)
    with pytest.raises(KernelTypeError):
        run(lambda: cut(x, z))
    turn(x, z)  # outside of both
    assert qp.ad.hvp(lambda x: (turn(x, z), energy(x, z, loss)), (x,), [[1, 0, 0]], loss)


def test_each_thread_has_its_own():
    found, errors = {}, []

    def work(name, factor):
        try:
            x, z, loss = array(1, 2, 3), array(0, 0, 0), number()
            for _ in range(5):
                loss.fill(0)
                for each in (x.grad, x.grad.dual, z.grad, z.grad.dual, loss.dual, z.dual):
                    each.fill(0)
                mode = qp.ad.FwdMode(loss, x, [factor, 0, 0], clear_gradients=False)
                with mode, qp.ad.Tape(loss, clear_gradients=False):
                    turn(x, z)
                    energy(x, z, loss)
            found[name] = x.grad.dual.to_numpy()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(k, float(k + 1))) for k in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert found[2] == pytest.approx(3 * found[0], rel=1e-12)
    assert found[1] == pytest.approx(2 * found[0], rel=1e-12)


def test_under_the_hazard_checker():
    x, y, z, loss = array(1, 2, 3), array(0, 0, 0), array(0, 0, 0), number()
    one, two = qp.create_stream(), qp.create_stream()
    qp.sync()
    with qp.hazards.check(collect=True) as found:
        begun, done = qp.create_event(), qp.create_event()
        with qp.ad.FwdMode(loss, x, [1.0, 2, 3]), qp.ad.Tape(loss):
            begun.record()  # duals were set on the current stream
            begun.wait(one)
            begun.wait(two)
            turn(x, y, stream=one)
            turn(x, z, stream=two)
            done.record(one)
            done.wait(two)
            energy(y, z, loss, stream=two)
        qp.sync()
    assert not found.certain, found
    (product,) = qp.ad.hvp(
        lambda x: (loss.fill(0), turn(x, y), turn(x, z), energy(y, z, loss)), (x,), [[1.0, 2, 3]], loss
    )
    assert product.to_numpy().any()


def test_debug():
    qp.init(arch=qp.cpu, debug=True)
    x, z, loss = array(1, 2, 3), array(0, 0, 0), number()
    (product,) = qp.ad.hvp(lambda x: (turn(x, z), energy(x, z, loss)), (x,), [[1.0, 0, 0]], loss)
    debugged = product.to_numpy().tolist()
    qp.init(arch=qp.cpu)
    (product,) = qp.ad.hvp(lambda x: (loss.fill(0), turn(x, z), energy(x, z, loss)), (x,), [[1.0, 0, 0]], loss)
    assert product.to_numpy() == pytest.approx(debugged, rel=1e-14)


def test_a_kernel_that_overwrites_what_its_derivative_needs():
    x, loss = array(0.5, 1.5, 0.7), number()

    @qp.kernel
    def squared(x: qp.Array1D[qp.f64]):
        for i in x:
            x[i] = x[i] * x[i]

    start, way = x.to_numpy(), np.array([1.0, -2, 0.5])

    def run(x):
        squared(x)
        squared(x)
        add_up(x, loss)

    def gradient(numbers):
        x.from_numpy(numbers)
        with qp.ad.Tape(loss):
            run(x)
        return x.grad.to_numpy()

    expected = (gradient(start + 1e-5 * way) - gradient(start - 1e-5 * way)) / 2e-5
    x.from_numpy(start)
    (product,) = qp.ad.hvp(run, (x,), [way], loss)
    assert product.to_numpy() == pytest.approx(expected, rel=1e-6)


def test_atomic_maxima_in_several_directions():
    x, y, loss = array(0.5, 1.5, -0.7, ways=2), array(-9, -9, ways=2), number(2)

    @qp.kernel
    def largest(x: qp.Array1D[qp.f64], y: qp.Array1D[qp.f64]):
        for i in x:
            qp.atomic_max(y[i % 2], x[i] ** 3)

    def run(x):
        y.fill(-9.0)
        largest(x, y)
        add_up(y, loss)

    ways = np.array([[1.0, 2, 3], [0, 1, 0]])
    (tangents,) = qp.ad.jvp(lambda x: (y.fill(-9.0), largest(x, y)), (x,), [ways], y)
    assert tangents.to_numpy() == pytest.approx(np.array([[0.75, 6.75 * 2], [0, 6.75]]))
    (product,) = qp.ad.hvp(run, (x,), [ways], loss)
    second = [((0.3 * x**2) ** 2 + 0.6 * x) * np.exp(0.1 * x**3) for x in (0.5, 1.5)]
    expected = np.array([[second[0], 2 * second[1], 0], [0, second[1], 0]])
    assert product.to_numpy() == pytest.approx(expected)
