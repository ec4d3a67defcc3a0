"""Small programs that other projects differentiate wrongly: right, or an error with the line.

Their derivatives are known by hand, or compared with tangents and differences.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from derivatives import Runnable, adjoint_of, check_both, tangent_of, traced

import quadpy as qp
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.grad.reverse import adjoint
from quadpy.ir.walk import walk
from quadpy.lang.library import with_callees

vec = qp.types.ndarray(qp.f64, ndim=1)
mat = qp.types.ndarray(qp.f64, ndim=2)
ints = qp.types.ndarray(qp.i32, ndim=1)


@pytest.fixture(autouse=True, scope="module")
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


def gradient(kernel, x, n=0, size=1):
    """The derivative of ``y[0]``, by ``x``."""
    kernel = traced(kernel)
    given = {"x": np.array(x, float), "y": np.zeros(size)}
    if any(param.name == "n" for param in kernel.params):
        given["n"] = n
    Runnable(kernel)(**given)
    grads = {"x.grad": np.zeros(len(x)), "y.grad": np.eye(size)[0].copy()}
    Runnable(adjoint_of(kernel, ["x", "y"]))(**given, **grads)
    return grads["x.grad"]


def test_a_power_by_a_loop_of_run_time_length():
    @qp.kernel
    def k(x: vec, y: vec, n: qp.i32):
        for i in range(1):
            p = 1.0
            for _ in range(n):
                p *= x[i]
            y[i] = p

    np.testing.assert_allclose(gradient(k, [2.0], 5), [80])
    np.testing.assert_allclose(gradient(k, [2.0], 0), [0])
    np.testing.assert_allclose(gradient(k, [2.0], -3), [0])
    np.testing.assert_allclose(gradient(k, [0.0], 1), [1])
    for n in (1, 2, 15, 16, 17, 255, 256, 257, 1000, 5000):
        np.testing.assert_allclose(gradient(k, [1.0001], n), [n * 1.0001 ** (n - 1)], rtol=1e-11)


def test_the_square_of_a_sum():
    @qp.kernel
    def k(x: vec, y: vec, n: qp.i32):
        for i in range(1):
            s = 0.0
            for _ in range(n):
                s += x[i]
            y[i] = s * s

    np.testing.assert_allclose(gradient(k, [2.0], 10), [400])


def test_a_value_from_before_the_loop():
    @qp.kernel
    def k(x: vec, y: vec, n: qp.i32):
        for i in range(1):
            a = x[i] * x[i]
            s = 0.0
            for _ in range(n):
                s += a * x[0]
                a = a + 0.0 * s
            y[i] = s

    np.testing.assert_allclose(gradient(k, [2.0], 3), [36])


def test_break_continue_and_while():
    @qp.kernel
    def breaks(x: vec, y: vec, n: qp.i32):
        for i in range(1):
            p = x[i]
            for j in range(n):
                if j == 2:
                    break
                p *= x[i]
            y[i] = p

    @qp.kernel
    def continues(x: vec, y: vec, n: qp.i32):
        for i in range(1):
            p = 1.0
            for j in range(n):
                if j % 2 == 1:
                    continue
                p *= x[i]
            y[i] = p

    @qp.kernel
    def halves(x: vec, y: vec):
        for i in range(1):
            p = x[i]
            while p > 1.0:
                p *= 0.5
            y[i] = p

    np.testing.assert_allclose(gradient(breaks, [2.0], 100), [12])
    np.testing.assert_allclose(gradient(continues, [2.0], 4), [4])
    np.testing.assert_allclose(gradient(halves, [3.0]), [0.25])
    np.testing.assert_allclose(gradient(halves, [0.5]), [1])


def refused(kernel, names, match, line):
    with pytest.raises(KernelTypeError, match=match) as error:
        adjoint_of(traced(kernel), names)
    assert line in error.value.span.excerpt(), error.value


def test_a_product_in_place():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in y:
            y[i] = x[i]
        for i in y:
            y[i] *= y[i]

    refused(k, ["x", "y"], "value of y that is read here, but line", "y[i] *= y[i]")


def test_a_value_that_is_overwritten_later():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in y:
            y[i] = x[i] * x[i]  # reads x
        for i in x:
            x[i] = 100.0

    refused(k, ["x", "y"], "read here, but line", "# reads x")


def test_the_used_result_of_an_atomic():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in x:
            old = qp.atomic_add(y[0], x[i])
            y[1] = old * x[i]

    refused(k, ["x", "y"], "atomic|same element", "y[")


def test_overwrites_of_what_nothing_needs_are_no_matter():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in y:
            y[i] = 3.0 * x[i]
            x[i] = y[i] * 2.0
        for i in y:
            y[i] *= 0.5
            x[i] += y[i]

    check_both(traced(k), ["x", "y"], {"x": np.arange(1.0, 5), "y": np.ones(4)})


def test_time_steps_in_memory():
    @qp.kernel
    def k(u: mat, p: vec):
        for i in range(u.shape[0]):
            for t in range(u.shape[1] - 1):
                u[i, t + 1] = u[i, t] + 0.1 * qp.sin(u[i, t]) * p[0]

    @qp.kernel
    def back(u: mat, p: vec):
        for i in range(u.shape[0]):
            for t in range(u.shape[1] - 2, -1, -1):
                u[i, t] = u[i, t + 1] * u[i, t + 1] * p[0]

    @qp.kernel
    def overwritten(u: mat, p: vec):
        for i in range(u.shape[0]):
            for t in range(u.shape[1] - 1):
                u[i, t] = u[i, t + 1] * u[i, t] * p[0]  # both

    given = {"u": np.random.default_rng(3).uniform(0, 1, (3, 20)), "p": np.array([0.7])}
    check_both(traced(k), ["u", "p"], given)
    check_both(traced(back), ["u", "p"], given, rtol=1e-6)
    refused(overwritten, ["u", "p"], "overwrites", "# both")


def test_no_infinity_times_zero():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in range(1):
            y[i] = 0.0
            if x[i] > 0.0:
                y[i] += qp.sqrt(x[i]) + qp.log(x[i])
            y[i] += qp.select(x[i] > 0.0, qp.log(x[i]), x[i]) + qp.max(x[i], 0.0) + abs(x[i])

    np.testing.assert_allclose(gradient(k, [0.0]), [2.0])
    np.testing.assert_allclose(gradient(k, [-1.0]), [0.0])
    np.testing.assert_allclose(gradient(k, [4.0]), [0.25 + 0.25 + 0.25 + 2])


def test_scattered_stores_need_a_promise():
    @qp.kernel
    def k(x: vec, y: vec, n: ints):
        for i in x:
            y[n[i]] = x[i] * x[i]

    @qp.kernel
    def promised(x: vec, y: vec, n: ints):
        with qp.hazards.allow(y, reason="n is a permutation"):
            for i in x:
                y[n[i]] = x[i] * x[i]

    given = {"x": np.arange(1.0, 5), "y": np.ones(4), "n": np.array([2, 0, 3, 1], np.int32)}
    refused(k, ["x", "y"], "same element of y", "y[n[i]]")
    check_both(traced(promised), ["x", "y"], given)


def test_sums_into_chosen_elements():
    @qp.kernel
    def k(x: vec, y: vec, n: ints):
        for i in x:
            for j in range(3):
                y[(n[i] + j) % 4] += x[i] * x[(i + j) % 4] * j
                y[0] -= x[i]

    given = {"x": np.arange(1.0, 5), "y": np.ones(4), "n": np.array([2, 0, 2, 1], np.int32)}
    check_both(traced(k), ["x", "y"], given)


def test_nested_loops_whose_lengths_differ():
    @qp.kernel
    def k(x: vec, y: vec, n: ints):
        for i in x:
            a, b = x[i], 1.0
            for j in range(n[i]):
                for m in range(j, -1, -1):
                    if m == 5:
                        continue
                    a = a * 0.5 + qp.sin(b * x[m]) * 0.4
                    while b > 1.2:
                        b *= 0.5
                        if b < 0.8:
                            break
                    b = b * 0.7 + a * a + 0.4
            y[i] = a * b

    random = np.random.default_rng(5)
    given = {"x": random.uniform(0.5, 1, 30), "y": np.zeros(30), "n": np.arange(30, dtype=np.int32) % 22}
    check_both(traced(k), ["x", "y"], given, step=1e-6, rtol=1e-4)


def test_a_stencil_and_a_particle_in_a_grid():
    @qp.kernel
    def stencil(x: mat, y: mat):
        for i, j in x:
            if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
                y[i, j] = x[i - 1, j] * x[i + 1, j] + x[i, j - 1] - 4.0 * x[i, j] ** 2

    @qp.kernel
    def particles(x: vec, m: vec, y: vec):
        for p in x:
            at = x[p] * 8.0
            cell = qp.floor(at, qp.i32)
            rest = at - cell
            for k in qp.static(range(2)):
                weight = qp.abs(1.0 - k - rest)
                y[cell + k] += weight * weight * m[p]

    random = np.random.default_rng(5)
    check_both(traced(stencil), ["x", "y"], {"x": random.uniform(0, 1, (6, 7)), "y": random.uniform(0, 1, (6, 7))})
    given = {"x": random.uniform(0.05, 0.9, 20), "m": random.uniform(0, 1, 20), "y": np.zeros(9)}
    check_both(traced(particles), ["x", "m", "y"], given, step=1e-5)


def test_parameters_and_results_have_adjoints():
    @qp.kernel
    def k(x: vec, a: qp.f64) -> qp.f64:
        total = 0.0
        for i in x:
            total += qp.sin(a * x[i])
        return total * a

    kernel = traced(k)
    grad = kernel.params[0]
    more = (ir.ArrayParam("x.grad", grad.type, span=grad.span), ir.ArrayParam("a.grad", grad.type, span=grad.span),
            ir.ScalarParam("seed", qp.f64, span=grad.span))  # fmt: skip
    kernel = replace(kernel, params=(*kernel.params, *more))
    back = Runnable(adjoint(kernel, {"x": "x.grad", "a": "a.grad", "$result0": "seed"}, with_callees))
    x, a = np.linspace(0, 1, 5), 0.7
    grads = {"x.grad": np.zeros(5), "a.grad": np.zeros(1)}
    back(x=x, a=a, seed=2.0, **grads)
    np.testing.assert_allclose(grads["x.grad"], 2 * a * a * np.cos(a * x))
    np.testing.assert_allclose(grads["a.grad"], [2 * (np.sum(np.sin(a * x)) + a * np.sum(x * np.cos(a * x)))])


def test_prints_do_not_matter():
    @qp.kernel
    def k(x: vec, y: vec):
        for i in x:
            y[i] = x[i] * x[i]
            if x[i] > 5.0:
                print("large", x[i])

    assert adjoint_of(traced(k), ["x", "y"]).body.stmts
    assert not any(isinstance(node, ir.Print) for node in walk(adjoint_of(traced(k), ["x", "y"])))
    assert any(isinstance(node, ir.Print) for node in walk(tangent_of(traced(k), ["x", "y"])))


def test_a_variable_that_iterations_set():
    @qp.kernel
    def k(x: vec, y: vec):
        last = x[0]
        for i in x:
            last = x[i]  # sets it
        for i in x:
            y[i] = last

    refused(k, ["x", "y"], "sets a variable from outside", "# sets it")


def test_serial_code_between_loops():
    @qp.kernel
    def k(x: vec, y: vec, z: vec):
        y[0] = x[0] * x[1]
        y[1] = y[0] * y[0]
        t = y[1] * y[1]
        u = 0.0
        for i in y:
            u += qp.sin(x[i]) * t
        if u > 0.01:
            u = u * 0.5 + t
        for i in range(2, y.shape[0]):
            z[i] = t * 2.0 + u * i

    given = {"x": np.arange(1.0, 5) / 4, "y": np.ones(4), "z": np.ones(4)}
    check_both(traced(k), ["x", "y", "z"], given)


def test_an_index_that_is_overwritten():
    @qp.kernel
    def k(x: vec, y: vec, n: ints):
        for i in x:
            y[i] = x[n[i]] * 2.0  # needs n
            n[i] = 0

    refused(k, ["x", "y"], "value of n that is read here", "# needs n")
