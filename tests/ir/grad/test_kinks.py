"""What derivatives are where a function is not smooth: the table in the guide, forward and backward."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from derivatives import Runnable, adjoint_of, tangent_of, traced

import quadpy as qp

vec = qp.types.ndarray(qp.f64, ndim=1)
GUIDE = Path(__file__).parents[3] / "docs/guides/derivatives.md"


@pytest.fixture(autouse=True, scope="module")
def doubles():
    qp.init(arch=qp.cpu, default_fp=qp.f64)
    yield
    qp.init(arch=qp.cpu)


@qp.func
def least(a, b, c):
    """The smallest number, found by comparisons."""
    found = a
    if b < found:  # noqa: PLR1730 - what is tested
        found = b
    if c < found:  # noqa: PLR1730 - what is tested
        found = c
    return found


@qp.kernel
def kinks(x: vec, y: vec, out: vec):
    for _ in range(1):
        a, b = x[0], y[0]
        out[0] = abs(a)
        out[1] = qp.min(a, b)
        out[2] = qp.max(a, b)
        out[3] = qp.math.clamp(a, 0.0, 1.0)
        out[4] = qp.floor(a) + qp.ceil(a) + qp.round(a) + qp.trunc(a)
        out[5] = qp.sqrt(a)
        out[6] = qp.pow(a, b + 2.0)
        out[7] = qp.pow(a, b + 0.5)
        out[8] = qp.pow(a, b)
        out[9] = qp.atan2(a, b)
        out[10] = qp.Vector([a, b]).norm()
        out[11] = qp.max(a, 0.0)
        out[12] = qp.max(0.0, a)
        out[13] = a if a > 0.0 else 0.0  # noqa: FURB136 - what is tested
        out[14] = least(a, b, 0.0)
        out[15] = qp.math.sign(a)


INF = math.inf
EXPECTED = {  # the derivatives by a and b at (0, 0)
    0: (0, 0), 1: (1, 0), 2: (1, 0), 3: (1, 0), 4: (0, 0), 5: (0, 0), 6: (0, 0), 7: (INF, 0), 8: (0, -INF), 9: (0, 0), 10: (0, 0),
    11: (1, 0), 12: (0, 0), 13: (0, 0), 14: (1, 0), 15: (0, 0),
}  # fmt: skip


def by_tangents():
    run = Runnable(tangent_of(traced(kinks), ["x", "y", "out"]))
    found = []
    for way in ((1.0, 0.0), (0.0, 1.0)):
        duals = {"x.dual": np.array(way[:1]), "y.dual": np.array(way[1:]), "out.dual": np.zeros(16)}
        run(x=np.zeros(1), y=np.zeros(1), out=np.zeros(16), **duals)
        found.append(duals["out.dual"])
    return {k: (found[0][k], found[1][k]) for k in range(16)}


def by_adjoints():
    run, found = Runnable(adjoint_of(traced(kinks), ["x", "y", "out"])), {}
    for k in range(16):
        grads = {"x.grad": np.zeros(1), "y.grad": np.zeros(1), "out.grad": np.eye(16)[k].copy()}
        run(x=np.zeros(1), y=np.zeros(1), out=np.zeros(16), **grads)
        found[k] = grads["x.grad"][0], grads["y.grad"][0]
    return found


def test_the_table_forward_and_backward():
    assert by_tangents() == EXPECTED
    assert by_adjoints() == EXPECTED


def test_the_guide_has_the_table():
    table = GUIDE.read_text(encoding="utf-8").partition("## Where a function is not smooth")[2].partition("##")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"(\w+)\(", row)}
    assert {"abs", "min", "max", "clamp", "floor", "sqrt", "pow", "atan2", "norm", "sign"} <= named
