"""Python that the kernel language does not have: each a KernelSyntaxError at the line, most with a hint."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

STATEMENTS = {
    "try": "try:\n    y = 1\nexcept ValueError:\n    y = 2",
    "raise": "raise ValueError",
    "with": "with open('f') as f:\n    pass",
    "import": "import os",
    "import from": "from os import path",
    "del": "y = 1\ndel y",
    "global": "global z\nz = 1",
    "nested def": "def g():\n    return 1",
    "nested class": "class C:\n    pass",
    "yield": "y = yield",
    "yield from": "yield from (1, 2)",
    "nonlocal class": "class D(int):\n    pass",
    "lambda of any arguments": "f = lambda *a: a",
    "pattern of a class over a run-time value": "match n:\n    case int():\n        pass",
    "alternatives that name a run-time value": "match n:\n    case (1 as y) | (2 as y):\n        pass",
    "await": "y = sum(i async for i in x)",
    "for else": "for i in range(n):\n    pass\nelse:\n    pass",
    "while else": "while n > 1:\n    n -= 1\nelse:\n    pass",
    "complex": "y = 1j",
    "bytes": "y = b'x'",
    "assign to call": "qp.sin(1.0).x = 2",
    "declaration": "y: qp.i32",
    "break of a parallel loop": "for i in x:\n    break",
    "return in a parallel loop": "for i in x:\n    return",
    "return in a branch": "if n > 1:\n    return",
    "static break under a run-time condition": "for i in qp.static(range(3)):\n    if n > i:\n        break",
    "is": "y = n is n",
    "in a range": "y = n in range(3)",
    "kernel in a kernel": "other(n)",
    "plain function": "plain(n)",
    "loop target": "for x[0] in range(3):\n    pass",
    "attribute of an array": "x.to_numpy()",
}  # fmt: skip

TEMPLATE = """
@qp.kernel
def other(n: qp.i32):
    pass

def plain(n):
    return n

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f32, 1), n: qp.i32):
{body}
"""


def indented(text):
    return "\n".join("    " + line for line in text.splitlines())


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(load, name):
    text = STATEMENTS[name]
    module = load(TEMPLATE.format(body=indented(text)))
    with pytest.raises(qp.KernelSyntaxError) as caught:
        module.kernel(np.zeros(4, np.float32), 2)
    span = caught.value.span
    assert span.file == module.__file__
    first = TEMPLATE.count("\n", 0, TEMPLATE.index("{body}")) + 3  # ``load`` puts two lines before
    assert first <= span.line < first + text.count("\n") + 1
    assert "^" in str(caught.value)
    assert f"{module.__file__}:{span.line}" in str(caught.value)


def test_the_message_shows_the_line_a_caret_and_a_hint(load):
    module = load("""
        @qp.kernel
        def kernel(n: qp.i32) -> qp.i32:
            import math
            return n
    """)
    with pytest.raises(qp.KernelSyntaxError) as caught:
        module.kernel(1)
    assert str(caught.value).splitlines() == [
        f"{module.__file__}:6:5: import is not part of the kernel language",
        "        import math",
        "        ^^^^^^^^^^^",
        "    hint: import outside the kernel",
    ]


def test_an_error_in_a_function_shows_the_functions_line(load):
    module = load("""
        @qp.func
        def inner(v):
            assert_ = v
            return unknown_name + v

        @qp.kernel
        def kernel(n: qp.i32) -> qp.i32:
            return inner(n)
    """)
    with pytest.raises(qp.KernelNameError, match="'unknown_name' is not defined") as caught:
        module.kernel(1)
    assert caught.value.span.line == 7


def test_recursion(load):
    module = load("""
        @qp.func
        def even(n):
            return True if n == 0 else odd(n - 1)

        @qp.func
        def odd(n):
            return False if n == 0 else even(n - 1)

        @qp.kernel
        def kernel(n: qp.i32) -> bool:
            return even(n)
    """)
    with pytest.raises(
        qp.KernelSyntaxError, match="even calls itself more than 32 times: a recursion must end while compiling"
    ) as caught:
        module.kernel(3)
    assert caught.value.span.line == 10
    assert "loop" in caught.value.hint


def test_the_process_goes_on_after_an_error(load):
    module = load("""
        @qp.kernel
        def kernel(n: qp.template()) -> qp.i32:
            if qp.static(n == 1):
                return (yield)
            return n
    """)
    for _ in range(2):
        with pytest.raises(qp.KernelSyntaxError):
            module.kernel(1)
        assert module.kernel(2) == 2
