"""Variables that some path leaves without a value: reading one is an error of the line that reads it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import quadpy as qp

UNASSIGNED = {
    "one branch": ("if i > 1:\n    y = 5", "y"),
    "the other branch": ("if i > 1:\n    pass\nelse:\n    y = 5", "y"),
    "one of three branches": ("if i > 1:\n    y = 5\nelif i > 0:\n    y = 6", "y"),
    "a branch in a branch": ("if i > 1:\n    if n > 1:\n        y = 1\nelse:\n    y = 2", "y"),
    "a loop that may not run": ("for j in range(n):\n    y = j", "y"),
    "a loop over an array": ("for j in x:\n    y = j", "y"),
    "a while that may not run": ("while i < n - 10:\n    y = 7\n    break", "y"),
    "what an earlier iteration set": ("for j in range(3):\n    if j == i:\n        y = 100\n    x[i] += y", None),
    "a branch that goes on with the next iteration": (
        "y = 0\nfor j in range(3):\n    if j == i:\n        z = 1\n        continue\n    y = z", None),
    "a break before it": ("while True:\n    if i > 1:\n        break\n    y = 3\n    if y > 2:\n        break", "y"),
    "an augmented assignment": ("if i > 1:\n    y = 5\ny += 1", None),
    "a vector": ("if i > 1:\n    v = qp.Vector([1, 2])", "v.sum()"),
    "a component that is set": ("if i > 1:\n    v = qp.Vector([1, 2])\nv[0] = 3", None),
    "an atomic operation": ("if i > 1:\n    y = 5\nqp.atomic_add(y, 1)", None),
    "one path of a function": ("y = one_path(i)", "y"),
    "a path that goes around a return": ("y = around(i)", "y"),
    "a branch under a static one": ("if qp.static(True):\n    if i > 1:\n        y = 5", "y"),
}  # fmt: skip
TEXT = """
@qp.func
def one_path(c):
    if c > 1:
        y = 5
    return y

@qp.func
def around(c):
    if c > 1:
        y = 5
    elif c > 7:
        return 0
    return y

@qp.kernel
def kernel(x: qp.types.ndarray(qp.i32, 1), n: qp.i32):
    for i in x:
{body}
"""


def indented(text):
    return "\n".join("        " + line for line in text.splitlines())


@pytest.mark.parametrize("case", UNASSIGNED)
def test_a_variable_that_a_path_leaves_unassigned_cannot_be_read(load, case):
    text, read = UNASSIGNED[case]
    body = indented(text + (f"\nx[i] = {read}" if read else ""))
    with pytest.raises(qp.KernelNameError, match="does not assign it on every path") as caught:
        load(TEXT.format(body=body)).kernel(np.zeros(3, np.int32), 3)
    assert "^" in str(caught.value)


@pytest.mark.parametrize("section", [False, True], ids=["at the top level", "in a parallel loop"])
def test_at_the_top_level_too(load, section):
    module = load(f"""
        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.i32, 1), n: qp.i32):
            if n > 3:
                y = 9
            {"for i in x:" if section else "if n > 3:"}
                x[0] {"+=" if section else "="} {"y" if section else "1"}
            x[1] = {"0" if section else "y"}
    """)
    with pytest.raises(qp.KernelNameError, match="does not assign it on every path"):
        module.kernel(np.zeros(3, np.int32), 3)


def assigned(i: int, n: int) -> int:
    """Every read here follows an assignment, whichever way is taken."""
    total = 0
    if i % 2 == 0:
        a = i
        total += a
    if i % 3 == 0:
        b = 1
    elif i % 3 == 1:
        b = 2
    else:
        b = 3
    total += 10 * b
    for j in range(n):
        if j == 2:
            continue
        if j == 5:
            c = 50
            break
        c = j
        total += c
    while True:
        d = total % 7
        total += 3
        if d == i % 7:
            break
    total += 1000 * d
    while True:
        if total % 2 == 0:
            e = 1
            break
        if total % 3 == 0:
            e = 2
            break
        total += 1
    return total * 10 + e + ending(i)


def ending(k: int) -> int:
    """Paths that return assign nothing."""
    if k > 5:
        return k
    elif k > 3:
        f = 2
    else:
        for j in range(k):
            if j == 1:
                return 7
            g = j + 1
            if g > 5:
                return g
        f = 3
    return f * 100


def test_what_is_assigned_on_every_way_needs_no_value_before(load):
    module = load(
        "@qp.func\n" + inspect.getsource(ending) + "\n@qp.func\n" + inspect.getsource(assigned)
        + "\n@qp.kernel\ndef kernel(x: qp.types.ndarray(qp.i32, 1), n: qp.i32):\n    for i in x:\n"
        "        x[i] = assigned(i, n)\n"
    )  # fmt: skip
    x = np.zeros(40, np.int32)
    module.kernel(x, 8)
    assert x.tolist() == [assigned(i, 8) for i in range(40)]


@qp.func
def guarded(x):
    if x < 0:
        return -1
    total = 0
    for j in range(10):
        total += x * j
    return total


@qp.func
def after_a_loop(x, out: qp.template()):
    total = 0
    for _ in range(1000):
        total += x
    if total > 5000:
        return 5000
    for j in out:
        out[j] = total
    return total


@qp.kernel
def twice(x: qp.i32) -> tuple[qp.i32, qp.i32]:
    return guarded(x), guarded(-x)


@qp.kernel
def around_loops(x: qp.i32, out: qp.types.ndarray(qp.i32, 1)) -> qp.i32:
    result = after_a_loop(x, out)
    for i in out:
        out[i] += result
    return result


def test_a_function_that_returns_before_a_loop_may_be_called_at_the_top_level():
    assert twice(3) == (135, -1)


def test_a_function_that_returns_after_a_loop_may_be_called_at_the_top_level():
    out = np.zeros(7, np.int32)
    assert around_loops(2, out) == 2000
    assert out.tolist() == [4000] * 7
    assert around_loops(9, out) == 5000
    assert out.tolist() == [9000] * 7
