"""Where a piece of a kernel stands in the user's file, whatever surrounds it."""

from __future__ import annotations

import ast

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
    code, carets = source.place(node).excerpt().splitlines()
    return code[carets.index("^") : carets.rindex("^") + 1]


def test_a_text_may_stand_further_left():
    source, node = expression(outer())
    assert source.place(node).line == outer.__code__.co_firstlineno + 4
    assert marked(outer()) == "x + 1"


def test_columns_count_characters():
    assert marked(accents) == "x + 2"
