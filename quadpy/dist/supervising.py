"""A process above each rank that ``quadpy run`` starts.

If a signal ends a rank, MPICH's launcher kills the others at once, before they can report what they wait for.  The
process above ends with an exit status instead, and says which signal it was.
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

__all__ = ["supervise"]

_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ONE_CTRL_C: Final = 0.5
"""Seconds in which a second SIGINT is the same Ctrl-C: the terminal and the launcher each send one."""
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
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    launched = launched_as(os.environ)
    label = f"[{launched.rank}] " if launched is not None else ""
    print(f"{label}quadpy: {signal.Signals(-code).name} ended this rank", file=sys.stderr)  # noqa: T201 - a command's message
    return 128 - code


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
