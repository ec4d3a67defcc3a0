"""Limits the cost of a trace, and turns every failure into a CompilationError with the line.

A trace runs part of a user's program at compile time: it could run forever, use all memory, or raise any exception.
"""

from __future__ import annotations

import functools
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from quadpy.core.source import Span
from quadpy.errors import CompilationError, KernelSyntaxError, KernelValueError, QuadpyError
from quadpy.settings import settings, variable

MOST_BITS: Final = 1 << 16
"""The limit on the bits of an integer at compile time: far more than any type holds, but manageable for Python."""

_OWN: Final = str(Path(__file__).parent.parent)


class Effort:
    """Steps of one trace: what is evaluated, and each item of what is unrolled or computed at compile time."""

    __slots__ = ("left", "where")

    def __init__(self, where: Callable[[], Span]) -> None:
        self.left, self.where = settings().compile_steps, where

    def take(self, steps: int) -> None:
        """Count ``steps``.

        Raises:
            KernelValueError: the trace has taken as many as it may.
        """
        self.left -= steps
        if self.left < 0:
            most = settings().compile_steps
            raise KernelValueError(
                f"compiling this kernel takes more than the limit of {most:,} steps", self.where(),
                hint=f"use run-time loops instead of unrolled ones, or compute values in Python first; "
                f"{variable('compile_steps')}={10 * most} raises the limit",
            )  # fmt: skip

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """``items``, each counted as one step."""
        for item in items:
            self.take(1)
            yield item

    def listed(self, made: Any) -> Any:
        """``made``, or the list of its items if it is an iterator."""
        return list(self.counted(made)) if isinstance(made, Iterator) else made


@contextmanager
def guarded(name: str, where: Callable[[], Span], but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turns any exception inside, except ``but`` and those of handlers of signals, into a CompilationError at the current
    location of the trace.

    Raises:
        CompilationError: in place of any other exception, from which it is raised.
    """
    known: tuple[type[Exception], ...] = (CompilationError, *but)
    try:
        yield
    except known:
        raise
    except Exception as error:
        if is_of_a_handler(error):
            raise
        raise _as_compilation_error(name, error, where()) from _cause(error)


def _as_compilation_error(name: str, error: Exception, span: Span) -> CompilationError:
    if isinstance(error, QuadpyError):
        return CompilationError(error.message, error.span or span, hint=error.hint)
    if isinstance(error, RecursionError):
        return KernelSyntaxError(
            f"{name} is nested too deeply for the compiler", span,
            hint="split long chains of elif, of conditional expressions and of functions that call functions into parts",
        )  # fmt: skip
    if isinstance(error, MemoryError):
        text = f"{name} needs more memory to compile than is available"
        return KernelValueError(text, span, hint="compute large constants in Python")
    return _unexpected(name, error, span)


def _cause(error: Exception) -> Exception | None:
    """What the message does not say in full."""
    return None if isinstance(error, (QuadpyError, RecursionError, MemoryError)) else error


def is_of_a_handler(error: Exception) -> bool:
    """Whether a handler of a signal, which Python may run at any instruction of the trace, raised ``error``."""
    codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
    return any(_code_of(signal.getsignal(number)) in codes for number in signal.valid_signals())


def _code_of(handler: object) -> object:
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)  # of a method
    return getattr(function, "__code__", None) or getattr(vars(type(handler)).get("__call__"), "__code__", None)


def _users_frames(found: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of quadpy's with which it begins."""
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_OWN):
        found = found.tb_next
    return found


def _unexpected(name: str, error: Exception, span: Span) -> CompilationError:
    """An error of the user's own Python code, run at compile time, or a bug of the compiler."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ValueError) and "integer string conversion" in text:
        return KernelValueError("an integer is too long to be converted to a string", span, hint="use a float")
    frames = traceback.extract_tb(error.__traceback__)
    if frames and not frames[-1].filename.startswith(_OWN):
        line = f"{frames[-1].filename}:{frames[-1].lineno}"
        if not settings().full_traceback:
            error.__traceback__ = _users_frames(error.__traceback__)
        return CompilationError(f"Python code that {name} needs while compiling raised {text} ({line})", span)
    return CompilationError(
        f"internal error while compiling {name}: {text}", span,
        hint="this is a bug in quadpy: please report it with the kernel",
    )  # fmt: skip
