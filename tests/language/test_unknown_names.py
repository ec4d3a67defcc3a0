"""Names that mean nothing in a kernel: each a KernelNameError (or a KernelTypeError, for attributes)."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

KERNEL = """
import math
LIMIT, CONSTANT = 5, qp.Vector([1, 2])

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f32, 1), n: qp.i32):
{body}
"""
UNDEFINED = {
    "a name": ("y = undefined", "'undefined'"),
    "a function": ("undefined(1)", "'undefined'"),
    "a module": ("y = undefined.sin(1)", "'undefined'"),
    "an array": ("undefined[0] = 1", "'undefined'"),
    "a target of +=": ("undefined += 1", "'undefined'"),
    "after a branch": ("if n > 0:\n    t = (1, 2)\ny = t[0]", "'t'"),
    "after a loop": ("for i in range(n):\n    pass\ny = i", "'i'"),
    "after a parallel loop": ("for i in x:\n    t = 1\ny = t", "'t'"),
    "a name of a comprehension": ("y = [k for k in range(3)]\nz = k", "'k'"),
    "a name in another branch": ("if qp.static(False):\n    v = 1\nelse:\n    y = v", "'v'"),
    "a global that the kernel assigns": ("y = LIMIT\nLIMIT = 3", "'LIMIT'"),
    "a global that the kernel adds to": ("LIMIT += 3", "'LIMIT'"),
}
ATTRIBUTES = {
    "a builtin": ("y = qp.no_such_function(1.0)", "no_such_function"),
    "a module": ("y = math.no_such_function(1.0)", "no_such_function"),
    "an array": ("y = x.no_such_thing", "no_such_thing"),
    "a number": ("y = n.no_such_thing", "no_such_thing"),
    "a vector": ("y = qp.Vector([1, 2]).no_such_thing", "no_such_thing"),
    "a component": ("y = qp.Vector([1, 2]).z", "'z'"),
    "a global vector that is set": ("CONSTANT[0] = 1", "constant in the kernel"),
    "a component that is set": ("y = qp.Vector([1, 2])\ny.z = 1", "'z'"),
}


def run(load, body):
    module = load(KERNEL.format(body="\n".join("    " + line for line in body.splitlines())))
    module.kernel(np.zeros(4, np.float32), 2)


@pytest.mark.parametrize("case", UNDEFINED)
def test_undefined(load, case):
    body, message = UNDEFINED[case]
    with pytest.raises(qp.KernelNameError, match=message) as caught:
        run(load, body)
    assert caught.value.span.line == 9 + (0 if case.startswith("a global") else body.count("\n"))
    assert "^" in str(caught.value)


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_attributes(load, case):
    body, message = ATTRIBUTES[case]
    with pytest.raises(qp.KernelTypeError, match=message) as caught:
        run(load, body)
    assert caught.value.span.line == 9 + body.count("\n")


def test_the_hint_lists_what_there_is(load):
    with pytest.raises(qp.KernelNameError) as caught:
        run(load, "speed = 1.0\ny = sped")
    assert "speed" in caught.value.hint


def test_an_annotation_that_names_nothing(load):
    module = load("""
        def make():
            local = qp.f32

            @qp.kernel
            def kernel(x: "local") -> "local":
                return x

            return kernel
    """)
    with pytest.raises(qp.KernelNameError, match="'local'") as caught:
        module.make()(1.0)
    assert "annotations" in caught.value.hint
