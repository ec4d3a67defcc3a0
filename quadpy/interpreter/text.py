"""Python code as text, each line of which knows its line in the user's file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType
from typing import Final

from quadpy.lang.parsing import parse

MARK: Final = "·"
"""Part of the names that quadpy adds, and of no name that users write: ``x·1`` is the variable ``x.1`` of the IR."""

OWN: Final = 2 * MARK
"""Part of names that do not stand for a variable of the IR."""


def identifier(name: str) -> str:
    """A name of the IR as Python takes it."""
    return "".join(c if c.isalnum() or c in ("_", MARK) else _SPELT.get(c) or f"{MARK}u{ord(c)}" for c in name)


_SPELT: Final = {".": MARK, "$": f"_{MARK}", "[": f"{MARK}i", "]": "_"}


@dataclass(frozen=True, slots=True)
class _Written:
    """A line, or lines that are known only at the end."""

    depth: int
    text: str | Callable[[], list[str]]
    line: int


class CodeText:
    """Lines of Python code; ``line`` is the source line that they come from, until another is set."""

    def __init__(self) -> None:
        self.line = 1
        self._depth = 0
        self._lines: list[_Written] = []

    def put(self, text: str) -> None:
        self._lines.append(_Written(self._depth, text, self.line))

    def later(self, text: Callable[[], list[str]]) -> None:
        """Lines that ``text`` returns after everything is written."""
        self._lines.append(_Written(self._depth, text, self.line))

    @contextmanager
    def block(self, head: str | Callable[[], list[str]]) -> Iterator[None]:
        """Context manager: lines added inside are the body of ``head``, which may be known only at the end."""
        self._lines.append(_Written(self._depth, head, self.line))
        self._depth += 1
        count = len(self._lines)
        yield
        if len(self._lines) == count:
            self.put("pass")
        self._depth -= 1

    def finished(self) -> tuple[str, list[int]]:
        """The text, and for each of its lines the line of the source."""
        plain: list[_Written] = []
        for written in self._lines:
            texts = [written.text] if isinstance(written.text, str) else written.text()
            plain += [replace(written, text=text) for text in texts]
        return "".join(f"{'    ' * one.depth}{one.text}\n" for one in plain), [one.line for one in plain]


@dataclass(frozen=True, slots=True)
class Origin:
    """The source function of a function of the text: its name, its file, the line where it begins."""

    name: str
    file: str
    line: int


def compiled(code: CodeText, origins: Mapping[str, Origin]) -> CodeType:
    """``code`` with the lines, the files and the names of the functions from which it comes.

    A function's code begins at the line of its ``def``, though the text defines it where it is called.  Therefore, its lines
    are counted from there while Python compiles it, and the number of its first line is changed afterwards.
    """
    text, lines = code.finished()
    tree = parse(text)
    _place(tree.body, lines, 0, origins)
    return _renamed(compile(tree, "<quadpy>", "exec", dont_inherit=True), origins)


def _place(stmts: Iterable[ast.AST], lines: list[int], shift: int, origins: Mapping[str, Origin]) -> None:
    """Gives ``stmts`` the lines of the source, moved by ``shift``."""
    for node in stmts:
        inner = shift
        if isinstance(node, _LOCATED):
            node.lineno = node.end_lineno = lines[node.lineno - 1] + shift
            node.col_offset, node.end_col_offset = 0, 0
            if isinstance(node, ast.FunctionDef):
                inner = node.lineno - origins[node.name].line
        _place(ast.iter_child_nodes(node), lines, inner, origins)


_LOCATED: Final = (ast.stmt, ast.expr, ast.arg, ast.keyword)


def _renamed(code: CodeType, origins: Mapping[str, Origin]) -> CodeType:
    code = code.replace(
        co_consts=tuple(_renamed(const, origins) if isinstance(const, CodeType) else const for const in code.co_consts)
    )
    if (origin := origins.get(code.co_name)) is None:
        return code
    return code.replace(co_name=origin.name, co_filename=origin.file, co_firstlineno=origin.line)
