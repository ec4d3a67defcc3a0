"""``python -m quadpy.dist.rank program.py ...``: one rank of a program that ``quadpy run`` started.

It connects to the other ranks before the program begins, so that they learn of every failure.  Whole lines of output
begin with the number of the rank.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any, TextIO

from quadpy.dist.members import World
from quadpy.dist.programs import run_program, shown_error, status_of
from quadpy.dist.supervising import supervise
from quadpy.dist.transport.ending import note_exit_status
from quadpy.dist.world import world
from quadpy.errors import QuadpyError


class LabelledLines(io.TextIOBase):
    """Writes each line whole, with a label before it, so that lines of several ranks do not mix.

    All other attributes, such as ``buffer``, are those of the stream.
    """

    def __init__(self, stream: TextIO, label: str) -> None:
        super().__init__()
        self._stream, self._label, self._begun = stream, label, ""

    def __getattr__(self, name: str) -> Any:
        if name == "_stream":  # before ``__init__``
            raise AttributeError(name)
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # io.TextIOBase declares a variable
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # io.TextIOBase declares a variable
        return self._stream.errors

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, begun = (self._begun + text).split("\n")
        over, _, last = begun.rpartition("\r")
        self._begun = last if over and last else begun  # a progress bar writes over its line, again and again
        if lines:
            self._stream.write("".join(f"{self._label}{line}\n" for line in lines))
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        """Write the whole lines that ``write`` has collected; an unfinished line waits for its end."""

    def finish(self) -> None:
        """Write the last line, even without its end."""
        if self._begun:
            self.write("\n")


def main(arguments: list[str]) -> int:
    """Run the program, as Python would; returns the exit status."""
    try:
        ranks = world()
    except QuadpyError as error:
        print(f"quadpy: {error}", file=sys.stderr)  # noqa: T201 - a command's message
        return 1
    outputs = _labelled(ranks)
    try:
        run_program(arguments)
    except SystemExit as exit_:
        return status_of(exit_)
    except BaseException as error:  # noqa: BLE001 - every error is shown, and told to the other ranks
        shown = shown_error(error)
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    finally:
        for output in outputs:
            output.finish()
    return 0


def _labelled(ranks: World) -> list[LabelledLines]:
    """Label the output of this process with the number of the rank from now on; only rank 0 reads input."""
    if ranks.size == 1:
        return []
    if ranks.rank > 0:  # launchers give the others a pipe that never ends, so they would wait forever
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    label = f"[{ranks.rank}] "
    outputs = [LabelledLines(sys.stdout, label), LabelledLines(sys.stderr, label)]
    sys.stdout, sys.stderr = outputs
    return outputs


if __name__ == "__main__":
    _exit_status = supervise()
    if _exit_status is None:
        _exit_status = main(sys.argv[1:])
        note_exit_status(_exit_status)
    sys.exit(_exit_status)
