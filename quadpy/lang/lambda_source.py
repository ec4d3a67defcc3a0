"""The text of lambdas that Python made: found in their file, and read as functions that return their expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import CodeType

from quadpy.lang.parsing import parse

__all__ = ["lambda_tree"]


def lambda_tree(lines: Sequence[str], code: CodeType) -> ast.FunctionDef | None:
    """The function that does what the lambda of ``code`` does; None where the file has no such lambda, or several."""
    try:
        tree = parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    here = (node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno)
    found = [node for node in here if _is_of(node, code)]
    if len(found) != 1:
        return None
    made = parse("def f(): return 0").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args = found[0].args
    made.body = [ast.copy_location(ast.Return(found[0].body), found[0].body)]
    return ast.copy_location(made, found[0])


def _is_of(node: ast.Lambda, code: CodeType) -> bool:
    """Whether ``code`` comes from ``node``: by its names and constants, and by its place in the line."""
    expression = ast.Expression(node)
    made = next(each for each in compile(expression, "", "eval").co_consts if isinstance(each, CodeType))
    alike = sorted(_names(made)) == sorted(_names(code)) and made.co_consts == code.co_consts
    places = set(_places(code))
    return alike and (not places or (node.body.lineno, node.body.col_offset) in places)


def _names(code: CodeType) -> tuple[str, ...]:
    return (*code.co_varnames, *code.co_names, *code.co_freevars)


def _places(code: CodeType) -> Iterator[tuple[int | None, int | None]]:
    """Where the expressions of ``code`` begin; nothing before Python 3.11."""
    if hasattr(code, "co_positions"):
        yield from ((line, column) for line, _, column, _ in code.co_positions())
