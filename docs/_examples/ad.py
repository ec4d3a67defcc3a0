"""Examples of derivatives."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def _squares() -> tuple[qp.Field, qp.Field, qp.Kernel]:
    x = qp.field(qp.f64, 3, needs_grad=True, needs_dual=True)
    loss = qp.field(qp.f64, (), needs_grad=True, needs_dual=True)

    @qp.kernel
    def squares() -> None:
        for i in x:
            loss[None] += x[i] ** 2

    x.fill(3)
    return x, loss, squares


def example_Tape() -> None:
    x, loss, squares = _squares()
    with qp.ad.Tape(loss):
        squares()
    print(loss[None], x.grad.to_numpy())  # 27.0 [6. 6. 6.]


def example_clear_all_gradients() -> None:
    x, loss, squares = _squares()
    squares()
    loss.grad[None] = 1
    squares.grad()
    qp.ad.clear_all_gradients()
    print(x.grad.to_numpy())  # [0. 0. 0.]


def example_FwdMode() -> None:
    x, loss, squares = _squares()
    with qp.ad.FwdMode(loss, x, seed=[1, 0, 2]):
        squares()
    print(loss.dual[None])  # 18.0


def example_value_and_grad() -> None:
    x, loss, squares = _squares()

    def function(_: qp.Field) -> None:
        loss[None] = 0
        squares()

    value, (gradient,) = qp.ad.value_and_grad(function, loss)(x)
    print(value, gradient.to_numpy())  # 27.0 [6. 6. 6.]


def example_gradcheck() -> None:
    x, loss, squares = _squares()
    (check,) = qp.ad.gradcheck(lambda _: squares(), (x,), loss)
    print(check.error < 1e-6)  # True


def _springs() -> tuple[qp.NDArray, qp.NDArray, qp.NDArray, qp.Kernel]:
    k, forces = (qp.ndarray(qp.f64, 3, needs_grad=True, needs_dual=True) for _ in range(2))
    energy = qp.ndarray(qp.f64, (), needs_grad=True, needs_dual=True)

    @qp.kernel
    def springs(k: qp.Array1D[qp.f64], forces: qp.Array1D[qp.f64], energy: qp.Array0D[qp.f64]) -> None:
        for i in k:
            forces[i] = k[i] ** 2
            energy[None] += k[i] ** 3

    k.fill(2)
    return k, forces, energy, springs


def example_jvp() -> None:
    k, forces, energy, springs = _springs()
    (changes,) = qp.ad.jvp(lambda k: springs(k, forces, energy), (k,), [[1.0, 0.0, 2.0]], forces)
    print(changes.to_numpy())  # [4. 0. 8.]


def example_vjp() -> None:
    k, forces, energy, springs = _springs()
    (gradient,) = qp.ad.vjp(lambda k: springs(k, forces, energy), (k,), [[1.0, 0.0, 2.0]], forces)
    print(gradient.to_numpy())  # [4. 0. 8.]


def example_hvp() -> None:
    k, forces, energy, springs = _springs()
    (product,) = qp.ad.hvp(lambda k: springs(k, forces, energy), (k,), [[1.0, 0.0, 2.0]], energy)
    print(product.to_numpy())  # [12.  0. 24.]


def example_jacobian() -> None:
    k, forces, energy, springs = _springs()
    matrix = qp.ad.jacobian(springs, (k, forces, energy), k, forces, sparsity=np.eye(3))
    print(matrix.data)  # [4. 4. 4.]


def example_hessian() -> None:
    k, forces, energy, springs = _springs()
    print(qp.ad.hessian(springs, (k, forces, energy), k, energy)[0])  # [12.  0.  0.]


def example_no_grad() -> None:
    x, loss, squares = _squares()
    with qp.ad.Tape(loss):
        squares()
        with qp.ad.no_grad():
            print(x[0])  # 3.0


def example_custom() -> None:
    x, loss, squares = _squares()

    @qp.ad.custom
    def clipped() -> None:
        squares()

    @clipped.backward
    def _() -> None:
        squares.grad()
        x.grad.from_numpy(x.grad.to_numpy().clip(-1, 1))

    with qp.ad.Tape(loss):
        clipped()
    print(x.grad.to_numpy())  # [1. 1. 1.]


def example_grad_for() -> None:
    x, loss, squares = _squares()

    @qp.ad.grad_replaced
    def forward() -> None:
        squares()

    @qp.ad.grad_for(forward)
    def backward() -> None:
        x.grad.fill(0.5)

    with qp.ad.Tape(loss):
        forward()
    print(x.grad.to_numpy())  # [0.5 0.5 0.5]


def example_Number() -> None:
    x, loss, _ = _squares()
    k = qp.ad.Number(0.5)

    @qp.kernel
    def stretch(k: qp.f32):
        for i in x:
            loss[None] += k * x[i] ** 2

    with qp.ad.Tape(loss):
        stretch(k)
    print(k.grad[None])  # 27.0


def example_Value() -> None:
    x, loss, _ = _squares()
    weights = qp.ad.Value(qp.Vector([0.5, 2.0]))

    @qp.kernel
    def stretch(weights: qp.types.vector(2, qp.f32)):
        for i in x:
            loss[None] += weights[i % 2] * x[i] ** 2

    with qp.ad.Tape(loss):
        stretch(weights)
    print(weights.grad[None].to_list())  # [18.0, 9.0]


def example_stop() -> None:
    x, loss, _ = _squares()

    @qp.kernel
    def relax():
        for i in x:
            loss[None] += x[i] * qp.ad.stop(x[i])  # its derivative is x[i]

    with qp.ad.Tape(loss):
        relax()


def example_checkpoint() -> None:
    x, loss, squares = _squares()
    v = qp.field(qp.f64, x.shape, needs_grad=True)

    @qp.kernel
    def kick(k: qp.f32):
        for i in v:
            v[i] -= k * qp.sin(x[i])

    @qp.kernel
    def drift():
        for i in x:
            x[i] += 0.1 * v[i]

    def step(number: int) -> None:
        kick(0.1 + 0.01 * number)
        drift()

    with qp.ad.Tape(loss):
        qp.ad.checkpoint(step, 100, slots=5)
        squares()


def example_memory() -> None:
    _, loss, squares = _squares()

    def learn() -> None:
        with qp.ad.Tape(loss):
            squares()

    print(qp.ad.memory(learn), "bytes")  # 0 bytes


def example_implicit() -> None:
    _, loss, _ = _squares()
    b, y = (qp.ndarray(qp.f32, 3, needs_grad=True) for _ in range(2))

    @qp.kernel
    def residual(r: qp.Array1D[qp.f32], y: qp.Array1D[qp.f32], b: qp.Array1D[qp.f32]):
        for i in r:
            r[i] = y[i] ** 3 + y[i] - b[i]

    @qp.kernel
    def bisection(y: qp.Array1D[qp.f32], b: qp.Array1D[qp.f32]):
        for i in y:
            low, high = 0.0, b[i] + 1.0
            for _ in range(40):
                middle = 0.5 * (low + high)
                if middle**3 + middle < b[i]:
                    low = middle
                else:
                    high = middle
            y[i] = low

    root = qp.ad.implicit(residual, bisection)
    with qp.ad.Tape(loss):
        root(y, b)  # the gradient of y goes to b
