"""Loops that cannot end are errors; those that can, whatever their condition, are not."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

KERNEL = """
@qp.func
def f(a):
    {function}

@qp.kernel
def k(x: qp.types.ndarray(dtype=qp.i32, ndim=1), n: qp.i32):
    for i in x:
        j = 0
        {body}
        x[i] = j
"""


def kernel(load, body, function="return a"):
    indented = body.replace("\n", "\n        ")
    return load(KERNEL.format(body=indented, function=function.replace("\n", "\n    "))).k


ENDLESS = {
    "without an exit": "while True:\n    j += 1",
    "empty": "while 1: pass",
    "a true text": "while 'yes': j += 1",
    "a break of the loop inside": "while True:\n    for l in range(3):\n        break",
    "a break that is never taken": "while True:\n    if qp.static(False):\n        break",
    "only continue": "while True:\n    if j > 3:\n        continue",
    "a return of a function inside": "while True:\n    j = g(j)",
    "a condition of a parameter": "while n > 0:\n    j += 1",
    "a condition of the index": "while i < n: pass",
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_loop_that_cannot_end_is_an_error(load, case):
    k = kernel(load, ENDLESS[case].replace("g(j)", "f(j)"), "if a > 3:\n    return 1\nreturn a")
    with pytest.raises(qp.KernelSyntaxError, match="never ends") as caught:
        k(np.zeros(2, np.int32), 1)
    assert "while" in caught.value.span.excerpt()


FINITE = {
    "break": ("while True:\n    j += 1\n    if j == 5:\n        break", 5),
    "return": ("j = f(0)", 5),
    "a variable": ("while j < 5:\n    j += 1", 5),
    "an element": ("while x[i] < 5:\n    x[i] += 1\nj = x[i]", 5),
    "never entered": ("while False:\n    j += 1", 0),
    "two conditions": ("while n > 0 and j < 5:\n    j += 1", 5),
    "a break under a run-time condition alone": ("while n > 0:\n    j += 1\n    if j > 4:\n        break", 5),
}


@pytest.mark.parametrize("case", FINITE)
def test_a_loop_that_can_end_ends(load, case):
    body, expected = FINITE[case]
    found = np.zeros(3, np.int32)
    kernel(load, body, "while True:\n    a += 1\n    if a == 5:\n        return a")(found, 1)
    np.testing.assert_array_equal(found, expected)
