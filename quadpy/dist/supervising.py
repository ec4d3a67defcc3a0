"""A process above each rank that ``quadpy run`` starts.

If a signal ends a rank, MPICH's launcher kills the others at once, before they can report what they wait for.  The
process above ends with an exit status instead, and says which signal it was.

It also ends a rank that is stopped for longer than the time limit: the launcher would wait for it forever.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
import warnings
from types import FrameType
from typing import Final

from quadpy.runtime.device.launched import launched_as
from quadpy.settings import settings

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
