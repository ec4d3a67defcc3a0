"""How a rank ends: it tells the others, and waits until they end, too.

``MPI_Finalize`` waits for all ranks, and forever if one is lost; so it is called only after all have said that they end
well. The store of torch may be in rank 0, which therefore ends last.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

from quadpy.dist.transport.verdict import told_of

if TYPE_CHECKING:
    from quadpy.dist.transport.engine import HostEngine

_LAST_WORDS: Final = 10.0
"""Seconds in which the other ranks also find that one has failed."""

_PAUSE: Final = 0.01
"""Seconds between two looks at them."""


class _Status:
    number = 0


def note_exit_status(number: int) -> None:
    """Remember the status with which the program ends; 0 changes nothing."""
    _Status.number = number or _Status.number


def exit_status() -> int:
    """The status with which the program ends, as far as known."""
    return _Status.number


def end_with(engine: HostEngine) -> None:
    """Report the end of this process, with or without an error, to the other ranks of ``engine``.

    A process forked from a rank is not a rank: the engine is closed in it, and its end is not reported.
    """
    ending = _Ending(engine)
    before = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        ending.failed(kind, error)
        before(kind, error, trace)

    sys.excepthook = tell
    atexit.register(ending.finish)
    os.register_at_fork(after_in_child=ending.be_a_fork)
    if threading.current_thread() is threading.main_thread():
        _ignore_news_of_the_launcher()


def _ignore_news_of_the_launcher() -> None:
    """With this signal, MPICH's launcher tells the ranks that one was killed; it would end them without a message."""
    if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


class _Ending:
    def __init__(self, engine: HostEngine) -> None:
        self._engine, self._is_fork = engine, False

    def be_a_fork(self) -> None:
        """Refuse messages in a fork of the rank: they would be taken for the rank's."""
        self._engine.close()
        self._is_fork = True

    def failed(self, kind: type[BaseException], error: BaseException) -> None:
        """Called when an exception ends the program: tell the others the first known cause."""
        note_exit_status(128 + signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1)
        if self._is_fork:
            return
        notices, mine = self._engine.notices, self._engine.rank
        failed, reason = told_of(error, mine)
        notices.tell_end(reason, failed)

    def finish(self) -> None:
        """Wait for the others; if one has failed, end the process without MPI_Finalize, which would hang."""
        if self._engine.library.has_ended:  # the program itself has called MPI_Finalize
            return
        try:
            well = not self._is_fork and self._wait_for_others()
        except KeyboardInterrupt:
            well = False
            note_exit_status(128 + signal.SIGINT)
        if not well:
            self._end_those_that_go_on()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit_status())

    def _end_those_that_go_on(self) -> None:
        """Ranks that have not noticed, such as one in an endless loop: a launcher would wait for them for ever."""
        if not self._is_fork:
            for rank in self._engine.processes.keys() - self._engine.notices.ended:
                self._engine.processes[rank].kill()

    def _wait_for_others(self) -> bool:
        """Wait until all ranks have said that they end; returns whether all end well."""
        engine, notices = self._engine, self._engine.notices
        notices.tell_end("", engine.rank)
        failed_at: float | None = None
        while True:
            failed = engine.gone() is not None or notices.told_failure
            if len(notices.ended) == engine.size - 1:
                return not failed
            if failed:
                failed_at = failed_at or time.monotonic()
                if time.monotonic() - failed_at > _LAST_WORDS:
                    return False
            time.sleep(_PAUSE)
