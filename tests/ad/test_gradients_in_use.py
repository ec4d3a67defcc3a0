"""Programs that use gradients while a tape is open, and graphs that write constants: right, or an error."""

from __future__ import annotations

import pytest

import quadpy as qp

F64 = qp.Array1D[qp.f64]

pytestmark = pytest.mark.usefixtures("each_backend")


@qp.kernel
def square(a: F64, b: F64):
    for i in a:
        b[i] = a[i] ** 2


@qp.kernel
def add_up(a: F64, total: qp.Array0D[qp.f64]):
    for i in a:
        total[None] += a[i]


@qp.kernel
def halve_gradient(a: F64):
    for i in a:
        a.grad[i] *= 0.5


@qp.kernel
def descend(a: F64):
    for i in a:
        a[i] -= 0.1 * a.grad[i]


@qp.kernel
def scaled(a: F64, b: F64, c: F64):
    for i in a:
        c[i] = a.grad[i] * b[i]


@qp.kernel
def scaled_by(g: F64, b: F64, c: F64):
    for i in g:
        c[i] = g[i] * b[i]


def arrays():
    x, y, z = (qp.ndarray(qp.f64, 3, needs_grad=True) for _ in range(3))
    x.fill(3.0)
    z.fill(2.0)
    return x, y, z, qp.ndarray(qp.f64, (), needs_grad=True)


def test_a_derivative_that_needs_the_numbers_of_a_gradient():
    x, y, z, loss = arrays()
    with pytest.raises(qp.KernelTypeError, match=r"needs the value of a\.grad") as error, qp.ad.Tape(loss):
        scaled(x, z, y)
    assert error.value.span.line == scaled.source.span.line + 3
    with pytest.raises(qp.ArgumentError, match="needs the numbers in it"), qp.ad.Tape(loss):
        scaled_by(x.grad, z, y)


def test_a_gradient_as_a_constant():
    """Where no derivative needs its numbers, a kernel may use it: a step of gradient descent on the tape."""
    x, y, _, loss = arrays()
    x.grad.fill(10.0)
    with qp.ad.Tape(loss):
        descend(x)
        square(x, y)
        add_up(y, loss)
    assert (loss[None], x.grad.to_numpy().tolist()) == (12.0, [4.0] * 3)


@pytest.mark.parametrize("what", ["kernel", "clear", "fill"])
def test_a_graph_that_changes_gradients(what):
    """On the way back it does not change them again."""
    x, y, _, loss = arrays()
    with qp.graph.capture() as graph:
        square(x, y)
        {"kernel": lambda: halve_gradient(x), "clear": qp.ad.clear_all_gradients, "fill": lambda: x.grad.fill(0.0)}[
            what
        ]()
        add_up(y, loss)
    run = graph.instantiate()
    with qp.ad.Tape(loss):
        run.launch()
    assert x.grad.to_numpy().tolist() == [6.0] * 3


def test_a_graph_that_clears_gradients_between_other_numbers():
    """quadpy's own kernels clear them; the derivative ignores these, too."""
    x, y, _, loss = arrays()
    between = qp.field(qp.f64)
    qp.root.dense(qp.i, 300).place(between, between.grad)
    between.fill(2.0)
    between.grad.fill(1.0)
    with qp.graph.capture() as graph:
        square(x, y)
        qp.ad.clear_all_gradients()
        add_up(y, loss)
    run = graph.instantiate()
    with qp.ad.Tape(loss, clear_gradients=False):
        run.launch()
    assert x.grad.to_numpy().tolist() == [6.0] * 3
    assert (between.to_numpy() == 2.0).all()
    assert not between.grad.to_numpy().any()


def test_gradients_are_cleared_where_only_they_have_been_written():
    state = qp.types.struct(a=qp.f64, b=qp.types.vector(2, qp.f64)).field(shape=4, needs_grad=True)
    state.grad.b.fill(1.0)
    qp.ad.clear_all_gradients()
    assert not state.grad.b.to_numpy().any()


def test_a_graph_that_uses_gradients():
    x, y, _, loss = arrays()
    with qp.graph.capture() as graph:
        descend(x)
        square(x, y)
        add_up(y, loss)
    run = graph.instantiate()
    with pytest.raises(qp.ArgumentError, match=r"'descend'.*uses a gradient"), qp.ad.Tape(loss):
        run.launch()


@pytest.mark.parametrize("what", ["kernel", "fill", "clear", "graph"])
def test_steps_that_change_gradients(what):
    x, y, _, loss = arrays()
    with qp.graph.capture() as graph:
        halve_gradient(x)
    run = graph.instantiate()
    change = {
        "kernel": lambda: halve_gradient(x), "fill": lambda: x.grad.fill(0.0), "clear": qp.ad.clear_all_gradients, "graph": run.launch,
    }[what]  # fmt: skip

    def step(_):
        square(x, y)
        change()
        add_up(y, loss)

    with pytest.raises(qp.ArgumentError, match="it would do so again on the way back"), qp.ad.Tape(loss):
        qp.ad.checkpoint(step, 3, slots=1)


def test_a_graph_that_overwrites_what_it_has_used():
    """One number, which no fill writes."""
    x, y, _, loss = arrays()
    with qp.graph.capture() as graph:
        square(x, y)
        x[1] = 0.3
        add_up(x, loss)
        add_up(y, loss)
    run = graph.instantiate()
    with qp.ad.Tape(loss):
        run.launch()
    assert x.grad.to_numpy().tolist() == [7.0, 6.0, 7.0]


@pytest.mark.parametrize("together", [False, True])
def test_a_graph_that_overwrites_numbers_between_others(together):
    """Each constant takes the gradient of what it overwrites, and no other."""
    p, m = qp.field(qp.f64, needs_grad=True), qp.field(qp.f64, needs_grad=True)
    loss = qp.field(qp.f64, (), needs_grad=True)
    qp.root.dense(qp.i, 4).place(*((p, p.grad, m, m.grad) if together else (p, m, p.grad, m.grad)))

    @qp.kernel
    def add():
        for i in p:
            loss[None] += (i + 1) * p[i] ** 2 * m[i]

    p.fill(2.0)
    m.fill(1.0)
    with qp.graph.capture() as graph:
        add()
        m.fill(3.0)
        add()
        p.fill(0.3)
        m[2] = 0.7
        add()
    run = graph.instantiate()
    with qp.ad.Tape(loss):
        run.launch()
    assert p.grad.to_numpy().tolist() == [16.0, 32.0, 48.0, 64.0]
    assert m.grad.to_numpy().tolist() == [4.0, 8.0, 12.0, 16.0]
