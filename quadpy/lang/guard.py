"""Limits the cost of a trace, and turns every failure into a CompilationError with the line.

A trace runs part of a user's program at compile time: it could run forever, use all memory, or raise any exception.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from quadpy.errors import CompilationError, KernelSyntaxError, KernelValueError, QuadpyError
from quadpy.settings import settings, variable
from quadpy.source import Span

__all__ = ["MOST_BITS", "Effort", "guarded"]

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


@contextmanager
def guarded(name: str, where: Callable[[], Span], but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turns any exception inside, except ``but``, into a CompilationError at the current location of the trace.

    Raises:
        CompilationError: in place of any other exception, from which it is raised.
    """
    known: tuple[type[Exception], ...] = (CompilationError, *but)
    try:
        yield
    except known:
        raise
    except QuadpyError as error:
        raise CompilationError(error.message, error.span or where(), hint=error.hint) from None
    except RecursionError:
        raise KernelSyntaxError(
            f"{name} is nested too deeply for the compiler", where(),
            hint="split long chains of elif, of conditional expressions and of functions that call functions into parts",
        ) from None  # fmt: skip
    except MemoryError:
        raise KernelValueError(
            f"{name} needs more memory to compile than is available", where(), hint="compute large constants in Python"
        ) from None
    except Exception as error:
        raise _unexpected(name, error, where()) from error


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
