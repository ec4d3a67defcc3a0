"""Reverse mode over calls of kernels: what a tape notes, keeps and refuses."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import numpy as np
import pytest

import quadpy as qp

pytestmark = pytest.mark.usefixtures("each_backend")


def field(shape=(), dtype=qp.f64):
    return qp.field(dtype, shape, needs_grad=True)


def is_shared_with_numpy(x):
    """Whether ``numpy.asarray`` gives its memory; on a GPU, it gives a copy."""
    return np.shares_memory(np.asarray(x), np.asarray(x))


@qp.kernel
def square(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64]) -> None:
    for i in a:
        b[i] = a[i] * a[i]


@qp.kernel
def triple(a: qp.Array1D[qp.f64]) -> None:
    for i in a:
        a[i] = 3 * a[i]


@qp.kernel
def advance(x: qp.Array1D[qp.f64], v: qp.Array1D[qp.f64]) -> None:
    for i in x:
        v[i] -= 0.1 * qp.sin(x[i])


@qp.kernel
def move(x: qp.Array1D[qp.f64], v: qp.Array1D[qp.f64]) -> None:
    for i in x:
        x[i] += 0.1 * v[i]


@qp.kernel
def add_up(a: qp.Array1D[qp.f64], total: qp.Array0D[qp.f64]) -> None:
    for i in a:
        total[None] += a[i]


def arrays(*numbers):
    x = qp.ndarray(qp.f64, len(numbers), needs_grad=True)
    x.from_numpy(np.array(numbers, float))
    return x, qp.ndarray(qp.f64, len(numbers), needs_grad=True), qp.ndarray(qp.f64, (), needs_grad=True)


def test_ndarrays():
    x, y, loss = arrays(1, 2, 3)
    with qp.ad.Tape(loss):
        square(x, y)
        add_up(y, loss)
    assert loss[None] == 14
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_fields():
    x, loss = field(3), field()

    @qp.kernel
    def cubes() -> None:
        for i in x:
            loss[None] += x[i] ** 3

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    with qp.ad.Tape(loss=loss):
        cubes()
    assert loss[None] == 36
    assert x.grad.to_numpy().tolist() == [3, 12, 27]


def test_updates_in_place_over_many_calls():
    """A pendulum: each step overwrites what the derivative of the one before needs."""
    x, v, loss = arrays(1.1, 0.9)

    def run(start):
        x.from_numpy(start)
        v.fill(0)
        for _ in range(20):
            advance(x, v)
            move(x, v)
        loss.fill(0)
        add_up(x, loss)
        return loss[None]

    with qp.ad.Tape(loss):
        run(np.array([1.1, 0.9]))
    after, gradient = x.to_numpy(), x.grad.to_numpy()
    h, start = 1e-6, np.array([1.1, 0.9])
    for i in range(2):
        way = h * np.eye(2)[i]
        assert gradient[i] == pytest.approx((run(start + way) - run(start - way)) / (2 * h), rel=1e-8)
    with qp.ad.Tape(loss):
        run(np.array([1.1, 0.9]))
    assert x.to_numpy().tolist() == after.tolist()  # as the forward pass left it


def test_an_update_that_loses_its_value_is_an_error_without_a_tape():
    x, _, loss = arrays(1, 2)

    @qp.kernel
    def square_in_place(a: qp.Array1D[qp.f64]) -> None:
        for i in a:
            a[i] = a[i] * a[i]

    line = square_in_place.source.span.line + 3
    with pytest.raises(qp.KernelTypeError, match=f"line {line} overwrites it"):
        square_in_place.grad(x)
    with qp.ad.Tape(loss):  # which keeps the value
        square_in_place(x)


@pytest.mark.parametrize("way", ["kernel", "fill", "from_numpy", "element", "slice", "copy_from", "numpy"])
def test_what_is_overwritten_later_is_kept(way):
    x, y, loss = arrays(1, 2, 3)
    other = qp.ndarray(qp.f64, 3)

    @qp.kernel
    def forget(a: qp.Array1D[qp.f64]) -> None:
        for i in a:
            a[i] = 100.0

    ways = {
        "kernel": lambda: forget(x),
        "fill": lambda: x.fill(100),
        "from_numpy": lambda: x.from_numpy(np.full(3, 100.0)),
        "element": lambda: x.__setitem__(1, 100.0),
        "slice": lambda: x.__setitem__(slice(0, 2), 100.0),
        "copy_from": lambda: x.copy_from(other),
        "numpy": lambda: np.asarray(x).fill(100),
    }
    if way == "numpy" and not is_shared_with_numpy(x):
        return
    with qp.ad.Tape(loss):
        square(x, y)
        add_up(y, loss)
        ways[way]()
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    assert 100 in x.to_numpy() or way == "copy_from"


def test_what_another_library_changes_between_calls_is_an_error():
    """Its derivatives would go on to the numbers from before; quadpy does not see such a change."""
    x, y, loss = arrays(1, 2, 3)
    if not is_shared_with_numpy(x):
        pytest.skip("NumPy cannot share the memory")
    for view in (np.asarray(x), None):

        def run(view=view):
            with qp.ad.Tape(loss):
                square(x, y)
                view = np.asarray(x) if view is None else view
                view[1] += 7
                square(y, y)
                square(x, y)

        with pytest.raises(qp.ArgumentError, match="another library has changed ndarray") as refused:
            run()
        assert "square(x, y)" in str(refused.value)
    with qp.ad.Tape(loss):
        square(x, y)
        x[1] = 5.0  # quadpy sees this one, with and without a change of NumPy's before
        np.asarray(x)[1] = 7
        x.from_numpy(np.array([1.0, 5.0, 3.0]))
        square(x, y)
        add_up(y, loss)
    assert x.grad.to_numpy().tolist() == [0, 0, 0]


def test_the_host_overwrites_what_a_call_has_computed():
    x, y, loss = arrays(1, 2, 3)
    with qp.ad.Tape(loss):
        square(x, y)
        y[1] = 7.0
        add_up(y, loss)
    assert loss[None] == 17
    assert x.grad.to_numpy().tolist() == [2, 0, 6]


def test_arrays_of_numpy_may_change_between_calls():
    x, _, loss = arrays(1, 2, 3)
    weights = np.array([1.0, 10.0, 100.0])

    @qp.kernel
    def weigh(a: qp.Array1D[qp.f64], w: qp.Array1D[qp.f64], total: qp.Array0D[qp.f64]) -> None:
        for i in a:
            total[None] += w[i] * a[i]

    with qp.ad.Tape(loss):
        weigh(x, weights, loss)
        weights[:] = 0
        weigh(x, weights, loss)
    assert x.grad.to_numpy().tolist() == [1, 10, 100]


def test_numbers_and_attributes_may_change_between_calls():
    @qp.data_oriented
    class Model:
        def __init__(self) -> None:
            self.x, self.loss, self.k = field(), field(), 2.0

        @qp.kernel
        def run(self, factor: qp.f64) -> None:
            self.loss[None] += self.k * factor * self.x[None]

    model, factor = Model(), 3.0
    with qp.ad.Tape(model.loss):
        model.run(factor)
        model.k, factor = 5.0, 7.0
        model.run(factor)
    assert model.x.grad[None] == 2 * 3 + 5 * 7


def test_gradients_are_cleared_unless_told_otherwise():
    x, y, loss = arrays(1, 2, 3)

    def run(**options):
        with qp.ad.Tape(loss, **options):
            square(x, y)
            add_up(y, loss)
        return x.grad.to_numpy().tolist()

    assert run() == run() == [2, 4, 6]
    assert run(clear_gradients=False) == [4, 8, 12]
    qp.ad.clear_all_gradients()
    assert x.grad.to_numpy().tolist() == [0, 0, 0]


def test_streams():
    x, y, loss = arrays(1, 2, 3)
    first, second = qp.create_stream(), qp.create_stream()
    with qp.hazards.check() as found, qp.ad.Tape(loss):
        square(x, y, stream=first)
        event = qp.create_event()
        event.record(first)
        event.wait(second)
        triple(y, stream=second)
        add_up(y, loss, stream=second)
        second.synchronize()
    assert not found.certain
    assert not found.possible
    assert x.grad.to_numpy().tolist() == [6, 12, 18]


def test_vectors_and_structs():
    body = qp.types.struct(position=qp.types.vector(2, qp.f64), mass=qp.f64, number=qp.i32)
    bodies, loss = body.field(shape=2, needs_grad=True), field()

    @qp.kernel
    def moment() -> None:
        for i in bodies:
            loss[None] += bodies[i].mass * bodies[i].position.norm_sqr()

    bodies[0] = {"position": [1.0, 2.0], "mass": 3.0, "number": 1}
    bodies[1] = {"position": [2.0, 0.0], "mass": 5.0, "number": 1}
    with qp.ad.Tape(loss):
        moment()
    assert bodies.mass.grad.to_numpy().tolist() == [5, 4]
    assert bodies.position.grad.to_numpy().tolist() == [[6, 12], [20, 0]]


def test_debug():
    x, y, loss = arrays(1, 2, 3)

    @qp.kernel(debug=True)
    def careful(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64]) -> None:
        for i in a:
            assert a[i] > 0, "positive"
            b[i] = a[i] ** 2

    with qp.ad.Tape(loss):
        careful(x, y)
        add_up(y, loss)
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_other_threads_are_not_noted():
    x, y, loss = arrays(1, 2, 3)
    u, v, _ = arrays(1, 2, 3)
    with qp.ad.Tape(loss):
        square(x, y)
        other = threading.Thread(target=square, args=(u, v))
        other.start()
        other.join()
        add_up(y, loss)
        assert v.to_numpy().tolist() == [1, 4, 9]
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    assert u.grad.to_numpy().tolist() == [0, 0, 0]


@qp.kernel
def multiply(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64], c: qp.Array1D[qp.f64]) -> None:
    for i in a:
        c[i] = a[i] * b[i] + 0.5 * c[i]


@dataclasses.dataclass
class Factors:
    a: qp.Array1D[qp.f64]
    b: qp.Array1D[qp.f64]


@qp.kernel
def multiply_members(f: Factors, c: qp.Array1D[qp.f64]) -> None:
    for i in c:
        c[i] = f.a[i] * f.b[i] + 0.5 * c[i]


def expected_of_products(calls, values):
    """The last array and its gradients after ``c = a * b + c / 2`` for each of ``calls``, where the loss is the sum of squares."""
    held, steps = [np.array(each) for each in values], []
    for a, b, c in calls:
        steps.append([each.copy() for each in held])
        held[c] = held[a] * held[b] + 0.5 * held[c]
    adjoints = [np.zeros_like(each) for each in held]
    adjoints[-1] += 2 * held[-1]
    for (a, b, c), before in zip(reversed(calls), reversed(steps), strict=True):
        out, adjoints[c] = adjoints[c], 0.5 * adjoints[c]
        adjoints[a] = adjoints[a] + before[b] * out
        adjoints[b] = adjoints[b] + before[a] * out
    return held[-1], adjoints


@pytest.mark.parametrize("as_members", [False, True])
@pytest.mark.parametrize(
    "calls",
    [
        [(0, 0, 2)],
        [(0, 2, 2)],
        [(2, 2, 2)],
        [(0, 1, 2), (0, 0, 1), (1, 1, 1), (1, 2, 1), (0, 1, 2), (2, 2, 0), (0, 2, 2)],
    ],
)
def test_an_array_that_is_passed_twice(calls, as_members):
    values = [[0.5, 0.7], [1.1, -0.4], [0.3, 0.9]]
    all_of_them, loss = [arrays(*each)[0] for each in values], arrays()[2]
    for _ in range(2):  # also with code that exists
        for each, numbers in zip(all_of_them, values, strict=True):
            each.from_numpy(np.array(numbers))
        loss.fill(0)
        with qp.ad.Tape(loss):
            for a, b, c in ([all_of_them[k] for k in call] for call in calls):
                multiply_members(Factors(a, b), c) if as_members else multiply(a, b, c)
            square_sum(all_of_them[-1], loss)
        last, adjoints = expected_of_products(calls, values)
        np.testing.assert_allclose(all_of_them[-1].to_numpy(), last, rtol=1e-14)
        for each, adjoint in zip(all_of_them, adjoints, strict=True):
            np.testing.assert_allclose(each.grad.to_numpy(), adjoint, rtol=1e-13)


@qp.kernel
def square_sum(a: qp.Array1D[qp.f64], loss: qp.Array0D[qp.f64]) -> None:
    for i in a:
        loss[None] += a[i] ** 2


def test_arrays_that_are_the_same_in_some_launches_of_a_replay():
    @qp.graph.replay
    def step(a, b, c, loss):
        loss.fill(0)
        with qp.ad.Tape(loss):
            multiply(a, b, c)
            square_sum(c, loss)

    values, loss = [[0.5, 0.7], [1.1, -0.4], [0.3, 0.9]], arrays()[2]
    given = [arrays(*each)[0] for each in values]
    for call in ((0, 1, 2), (0, 2, 2), (0, 0, 2), (1, 0, 2), (2, 2, 2), (0, 1, 2)):
        for each, numbers in zip(given, values, strict=True):
            each.from_numpy(np.array(numbers))
        step(*(given[k] for k in call), loss)
        for each, adjoint in zip(given, expected_of_products([call], values)[1], strict=True):
            np.testing.assert_allclose(each.grad.to_numpy(), adjoint, rtol=1e-13, err_msg=str(call))


def test_tapes_of_other_threads_keep_their_gradients():
    """At the end of a tape, gradients of arrays that another thread used last are not cleared."""
    made, found = [arrays(1, 2, 3) for _ in range(3)], {}

    def work(number):
        x, y, loss = made[number]
        for _ in range(20):
            with qp.ad.Tape(loss):
                square(x, y)
                add_up(y, loss)
            found.setdefault(number, []).append(x.grad.to_numpy().tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {k: [[2, 4, 6]] * 20 for k in range(3)}
    _, y, loss = arrays(1, 2, 3)
    y.grad.fill(7)
    with qp.ad.Tape(loss):
        pass
    assert y.grad.to_numpy().tolist() == [0, 0, 0]  # of this thread
    assert made[0][0].grad.to_numpy().tolist() == [2, 4, 6]
    qp.ad.clear_all_gradients()
    assert made[0][0].grad.to_numpy().tolist() == [0, 0, 0]


def test_an_error_in_the_block():
    x, y, loss = arrays(1, 2, 3)

    def broken():
        with qp.ad.Tape(loss):
            square(x, y)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert x.grad.to_numpy().tolist() == [0, 0, 0]
    with qp.ad.Tape(loss):
        square(x, y)
        add_up(y, loss)
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_a_gradient_that_is_lost_is_an_error():
    x, _, loss = arrays(1, 2, 3)
    between = qp.ndarray(qp.f64, 3)
    with qp.ad.Tape(loss):
        square(x, between)
        with pytest.raises(qp.ArgumentError, match="which has no grad"):
            add_up(between, loss)


def test_parts_of_arrays_are_refused():
    x, y, loss = arrays(1, 2, 3)
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="square gets a part of") as refused:
        square(x[1:], y)
    assert refused.value.message.startswith("square gets")
    assert "square(x[1:], y)" in str(refused.value)  # the line of the call
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="copied on a tape"):
        square(x[::-1], y)  # a copy
    if is_shared_with_numpy(x):
        with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="a part of"):
            square(np.asarray(x), y)


def test_parts_of_constants():
    @qp.kernel
    def scaled(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64], c: qp.Array1D[qp.f64]):
        for i in b:
            c[i] = a[i] * b[i]

    x, y, loss = arrays(1, 1, 1)
    for part in (slice(1, 6, 2), slice(None, None, -2), slice(0, 3)):
        constant = qp.ndarray(qp.f64, 6)
        constant.from_numpy(np.arange(6.0))
        with qp.ad.Tape(loss):
            scaled(constant[part], x, y)
            constant[3:6].fill(9)
            add_up(y, loss)
        assert x.grad.to_numpy().tolist() == np.arange(6.0)[part].tolist()


def test_functions_of_quadpys_own_are_refused():
    x, _, loss = arrays(1, 2, 3)
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="quadpy's own"):
        qp.algorithms.inclusive_scan(x, "add")


def test_copies_are_refused():
    x, y, loss = arrays(1, 2, 3)
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="copied on a tape"):
        y.copy_from(x)


@pytest.mark.parametrize("has_gradient", [True, False])
@pytest.mark.parametrize(
    "copy",
    [
        lambda x, y, z: z.copy_from(y),
        lambda x, y, z: x.__setitem__(slice(None), y),
        lambda x, y, z: x.__setitem__(slice(0, 2), y[0:2]),
        lambda x, y, z: z.__setitem__(..., y),
    ],
    ids=["another type", "all", "a part", "all of another type"],
)
def test_copies_through_the_host_are_refused(copy, has_gradient):
    x, _, loss = arrays(1, 2, 3)
    y = qp.ndarray(qp.f64, 3, needs_grad=has_gradient)
    z = qp.ndarray(qp.f32, 3, needs_grad=True)
    with qp.ad.Tape(loss):
        square(x, y)
        with pytest.raises(qp.ArgumentError, match="copied on a tape"):
            copy(x, y, z)


def test_losses_that_do_not_fit():
    for loss in (3.0, qp.field(qp.f64, ()), field(3)):
        with pytest.raises(qp.ArgumentError, match="the loss of a tape"):
            qp.ad.Tape(loss)
    with pytest.raises(qp.ArgumentError, match="gradcheck"):
        qp.ad.Tape(field(), grad_check=[])
    loss = field()
    with qp.ad.Tape(loss), pytest.raises(qp.ArgumentError, match="already"), qp.ad.Tape(loss):
        pass


def test_calls_under_no_grad():
    x, y, loss = arrays(1, 2, 3)
    seen = qp.ndarray(qp.f64, ())

    @qp.ad.no_grad
    def look():
        add_up(x, seen)

    with qp.ad.Tape(loss):
        square(x, y)
        look()
        with qp.ad.no_grad():
            add_up(y, seen)
        add_up(y, loss)
        with pytest.raises(qp.ArgumentError, match=r"changes .* under no_grad"), qp.ad.no_grad():
            triple(y)
    assert seen[None] == 20
    assert x.grad.to_numpy().tolist() == [2, 4, 6]


def test_a_derivative_of_its_own():
    x, y, loss = arrays(4, 9)
    calls = []

    @qp.kernel
    def roots(a: qp.Array1D[qp.f64], b: qp.Array1D[qp.f64]) -> None:
        for i in a:
            b[i] = qp.sqrt(a[i])

    @qp.kernel
    def back(b: qp.Array1D[qp.f64], da: qp.Array1D[qp.f64], db: qp.Array1D[qp.f64]) -> None:
        for i in b:
            da[i] += db[i] / (2 * b[i])
            db[i] = 0

    @qp.ad.custom
    def solve(a, b):
        roots(a, b)
        calls.append("forward")

    @solve.backward
    def _(a, b):
        back(b, a.grad, b.grad)
        calls.append("backward")

    with qp.ad.Tape(loss):
        solve(x, y)
        add_up(y, loss)
        y.fill(0)  # what the derivative reads is kept
    assert calls == ["forward", "backward"]
    assert x.grad.to_numpy() == pytest.approx([1 / 4, 1 / 6])


def test_a_derivative_of_its_own_by_taichis_names():
    @qp.data_oriented
    class Model:
        def __init__(self) -> None:
            self.x, self.loss = field(), field()

        @qp.kernel
        def run(self) -> None:
            self.loss[None] += self.x[None] ** 2

        @qp.ad.grad_replaced
        def forward(self, times):
            for _ in range(times):
                self.run()

        @qp.ad.grad_for(forward)
        def backward(self, times):
            self.x.grad[None] = 1000.0 * times

    model = Model()
    with qp.ad.Tape(model.loss):
        model.forward(3)
    assert model.x.grad[None] == 3000
    with pytest.raises(qp.ArgumentError, match="grad_replaced"):
        qp.ad.grad_for(lambda: None)


def test_value_and_grad():
    x, y, loss = arrays(1, 2, 3)

    def run(a):
        loss.fill(0)
        square(a, y)
        add_up(y, loss)

    value, (gradient,) = qp.ad.value_and_grad(run, loss)(x)
    assert value == 14
    assert gradient is x.grad
    assert gradient.to_numpy().tolist() == [2, 4, 6]


def test_gradcheck():
    x, y, loss = arrays(1, 2, 3)

    def run(a):
        loss.fill(0)
        square(a, y)
        triple(y)
        add_up(y, loss)

    (check,) = qp.ad.gradcheck(run, (x,), loss)
    assert check.error < 1e-8
    assert x.to_numpy().tolist() == [1, 2, 3]

    wrong = qp.ad.custom(run)
    wrong.backward(lambda a: a.grad.fill(1))
    with pytest.raises(qp.QuadpyError, match="by differences"):
        qp.ad.gradcheck(wrong, (x,), loss)


def test_methods_of_several_objects():
    """The second object's kernel is made when the first one's already has a backward kernel."""

    @qp.data_oriented
    class Layer:
        def __init__(self):
            self.weight = qp.field(qp.f64, 3, needs_grad=True)
            self.out = qp.field(qp.f64, 3, needs_grad=True)
            self.weight.fill(2.0)

        @qp.kernel
        def forward(self, given: qp.template()) -> None:
            for i in given:
                self.out[i] = self.weight[i] * qp.sin(given[i])

    @qp.kernel
    def add(out: qp.template()) -> None:
        for i in out:
            loss[None] += out[i]

    first, second = Layer(), Layer()
    x, loss = qp.field(qp.f64, 3, needs_grad=True), qp.field(qp.f64, (), needs_grad=True)
    x.fill(0.5)
    with qp.ad.Tape(loss):
        first.forward(x)
        second.forward(first.out)
        add(second.out)
    wanted = 2 * np.cos(2 * np.sin(0.5)) * 2 * np.cos(0.5)
    assert np.allclose(x.grad.to_numpy(), wanted, rtol=1e-12)


def test_loops_that_leave_arrays_in_programs_of_taichi():
    """There, accesses outside arrays do nothing, on the way back, too."""
    import quadpy.compat.taichi as ti

    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = (ti.field(ti.f64, n, needs_grad=True) for n in (5, 3))
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def squares():
        for i in range(5):
            y[i] = x[i] * x[i]

    @ti.kernel
    def add():
        for i in y:
            loss[None] += y[i]

    x.fill(3.0)
    for run in range(2):
        loss[None] = 0.0
        with pytest.warns(RuntimeWarning) if run == 0 else contextlib.nullcontext(), ti.ad.Tape(loss):
            squares()
            add()
        assert x.grad.to_numpy().tolist() == [6.0, 6.0, 6.0, 0.0, 0.0]
    qp.init(arch=qp.cpu)
