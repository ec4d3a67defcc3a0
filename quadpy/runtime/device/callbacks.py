"""Host functions: Python functions that a device calls.

A driver calls one C function for all of them, with a number, the ticket, in place of a pointer.  Therefore, if a graph runs
after its function was freed, the ticket is unknown, and nothing crashes.  The stream waits for the function; an error
is kept, and raised by the next synchronize of the stream or of the device.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final

from quadpy.runtime.device.life import inside_host_function
from quadpy.runtime.streams.timeline import Timeline


class Runs:
    """The timelines that a graph was launched on, shared by all its host functions.  It keeps no timeline alive."""

    __slots__ = ("timelines",)

    def __init__(self) -> None:
        self.timelines: weakref.WeakSet[Timeline] = weakref.WeakSet()


class Failures:
    """The errors of a device's host functions that have not been raised yet."""

    def __init__(self) -> None:
        self._found: deque[tuple[Runs, BaseException]] = deque()

    def __len__(self) -> int:
        return len(self._found)

    def add(self, runs: Runs, error: BaseException) -> None:
        self._found.append((runs, error))

    def raise_first(self, timeline: Timeline | None = None) -> None:
        """Raise the oldest error on ``timeline``, or on any timeline for None; the others stay for the next call."""
        for found in list(self._found):
            runs, error = found
            if timeline is None or timeline in runs.timelines:
                try:
                    self._found.remove(found)
                except ValueError:  # another thread raises it
                    continue
                raise error


class HostCall:
    """One host function of a graph, its arguments, and where its error goes."""

    __slots__ = ("arguments", "failures", "function", "runs")

    def __init__(
        self, function: Callable[..., object], arguments: tuple[object, ...], failures: Failures, runs: Runs
    ) -> None:
        self.function, self.arguments, self.failures, self.runs = function, arguments, failures, runs

    def run(self) -> None:
        """Call it.  An error is kept, as no exception may reach the driver, and the work after it goes on."""
        try:
            with inside_host_function():
                self.function(*self.arguments)
        except BaseException as error:  # noqa: BLE001 - the host's next synchronize raises it, even an exit
            self.failures.add(self.runs, error)

    def run_here(self) -> None:
        """Call it on one of the host's threads; exceptions that end the program, such as Ctrl-C, pass through."""
        try:
            with inside_host_function():
                self.function(*self.arguments)
        except Exception as error:  # noqa: BLE001 - a user's function
            self.failures.add(self.runs, error)


_calls: Final[dict[int, HostCall]] = {}
_tickets: Final = itertools.count(1)  # a C function gets None for 0


def register(call: HostCall) -> int:
    """A ticket for ``call``, valid until ``forget``."""
    ticket = next(_tickets)  # each of the two statements is one step
    _calls[ticket] = call
    return ticket


def forget(ticket: int) -> None:
    """Invalidate ``ticket``; no launch that uses it may be pending."""
    _calls.pop(ticket, None)


def run_ticket(ticket: int | None) -> None:
    """Run the call of ``ticket``; an invalid ticket does nothing."""
    if ticket is not None and (call := _calls.get(ticket)) is not None:
        call.run()


_thunk: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(run_ticket)
THUNK: Final[int] = ctypes.cast(_thunk, ctypes.c_void_p).value or 0
"""The address of ``void f(void *ticket)``, valid for the lifetime of the process."""
