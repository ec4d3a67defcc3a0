"""Python's parser, for any number of threads."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Final

from quadpy.runtime.device.locks import new_lock

_ATTEMPTS: Final = 100
_lock: Final = new_lock()


def parse(text: str) -> ast.Module:
    """The tree of ``text``.

    CPython 3.11 counts the depth of trees for all threads together, and raises SystemError when it switches threads in
    between ("AST constructor recursion depth mismatch").  The program's own threads may parse, too: then again.

    Raises:
        SyntaxError: as ``ast.parse``.
    """
    with _lock:
        for _ in range(_ATTEMPTS):
            with suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)
