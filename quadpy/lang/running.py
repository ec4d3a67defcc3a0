"""Whether a text is the source of a function that Python runs.

A file may be edited after Python has read it and before a decorator reads it.  The function's lines then hold other
text.
"""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import re
from types import CodeType
from typing import Final

from quadpy.lang.parsing import parse

_FUTURE: Final[int] = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_INCIDENTAL: Final = ("CALL", "EXTENDED_ARG", "FOR_ITER", "JUMP", "NOP", "PUSH_NULL", "SEND")
_PRIVATE: Final = re.compile(r"'_[^_']\w*?__")
"""In a class, ``__x`` is ``_Class__x``."""


def is_text_of(text: str, code: CodeType, first_line: int, *, exact: bool = False) -> bool:
    """Whether Python would compile ``text`` to ``code``; ``text`` begins in line ``first_line`` of its file.

    Code that a tool added on import is accepted: pytest, for example, rewrites ``assert``.  So are lines that the text
    has lost, but not lines that it has gained.  With ``exact``, none of these is accepted.
    """
    if code.co_name == "<lambda>":
        return True  # refused later, as a lambda
    header, around = _around(code) if text[:1].isspace() else ("", ())
    lines_above = "\n" * (first_line - 1 - header.count("\n"))
    try:
        tree = parse(lines_above + header + text)
        if not _defines(tree, code.co_name, depth=header.count("\n")):
            return False
        is_same = _compiled(tree, code, around) == code
        if is_same or exact:
            return is_same
        found = _compiled(_WithoutAssertions().visit(tree), code, around)
    except (SyntaxError, ValueError):
        return False
    steps = iter(_steps(code))  # each search starts after the step found last: all are there, in this order
    return all(step in steps for step in _steps(found))


def _around(code: CodeType) -> tuple[str, tuple[str, ...]]:
    """Lines to put around a method or nested function, whose text uses outer names; and the names that they define."""
    nested, names = code.co_flags & inspect.CO_NESTED, code.co_freevars
    outer = f"def outer({', '.join(name for name in names if name != '__class__')}):\n"
    lines, around = (outer, ("outer",)) if nested else ("", ())
    if "__class__" in names:  # outside a class, ``super()`` compiles to other code
        return f"{lines}{' ' if nested else ''}class Around:\n", (*around, "Around")
    return lines or "if True:\n", around


class _WithoutAssertions(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Pass:
        return ast.copy_location(ast.Pass(), node)


def _defines(tree: ast.Module, name: str, *, depth: int) -> bool:
    """Whether there is one function of that name, and nothing else, inside ``depth`` statements."""
    body: list[ast.stmt] = tree.body
    for _ in range(depth):
        body = getattr(body[0], "body", [])
    (first, *others) = body
    return not others and isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)) and first.name == name


def _compiled(tree: ast.Module, code: CodeType, around: tuple[str, ...]) -> CodeType:
    """The code of the one function in ``tree``, compiled with ``around`` as its surroundings."""
    found: CodeType = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    for name in (*around, code.co_name):
        inside = [inner for inner in found.co_consts if isinstance(inner, CodeType) and inner.co_name == name]
        found = inside[0]  # others may be the code of its annotations
    return found


def _steps(code: CodeType) -> list[tuple[str, str]]:
    """The function's instructions, without jump targets and without anything that depends on its module or class."""
    return [
        (step.opname.replace("LOAD_METHOD", "LOAD_ATTR"), _PRIVATE.sub("'__", _told(step.argval)))
        for step in dis.get_instructions(code)
        if not any(word in step.opname for word in _INCIDENTAL) and "<locals>" not in str(step.argval)
    ]


def _told(argument: object) -> str:
    return argument.co_name if isinstance(argument, CodeType) else repr(argument)
