"""Sums of adjoints in a fixed order: gathers where loops decide what is read, exact sums where data do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from derivatives import Runnable, adjoint_of, check_adjoint, traced, with_twins

import quadpy as qp
from quadpy.ir import nodes as ir
from quadpy.ir.grad.reverse import adjoint
from quadpy.ir.pipeline import TASK_PASSES, run_passes
from quadpy.ir.walk import walk
from quadpy.lang.library import with_callees

vec = qp.types.ndarray(qp.f64, ndim=1)
mat = qp.types.ndarray(qp.f64, ndim=2)
cube = qp.types.ndarray(qp.f64, ndim=3)
ints = qp.types.ndarray(qp.i32, ndim=1)
vec3 = qp.types.ndarray(qp.types.vector(3, qp.f64), ndim=1)
pair = qp.types.ndarray(qp.types.vector(2, qp.f64), ndim=2)


@pytest.fixture(autouse=True, scope="module")
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def backward_of(kernel, names, **changes):
    """The backward kernel of a kernel after its passes."""
    kernel, grads = with_twins(replace(traced(kernel), **changes), names, ".grad")
    return run_passes(TASK_PASSES, adjoint(kernel, grads, with_callees))


def atomics_of(kernel):
    return [node for node in walk(kernel) if isinstance(node, ir.Atomic) and node.place.type.is_float]


def is_gathered(kernel, names):
    """Whether the backward kernel has no atomics, and no memory of its own."""
    made = backward_of(kernel, names)
    return not atomics_of(made) and made.shadow is None


@qp.kernel
def shifted(x: vec, y: vec, w: vec):
    for i in range(1, x.shape[0] - 1):
        y[i] = qp.sin(x[i - 1] * w[i]) + x[i + 1] * x[i]


@qp.kernel
def of_two_axes(x: mat, y: mat, w: mat):
    for i, j in qp.ndrange((1, x.shape[0] - 1), (2, x.shape[1] - 1)):
        y[i, j] = x[i - 1, j] * w[i, j] - x[i + 1, j - 2] * x[i, j + 1] + x[i, j]


@qp.kernel
def permuted(x: mat, y: mat, w: mat):
    for i, j in y:
        if i < x.shape[1] and j + 1 < x.shape[0]:
            y[i, j] = x[j, i] * w[i, j] + qp.cos(x[j + 1, i])


@qp.kernel
def reflected(x: vec, y: vec, w: vec):
    for i in x:
        y[i] = x[x.shape[0] - 1 - i] * w[i] + x[i]


@qp.kernel
def strided(x: vec, y: vec, w: vec):
    for i in range(x.shape[0] // 2 - 1):
        y[i] = x[2 * i] * w[i] + x[2 * i + 1] * x[2 * i + 2]


@qp.kernel
def with_steps(x: vec, y: vec, w: vec):
    for i in qp.ndrange((2, x.shape[0] - 3)):
        if i % 3 == 1:
            y[i] = x[i + 3] * w[i] + x[i - 2] ** 2


@qp.kernel
def periodic(x: mat, y: mat, w: mat):
    for i, j in x:
        n, m = x.shape[0], x.shape[1]
        y[i, j] = x[(i + 1) % n, j] * w[i, j] + x[i, (j - 1) % m] * x[(i - 2) % n, (j + 3) % m]


@qp.kernel
def of_a_short_period(x: vec, y: vec, w: vec):
    for i in y:
        y[i] = x[i % 3] * w[i] + x[(5 - i) % 4]


@qp.kernel
def clamped(x: mat, y: mat, w: mat):
    for i, j in x:
        n, m = x.shape[0], x.shape[1]
        y[i, j] = x[max(i - 1, 0), j] * w[i, j] + x[i, min(j + 2, m - 1)] + x[min(max(i - 3, 2), n - 2), j] ** 2


@qp.kernel
def guarded(x: vec, y: vec, w: vec):
    for i in x:
        s = 0.0
        if i > 0 and w[i] > 0.2:
            s += x[i - 1] * w[i]
        if i + 2 < x.shape[0]:
            s -= qp.sin(x[i + 2])
        y[i] = s * s


@qp.kernel
def convolved(x: mat, y: mat, w: mat):
    for i, j in y:
        s = 0.0
        for a in range(3):
            for b in range(2):
                if i + a < x.shape[0] and j + b < x.shape[1]:
                    s += w[a, b] * x[i + a, j + b]
        y[i, j] = s


@qp.kernel
def multiplied(x: mat, w: mat, y: mat):
    for i, j in y:
        s = 0.0
        for k in range(x.shape[1]):
            s += x[i, k] * w[k, j]
        y[i, j] = s


@qp.kernel
def between_all(x: vec3, y: vec3, w: vec):
    for i in x:
        force = qp.Vector([0.0, 0.0, 0.0])
        for j in range(x.shape[0]):
            r = x[j] - x[i]
            force += w[j] * r / (r.dot(r) + 0.1) ** 1.5
        y[i] = force


@qp.kernel
def of_triangles(x: vec, y: vec, w: vec):
    for i in x:
        s = 0.0
        for j in range(i):
            s += x[j] * w[i]
        y[i] = s


@qp.kernel
def of_rows(x: mat, y: mat, w: mat):
    for j in range(x.shape[1] - 1):
        y[0, j] = x[1, j] * x[2, j + 1] * w[0, j]


@qp.kernel
def of_an_axis(x: vec, y: mat, w: mat):
    for i, j in y:
        y[i, j] = x[j] * w[i, j]


@qp.kernel
def of_components(x: pair, y: pair, w: mat):
    for i, j in qp.ndrange(x.shape[0] - 1, x.shape[1] - 1):
        y[i, j] = qp.Vector([x[i + 1, j][1] * w[i, j], x[i, j + 1][0] * x[i, j][1]])


@qp.kernel
def of_three_axes(x: cube, y: cube, w: cube):
    for i, j, k in qp.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1), (1, x.shape[2] - 1)):
        s = 0.0
        for a in qp.static(range(3)):
            s += x[i + a - 1, j, k] + x[i, j + a - 1, k] * w[i, j, k] + x[i, j, k + a - 1] ** 2
        y[i, j, k] = s


@qp.kernel
def of_a_while(x: vec, y: vec, w: vec):
    for i in range(1, x.shape[0]):
        p, k = x[i], 0
        while p < 4 and k < 9:
            p = p * 1.5 + w[i] ** 2
            k += 1
        y[i] = p * x[i - 1]


GATHERED = {
    "vec": [shifted, reflected, strided, with_steps, of_a_short_period, guarded, of_triangles, of_a_while],
    "mat": [of_two_axes, permuted, periodic, clamped, of_rows],
    "cube": [of_three_axes],
}
SHAPES = {"vec": [(1,), (2,), (3,), (12,)], "mat": [(3, 1), (3, 3), (6, 5)], "cube": [(3, 3, 3), (4, 3, 5)]}
CASES = [(kernel, kind) for kind, kernels in GATHERED.items() for kernel in kernels]


def numbers(*shapes, seed=0):
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, shape) for shape in shapes]


@pytest.mark.parametrize(("kernel", "kind"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_loops_decide_is_gathered(kernel, kind):
    assert is_gathered(kernel, ["x", "y", "w"])
    for shape in SHAPES[kind]:
        if kernel in (of_a_short_period, clamped) and shape[0] < 4:
            continue
        check_adjoint(traced(kernel), ["x", "y", "w"], dict(zip("xyw", numbers(shape, shape, shape), strict=True)))


def test_what_a_loop_inside_decides_is_gathered():
    assert is_gathered(multiplied, ["x", "y", "w"])
    x, w, y = numbers((4, 6), (6, 5), (4, 5))
    check_adjoint(traced(multiplied), ["x", "w", "y"], {"x": x, "w": w, "y": y})
    x, y, w = numbers((7, 6), (7, 6), (3, 2))
    check_adjoint(traced(convolved), ["x", "w", "y"], {"x": x, "w": w, "y": y})
    assert is_gathered(between_all, ["x", "y"])
    for n in (1, 2, 9):
        x, y, w = numbers((n, 3), (n, 3), n)
        check_adjoint(traced(between_all), ["x", "y", "w"], {"x": x, "y": y, "w": w})


def test_arrays_of_other_shapes_are_gathered():
    assert is_gathered(of_an_axis, ["x", "y", "w"])
    x, y, w = numbers(5, (3, 5), (3, 5))
    check_adjoint(traced(of_an_axis), ["x", "y", "w"], {"x": x, "y": y, "w": w})
    assert is_gathered(of_components, ["x", "y", "w"])
    x, y, w = numbers((4, 5, 2), (4, 5, 2), (4, 5))
    check_adjoint(traced(of_components), ["x", "y", "w"], {"x": x, "y": y, "w": w})


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_overlapping_windows(stride):
    @qp.kernel
    def pooled(x: vec, y: vec, w: vec):
        for i in y:
            for k in range(3):
                y[i] += x[stride * i + k] * w[k]

    x, y, w = numbers(3 * 8 + 3, 8, 3)
    assert is_gathered(pooled, ["x", "y", "w"])
    check_adjoint(traced(pooled), ["x", "y", "w"], {"x": x, "y": y, "w": w})
    made = backward_of(pooled, ["x", "y"])
    task = next(
        each
        for each in made.tasks
        if any(place.array == "x.grad" for place in walk(each) if isinstance(place, ir.Element))
    )
    assert {type(axis.stop) for axis in task.axes} != {ir.Const}  # over the elements of x, not the iterations
    assert len(task.axes) == 1


def test_factors_inside_of_a_remainder():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in y:
            y[i] = qp.sin(x[(2 * i) % 5]) * x[(7 * i + 3) % x.shape[0]]

    x, y = numbers(6, 31)
    check_adjoint(traced(k), ["x", "y"], {"x": x, "y": y})


def test_more_than_one_iteration_of_short_windows():
    @qp.kernel
    def few(x: vec, y: vec, w: vec):
        for i in y:
            y[i] = x[min(max(3 - i, 1), 4)] * w[i] + x[max(i // 1 - 9, 0)]

    x, y, w = numbers(6, 15, 15)
    check_adjoint(traced(few), ["x", "y", "w"], {"x": x, "y": y, "w": w})


def test_elements_that_no_two_iterations_share_need_neither():
    @qp.kernel
    def streamed(x: pair, y: pair):
        for i, j in qp.ndrange((1, x.shape[0] - 1), x.shape[1]):
            a, b = x[i - 1, j][0], x[i + 1, j][1]
            y[i, j] = qp.Vector([a * b, qp.sin(a)])

    made = backward_of(streamed, ["x", "y"])
    assert len(made.tasks) == 1
    assert not atomics_of(made)
    x, y = numbers((5, 3, 2), (5, 3, 2))
    check_adjoint(traced(streamed), ["x", "y"], {"x": x, "y": y})


@qp.kernel
def scattered(x: vec, y: vec, at: ints):
    for i in y:
        s = 0.0
        for k in range(3):
            s += x[at[i] + k] * x[i]
        y[i] = s


def test_what_data_decide_is_summed_exactly():
    made = backward_of(scattered, ["x", "y"])
    assert not atomics_of(made)
    assert made.shadow is not None
    assert atomics_of(backward_of(scattered, ["x", "y"], fast_math=True))
    x, y = numbers(40, 40)
    at = np.random.default_rng(1).integers(0, 38, 40).astype(np.int32)
    check_adjoint(traced(scattered), ["x", "y"], {"x": x, "y": y, "at": at})


@qp.kernel
def read_from_one(x: vec, y: vec, w: vec, at: ints):
    for i in y:
        y[i] = x[at[i]] * w[i]


def sum_by(kernel, x, y_grad, w, at):
    x_grad = np.zeros_like(x)
    grads = {"x.grad": x_grad, "y.grad": y_grad.copy()}
    Runnable(adjoint_of(traced(kernel), ["x", "y"]))(x=x, y=y_grad.copy(), w=w, at=at, **grads)
    return x_grad


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e290])
def test_exact_sums_are_those_of_fractions(size):
    from math import fsum

    random = np.random.default_rng(3)
    w, y_grad = random.uniform(-1, 1, 500), size * np.exp(random.uniform(-20, 0, 500))
    at = random.integers(0, 7, 500).astype(np.int32)
    found = sum_by(read_from_one, np.zeros(8), y_grad, w, at)
    for k in range(8):
        products = (y_grad * w)[at == k]
        expected = fsum(products)
        assert abs(found[k] - expected) <= 2e-16 * abs(expected) + 2.0**-60 * np.max(np.abs(products), initial=0)
    order = random.permutation(500)
    again = sum_by(read_from_one, np.zeros(8), y_grad[order], w[order], at[order])
    np.testing.assert_array_equal(found, again)


def test_sums_with_what_is_not_finite():
    w, at = np.ones(8), np.array([0, 0, 1, 1, 2, 2, 3, 3], np.int32)
    inf, nan = np.inf, np.nan
    y_grad = np.array([inf, 1.0, -inf, 2.0, inf, -inf, nan, 1.0])
    np.testing.assert_array_equal(sum_by(read_from_one, np.zeros(5), y_grad, w, at), [inf, -inf, nan, nan, 0])
