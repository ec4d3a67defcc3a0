"""Python functions as syntax trees with places.  Owns: FunctionSource.  Imports: ``lang.names`` and leaves only."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable
from typing import Any

from quadpy.errors import KernelSourceError
from quadpy.lang.names import local_names
from quadpy.source import Span

__all__ = ["FunctionSource"]


class FunctionSource:
    """A function that the compiler may read; nothing is parsed before it is needed."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.name = fn.__name__
        self.code = fn.__code__
        self.span = Span(self.code.co_filename, self.code.co_firstlineno)

    @functools.cached_property
    def tree(self) -> ast.FunctionDef:
        """The function's definition.

        Raises:
            KernelSourceError: the text cannot be found, as in a plain REPL or ``exec``, or is no ``def``.
        """
        try:
            lines, first = inspect.getsourcelines(self.fn)
        except (OSError, TypeError, IndexError, SyntaxError) as exc:
            raise KernelSourceError(
                f"the source of {self.name!r} cannot be found", self.span,
                hint="define the function in a file or a notebook cell: a plain REPL and exec() keep no source",
            ) from exc  # fmt: skip
        text = "".join(lines)
        wrapped = text[:1].isspace()  # a method, or a nested function: as the body of something, its columns stay true
        self._lines, self._first_line = (["", *lines], first - 1) if wrapped else (lines, first)
        module = ast.parse(f"if True:\n{text}" if wrapped else text)
        body = module.body[0].body if isinstance(module.body[0], ast.If) else module.body
        if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
            raise KernelSourceError(
                f"{self.name!r} is not a plain function", self.span,
                hint="lambdas and async functions cannot be compiled; write a def",
            )  # fmt: skip
        return body[0]

    @functools.cached_property
    def locals(self) -> frozenset[str]:
        """Names that the function assigns: inside, they never mean what its module has."""
        return local_names(self.tree.body)

    def place(self, node: ast.AST) -> Span:
        """Where ``node`` stands in the user's file."""
        line = getattr(node, "lineno", 1)
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0) or 0
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        if getattr(node, "end_lineno", line) != line:
            end = len(text.encode())
        if not text.isascii():  # Python counts bytes, people count characters
            start, end = (len(text.encode()[:offset].decode(errors="ignore")) for offset in (start, end))
        return Span(self.span.file, self._first_line + line - 1, start, end)

    def file_text(self) -> str:
        """The whole text of the file, for the key of the disk cache; empty where there is none."""
        return "".join(linecache.getlines(self.span.file, self.fn.__globals__))

    def resolve(self, name: str) -> Any:
        """What a free name of the function means now: closure, module, builtins.

        Raises:
            KeyError: the name is bound nowhere.
        """
        if name in self.code.co_freevars and self.fn.__closure__:
            try:
                return self.fn.__closure__[self.code.co_freevars.index(name)].cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in self.fn.__globals__:
            return self.fn.__globals__[name]
        builtins = self.fn.__globals__["__builtins__"]
        table = builtins if isinstance(builtins, dict) else vars(builtins)
        return table[name]
