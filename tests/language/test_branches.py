"""Functions with a rare case that is a branch where nothing is vectorised, and selections where something is."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.jit.offline import trace_for
from quadpy.target import parse_target

A = qp.types.ndarray


@qp.kernel
def straight(x: A(qp.f32, 1), d: A(qp.f64, 1), y: A(qp.f32, 2), z: A(qp.f64, 2)):
    for i in x:
        y[i, 0] = qp.sin(x[i])
        y[i, 1] = qp.cos(x[i])
        y[i, 2] = qp.tan(x[i])
        z[i, 0] = qp.sin(d[i])
        z[i, 1] = qp.cos(d[i])
        z[i, 2] = qp.tan(d[i])


@qp.kernel
def turns(x: A(qp.f32, 1), d: A(qp.f64, 1), y: A(qp.f32, 2), z: A(qp.f64, 2)):
    for i in x:
        k = 0
        while k < 1:
            y[i, 0] = qp.sin(x[i])
            y[i, 1] = qp.cos(x[i])
            y[i, 2] = qp.tan(x[i])
            z[i, 0] = qp.sin(d[i])
            z[i, 1] = qp.cos(d[i])
            z[i, 2] = qp.tan(d[i])
            k += 1


def test_both_forms_have_the_same_bits():
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.normal(size=300) * 10.0 ** rng.integers(-30, 38, 300), [0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    x, d = x.astype(np.float32), x
    found = []
    for kernel in (straight, turns):
        y, z = np.zeros((len(x), 3), np.float32), np.zeros((len(x), 3))
        kernel(x, d, y, z)
        for results in (y, z):
            results[np.isnan(results)] = np.nan  # all NaNs are one
        found.append((y.tobytes(), z.tobytes()))
    assert found[0] == found[1]


@qp.func
def wave(x: qp.f32) -> qp.f32:
    return qp.sin(x)


@qp.kernel
def carried(x: A(qp.f32, 2), y: A(qp.f32, 1)):
    for i in y:
        total = 0.0
        for k in range(i):
            total = total * 0.5 + wave(x[i, k])
        y[i] = total


@qp.kernel
def inner(x: A(qp.f32, 2)):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            x[i, k] = qp.sin(x[i, k])


@qp.kernel
def side_by_side(x: A(qp.f32, 2), y: A(qp.f32, 1)):
    for i in y:
        total = 0.0
        for k in range(x.shape[0]):
            total += qp.sin(x[k, i])
        y[i] = total


@pytest.mark.parametrize(
    ("kernel", "branches"), [(straight, False), (turns, True), (carried, True), (inner, False), (side_by_side, False)]
)
def test_where_branches_stay(kernel, branches):
    target = parse_target("cpu")
    text = lower(trace_for(kernel, {}, target).kernel, target)
    called = [line for line in text.splitlines() if "call" in line and "@fn.sin." in line]
    assert called
    assert all(("branching" in line) == branches for line in called)
