"""Running a user's program as Python does, and showing its error if it fails."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

from quadpy.core.public import frames_of, without
from quadpy.errors import QuadpyError
from quadpy.settings import settings

_PACKAGE: Final = str(Path(__file__).parent.parent) + os.sep


def run_program(arguments: list[str]) -> None:
    """Run a file, or ``-m`` and a module, with its arguments, as Python does."""
    if arguments[:1] == ["-m"]:
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as Python does
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    program = os.path.abspath(arguments[0])  # noqa: PTH100 - as Python does
    sys.path[0] = program if os.path.isdir(program) else os.path.dirname(program)  # noqa: PTH112, PTH120 - as Python does
    runpy.run_path(arguments[0], run_name="__main__")


def status_of(exit_: SystemExit) -> int:
    """The exit status of ``sys.exit``, whose text goes to stderr."""
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    print(exit_.code, file=sys.stderr)  # noqa: T201 - as Python does
    return 1


def shown_error(error: BaseException) -> BaseException:
    """``error`` as the program's user should see it: with ``program_frames``, and without what came before the program."""
    trace = program_frames(error)
    if trace is None:  # no program began: the first attempts to find one say nothing
        error.__cause__ = error.__context__ = None
    return error.with_traceback(trace)


def program_frames(error: BaseException) -> TracebackType | None:
    """The traceback of ``error`` without this module's frames, and, for quadpy's errors, without those of quadpy.

    ``QUADPY_FULL_TRACEBACK=1`` keeps all.  An error before the program's first frame, as in its syntax, has none.
    """
    if settings().full_traceback:
        return error.__traceback__
    frames = list(frames_of(error.__traceback__))
    own = [_is_own(frame) for frame in frames]
    if all(own):
        return None
    first = own.index(False)
    last = len(own) - own[::-1].index(False) if isinstance(error, QuadpyError) else len(own)
    dropped = {id(frame) for frame in (*frames[:first], *frames[last:])}
    return without(error.__traceback__, lambda frame: id(frame) in dropped)


def _is_own(trace: TracebackType) -> bool:
    """Whether a frame belongs to quadpy, or to the modules with which Python runs programs."""
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_PACKAGE, "<frozen runpy>", "<frozen importlib"))
