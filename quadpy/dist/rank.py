"""``python -m quadpy.dist.rank program.py ...``: one rank of a program that ``quadpy run`` started.

It connects to the other ranks before the program begins, so that they learn of every failure.  Whole lines of output
begin with the number of the rank.
"""

from __future__ import annotations

import io
import os
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, TextIO

from quadpy.dist.supervising import supervise
from quadpy.dist.transport.ending import note_exit_status
from quadpy.dist.world import world
from quadpy.errors import QuadpyError
from quadpy.settings import settings

__all__ = ["LabelledLines", "main", "program_frames", "run_program", "status_of"]

_PACKAGE: Final = str(Path(__file__).parent.parent) + os.sep


class LabelledLines(io.TextIOBase):
    """Writes each line whole, with a label before it, so that lines of several ranks do not mix."""

    def __init__(self, stream: TextIO, label: str) -> None:
        super().__init__()
        self._stream, self._label, self._begun = stream, label, ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # io.TextIOBase declares a variable
        return self._stream.encoding

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._stream.write("".join(f"{self._label}{line}\n" for line in lines))
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """Write whole lines, which ``write`` has; a line that is begun waits for its end."""

    def finish(self) -> None:
        """Write the last line, though it has no end."""
        if self._begun:
            self.write("\n")


def main(arguments: list[str]) -> int:
    """Run the program, as Python would; returns the exit status."""
    try:
        ranks = world()
    except QuadpyError as error:
        print(f"quadpy: {error}", file=sys.stderr)  # noqa: T201 - a command's message
        return 1
    outputs: list[LabelledLines] = []
    if ranks.size > 1:
        label = f"[{ranks.rank}] "
        outputs += LabelledLines(sys.stdout, label), LabelledLines(sys.stderr, label)
        sys.stdout, sys.stderr = outputs
    try:
        run_program(arguments)
    except SystemExit as exit_:
        return status_of(exit_)
    except BaseException as error:  # noqa: BLE001 - every error is shown, and told to the other ranks
        trace = program_frames(error)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    finally:
        for output in outputs:
            output.finish()
    return 0


def run_program(arguments: list[str]) -> None:
    """Run a file, or ``-m`` and a module, with its arguments, as Python does."""
    if arguments[:1] == ["-m"]:
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as Python does
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))  # noqa: PTH100, PTH120 - as Python does
    runpy.run_path(arguments[0], run_name="__main__")


def status_of(exit_: SystemExit) -> int:
    """The exit status of ``sys.exit``, whose text goes to stderr."""
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    print(exit_.code, file=sys.stderr)  # noqa: T201 - as Python does
    return 1


def program_frames(error: BaseException) -> TracebackType | None:
    """The traceback of ``error`` without this module's frames, and, for quadpy's errors, without those of quadpy.

    ``QUADPY_FULL_TRACEBACK=1`` keeps all; so does an error before the program's first frame.
    """
    frames = list(_frames(error.__traceback__))
    own = [_is_own(frame) for frame in frames]
    if settings().full_traceback or all(own):
        return error.__traceback__
    first = own.index(False)
    last = len(own) - own[::-1].index(False) if isinstance(error, QuadpyError) else len(own)
    trimmed: TracebackType | None = None
    for frame in reversed(frames[first:last]):
        trimmed = TracebackType(trimmed, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return trimmed


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_own(trace: TracebackType) -> bool:
    """Whether a frame is quadpy's, or of what Python runs programs with."""
    code = trace.tb_frame.f_code
    return code.co_filename == "<frozen runpy>" or code.co_filename.startswith(_PACKAGE)


if __name__ == "__main__":
    _exit_status = supervise()
    if _exit_status is None:
        _exit_status = main(sys.argv[1:])
        note_exit_status(_exit_status)
    sys.exit(_exit_status)
