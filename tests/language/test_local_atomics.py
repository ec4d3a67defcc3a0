"""Atomic operations on variables of one thread: read, modify, write, and the old value, as Python would do it in order."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy import atomic_add as add

I32 = qp.types.ndarray(qp.i32, 1)
closed_over = {"by key": qp.atomic_add, "list": [qp.atomic_max, qp.atomic_sub]}

BODIES = {
    "a component in a loop": ("v = qp.Vector([0, 0])\nfor j in range(n):\n    qp.atomic_add(v[0], j)", "v[0]", 10),
    "a component by letter, under if": ("v = qp.Vector([0, 0])\nif n > 2:\n    qp.atomic_add(v.y, 7)", "v[1]", 7),
    "a component chosen at run time": (
        "v = qp.Vector([0, 0, 0])\nfor j in range(n):\n    qp.atomic_add(v[j % 3], j)", "v[0] * 100 + v[1] * 10 + v[2]",
        (0 + 3) * 100 + (1 + 4) * 10 + 2),
    "a row": ("m = qp.Matrix([[1, 2], [3, 4]])\nold = qp.atomic_add(m[n % 2], 10)", "m[1, 0] * 10 + old[1]", 134),
    "a whole vector": ("v = qp.Vector([1, 2])\nold = qp.atomic_max(v, 2)", "v[0] * 100 + old[0] * 10 + old[1]", 212),
    "another name": ("x = 0\nfor j in range(n):\n    add(x, j)", "x", 10),
    "a name of the kernel": ("op = qp.atomic_add\nx = 0\nfor j in range(n):\n    op(x, j)", "x", 10),
    "an item of a container": ("x = 3\nfor j in range(n):\n    closed_over['by key'](x, j)", "x", 13),
    "several of a list": ("x = 3\nfor op in qp.static(closed_over['list']):\n    op(x, 5)", "x", 0),
    "one of two, chosen when compiling": ("x = 3\n(add if qp.static(True) else min)(x, 5)", "x", 8),
    "a parameter of a function": ("x = doubled(n)", "x", 10),
    "a function's own loop": ("x = summed(add, n)", "x", 10),
    "an index of the loop": ("x = 0\nfor j in range(n):\n    add(j, 10)\n    x += j", "x", 60),
    "the old value, then the new": ("x = n\ny = x + add(x, 1)", "y * 100 + x", 1006),
    "the new value after the old": ("x = n\ny = add(x, 1) + x", "y * 100 + x", 1106),
    "an index": ("k = n\nout[add(k, 1) - n + i] = k", "out[i]", 5),
    "arguments": ("k = n\nx = pair(k, add(k, 1), k)", "x", 50506),
    "a comparison": ("k = n\nx = 1 if k < add(k, 1) else 0", "x", 0),
    "a chain": ("k = n\nt = (k < 7) and (add(k, 10) < 7) and (k > 10)\nx = k + (100 if t else 0)", "x", 115),
    "a condition": ("k = n\nx = (k if add(k, 1) < 7 else 0) + k * 10", "x", 66),
    "an augmented assignment": ("x = n\nx += add(x, 1)", "x", 10),
    "components of a list": ("v = qp.Vector([n, 7])\nw = qp.Vector([add(v[0], 5), v[0], v[1]])", "w[0] + 10 * w[1] + w[2]", 112),
    "an index that changes": ("v = qp.Vector([1, 2, 3])\nk = 0\nadd(v[add(k, 1)], 10)\nv[add(k, 1)] += 20",
                              "v[0] * 10000 + v[1] * 100 + v[2] + k", 112205),
    "an operation in an operation": ("x = n\ny = add(x, add(x, 1))", "y * 100 + x", 611),
    "a dictionary": ("k = n\nd = {'a': k, 'b': (k, 1)}\nk += 1", "d['a'] * 10 + d['b'][0]", 55),
    "exchange": ("x = n\ny = qp.atomic_exchange(x, 3)", "x * 10 + y", 35),
    "compare and swap": ("x = n\ny = qp.atomic_cas(x, 5, 3)\nz = qp.atomic_cas(x, 5, 4)", "x * 100 + y * 10 + z", 353),
}  # fmt: skip
TEXT = """
from quadpy import atomic_add as add
closed_over = {{"by key": qp.atomic_add, "list": [qp.atomic_max, qp.atomic_sub]}}

@qp.func
def doubled(x):
    for _ in range(1):
        add(x, x)
    return x

@qp.func
def summed(op, n):
    total = 0
    for j in range(n):
        op(total, j)
    return total

@qp.func
def pair(a, b, c):
    return a * 10000 + b * 100 + c

@qp.kernel
def kernel(out: qp.types.ndarray(qp.i32, 1), n: qp.i32):
    for i in out:
{body}
        out[i] = {result}
"""


@pytest.mark.parametrize("case", BODIES)
def test_an_atomic_operation_on_a_variable_is_the_plain_one_however_it_is_spelled(load, case):
    body, result, want = BODIES[case]
    out = np.zeros(2, np.int32)
    body = "\n".join("        " + line for line in body.splitlines())
    load(TEXT.format(body=body, result=result)).kernel(out, 5)
    assert out[0] == want


@qp.kernel
def into_a_result(x: I32) -> qp.i32:
    most = -1
    for i in x:
        closed_over["list"][0](most, x[i])
    return most


def test_an_operation_on_a_variable_that_iterations_share_is_atomic():
    assert into_a_result(np.arange(1000, dtype=np.int32) % 997) == 996


@qp.kernel
def changes_a_parameter(x: I32, n: qp.i32) -> qp.i32:
    for i in x:
        add(n, x[i])
    return n


def test_a_parameter_is_a_variable_where_an_operation_changes_it():
    assert changes_a_parameter(np.arange(1000, dtype=np.int32), 7) == 499507


@qp.kernel
def draws(x: I32):
    for i in x:
        v = qp.Vector([0, 0, 0])
        for _ in range(20):
            v[qp.i32(qp.random() * 3)] += 1
            v[qp.i32(qp.random() * 3)] //= 1
        x[i] = v.sum()


def test_the_index_of_an_augmented_assignment_is_evaluated_once():
    x = np.zeros(50, np.int32)
    draws(x)
    assert (x == 20).all()


@qp.kernel
def says(x: I32):
    for i in x:
        y = 0
        qp.static_print("once")
        add(y, 1)
        x[i] = y


def test_what_is_printed_while_compiling_is_printed_once(capsys):
    x = np.zeros(3, np.int32)
    says(x)
    assert capsys.readouterr().out == "once\n"
    assert x.tolist() == [1, 1, 1]


def test_a_constant_of_the_module_is_no_place(load):
    module = load("""
        LIMIT = 3
        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.i32, 1)):
            for i in x:
                qp.atomic_add(LIMIT, 1)
    """)
    with pytest.raises(qp.KernelTypeError, match="element of an array or a variable"):
        module.kernel(np.zeros(3, np.int32))
