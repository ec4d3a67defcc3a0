"""The source of functions that ``exec`` defines, while it runs: Python does not keep the text, but its caller has it."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from quadpy.lang.fingerprints import text_digest
from quadpy.lang.running import is_text_of


def executed_file(fn: Callable[..., Any]) -> str:
    """The name by which ``linecache`` knows the text of ``fn`` from now on; that of its file where no text is found."""
    text = _kept_by_python(fn) or next((text for text in _of_callers(fn) if _has(text, fn)), "")
    if not text:
        return fn.__code__.co_filename
    file = f"<exec {text_digest(text)[:8]}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return file


def _kept_by_python(fn: Callable[..., Any]) -> str:
    """From Python 3.13 on, the text of ``python -c`` and of the prompt."""
    try:
        return "".join(inspect.findsource(fn)[0])
    except (OSError, TypeError):
        return ""


def _of_callers(fn: Callable[..., Any]) -> Iterator[str]:
    """The texts that name the function, where the code that defines it was started from."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as inspect.currentframe
    while frame is not None:
        caller = frame.f_back
        if frame.f_code.co_filename == fn.__code__.co_filename and caller is not None:
            values = (*caller.f_code.co_consts, *list(caller.f_locals.values()), *list(caller.f_globals.values()))
            yield from (value for value in values if isinstance(value, str) and f"def {fn.__name__}" in value)
        frame = caller


def _has(text: str, fn: Callable[..., Any]) -> bool:
    """Whether ``fn`` is what Python makes of the definition at its line in ``text``."""
    first = fn.__code__.co_firstlineno
    try:
        block = inspect.getblock(text.splitlines(keepends=True)[first - 1 :])
    except (IndexError, SyntaxError):
        return False
    return bool(block) and is_text_of("".join(block), fn.__code__, first, exact=True)
