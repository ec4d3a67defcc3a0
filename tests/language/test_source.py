"""Where a piece of a kernel stands in the user's file, whatever surrounds it."""

from __future__ import annotations

import ast
import linecache
from types import SimpleNamespace

import numpy as np
import pytest

import quadpy as qp
from quadpy.lang.source import FunctionSource


def outer():
    def inner(x):
        _text = """
further left than the code"""
        return x + 1  # the place

    return inner


def accents(x):
    return ("ñandú", x + 2)


def expression(fn) -> tuple[FunctionSource, ast.BinOp]:
    source = FunctionSource(fn)
    (found,) = [node for node in ast.walk(source.tree) if isinstance(node, ast.BinOp)]
    return source, found


def marked(fn) -> str:
    """The text that the caret line points at."""
    source, node = expression(fn)
    code, carets = source.span_of(node).excerpt().splitlines()
    return code[carets.index("^") : carets.rindex("^") + 1]


def test_a_text_may_stand_further_left():
    source, node = expression(outer())
    assert source.span_of(node).line == outer.__code__.co_firstlineno + 4
    assert marked(outer()) == "x + 1"


def test_columns_count_characters():
    assert marked(accents) == "x + 2"


PROGRAM = """
import quadpy as qp
F64 = qp.types.ndarray(dtype=qp.f64, ndim=1)
edit()

class Around:
    @qp.kernel
    def method(o: F64):
        for i in o:
            o[i] = 1

def make(n):
    @qp.kernel
    def nested(o: F64):
        for i in o:
            o[i] = n
    return nested

@qp.kernel
def plain(o: F64):
    \"\"\"Text.\"\"\"
    for i in o:
        o[i] = len([j for j in (1,)])  # a function of its own, before Python 3.12

@qp.kernel
def asserting(o: F64):
    for i in o:
        assert i < 10
        o[i] = 1

method, nested = Around.method, make(1)
KERNELS = method, nested, plain, asserting
"""


def program(tmp_path, edit=lambda file: None):
    """The module of ``PROGRAM``; ``edit`` is called with its file after Python has read it, and before a decorator."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    names = {"__name__": "program", "edit": lambda: edit(file)}
    exec(compile(PROGRAM, str(file), "exec"), names)
    return SimpleNamespace(**names)


def result(kernel):
    o = np.zeros(1)
    kernel(o)
    return o[0]


def test_the_text_is_that_of_what_runs(tmp_path):
    assert [result(kernel) for kernel in program(tmp_path).KERNELS] == [1, 1, 1, 1]


def test_an_edit_after_the_decorator_changes_nothing(tmp_path):
    found = program(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM.replace("= 1", "= 2").replace("(1,)", "(1, 2)"))
    linecache.checkcache()
    assert [result(kernel) for kernel in found.KERNELS] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [("edit()\n", "edit()\n\n\n"), ("\nimport quadpy as qp\nF64", "F64"), ("= 1", "= 2"), ("= n", "= n + 1"), ("= n", "= m"), ("i in o", "j in o"),
     ("(1,)", "(1, 2)"), (PROGRAM, ""), ("def ", "async def "), ("    for", "    )for")],
)  # fmt: skip
def test_an_edit_before_the_decorator_never_changes_a_result(tmp_path, old, new):
    """It is an error where the text is no longer that of what runs."""
    kernels = program(tmp_path, lambda file: file.write_text(PROGRAM.replace(old, new))).KERNELS
    results = [result_or_error(kernel) for kernel in kernels]
    assert set(results) <= {1, "has changed", "cannot be found"}
    assert results != [1, 1, 1, 1]


def result_or_error(kernel):
    try:
        return result(kernel)
    except qp.KernelSourceError as error:
        return next((words for words in ("has changed", "cannot be found") if words in error.message), error.message)


def test_tools_may_add_to_a_function_that_they_import(tmp_path):
    tree = ast.parse(PROGRAM)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "make":
            node.body.insert(1, ast.parse("counted(1)").body[0])
    ast.fix_missing_locations(tree)
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    names = {"__name__": "program", "edit": lambda: None}
    exec(compile(tree, str(file), "exec"), names)
    assert [result(kernel) for kernel in names["KERNELS"]] == [1, 1, 1, 1]
