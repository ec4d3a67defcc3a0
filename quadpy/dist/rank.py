"""``python -m quadpy.dist.rank program.py ...``: one rank of a program that ``quadpy run`` started.

It connects to the other ranks before the program begins, so that they learn of every failure.  Whole lines of output
begin with the number of the rank.

Each rank has a process above it.  If a signal ends a rank, MPICH's launcher kills the others at once, before they can report what they wait for.  The
process above ends with an exit status instead, and says which signal it was.

It also ends a rank that is stopped for longer than the time limit: the launcher would wait for it forever.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import signal
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, Final, TextIO

from quadpy.dist.programs import run_program, shown_error, status_of
from quadpy.dist.transport.leaving import note_exit_status
from quadpy.dist.world import world
from quadpy.errors import QuadpyError
from quadpy.runtime.device.launched import launched_as
from quadpy.settings import settings

if TYPE_CHECKING:
    from types import FrameType

    from quadpy.dist.connecting import World

_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ONE_CTRL_C: Final = 0.5
"""Seconds in which a second SIGINT is the same Ctrl-C: the terminal and the launcher each send one."""
_NOTICED: Final = 4.0
"""Seconds after the time limit in which the other ranks find that a stopped rank does not answer."""
_PAUSE: Final = 0.1
"""Seconds between two looks at a stopped rank."""
_SET_PARENT_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG"""


def supervise() -> int | None:
    """Fork: returns None in the child, which is the rank, and in the parent the exit status of the child."""
    with warnings.catch_warnings():  # of threads, which are only those of NumPy's BLAS, and wait
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.setpgid(0, 0)  # signals come through the parent, once
        if sys.platform == "linux":  # the launcher may kill the parent only
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        return None
    _pass_signals_on(child)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # MPICH's launcher: another rank was killed
    code = _exit_code(child)
    if code < 0:
        _say(f"{signal.Signals(-code).name} ended this rank")
    return code if code >= 0 else 128 - code


def _exit_code(child: int) -> int:
    """The exit code of ``child``, which is killed after it was stopped for the time limit, and the others have noticed."""
    limit = float(settings().rank_timeout)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        end = time.monotonic() + limit + _NOTICED
        while time.monotonic() < end:
            time.sleep(_PAUSE)
            found, status = os.waitpid(child, os.WNOHANG | os.WCONTINUED)
            if found and os.WIFCONTINUED(status):
                break
            if found and not os.WIFSTOPPED(status):
                return os.waitstatus_to_exitcode(status)
        else:
            _say(f"this rank was stopped for {limit:g} s, and is ended")
            os.kill(child, signal.SIGKILL)


def _say(what: str) -> None:
    launched = launched_as(os.environ)
    label = f"[{launched.rank}] " if launched is not None else ""
    print(f"{label}quadpy: {what}", file=sys.stderr)  # noqa: T201 - a command's message


def _pass_signals_on(child: int) -> None:
    last = dict.fromkeys(_PASSED_ON, -_ONE_CTRL_C)

    def pass_on(number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if now - last[signal.Signals(number)] >= _ONE_CTRL_C:
            last[signal.Signals(number)] = now
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)


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
