"""Python functions that a device calls.  Owns: HostCall, register and forget, the C thunk, Failures.

A driver calls one C function for all of them, with a number in place of a pointer: what a graph runs after its function
is gone is then a number that nobody knows, not a crash.  The function runs before the stream goes on; what it raises is
kept, and raised by the next synchronize of that stream or of the device.  Imports: the thread's state in ``life``.
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

__all__ = ["THUNK", "Failures", "HostCall", "Runs", "forget", "register", "run_ticket"]


class Runs:
    """The timelines that something was launched on, shared by all its host functions; they hold no timeline alive."""

    __slots__ = ("timelines",)

    def __init__(self) -> None:
        self.timelines: weakref.WeakSet[Timeline] = weakref.WeakSet()


class Failures:
    """What host functions raised and nobody has seen, of one device."""

    def __init__(self) -> None:
        self._found: deque[tuple[Runs, BaseException]] = deque()

    def __len__(self) -> int:
        return len(self._found)

    def add(self, runs: Runs, error: BaseException) -> None:
        self._found.append((runs, error))

    def raise_first(self, timeline: Timeline | None = None) -> None:
        """Raise the oldest of those that ran on ``timeline``, or anywhere for None; the others stay for the next call."""
        for found in list(self._found):
            runs, error = found
            if timeline is None or timeline in runs.timelines:
                try:
                    self._found.remove(found)
                except ValueError:  # another thread raises it
                    continue
                raise error


class HostCall:
    """One host function of a graph, with what it is called with and where its error goes."""

    __slots__ = ("arguments", "failures", "function", "runs")

    def __init__(
        self, function: Callable[..., object], arguments: tuple[object, ...], failures: Failures, runs: Runs
    ) -> None:
        self.function, self.arguments, self.failures, self.runs = function, arguments, failures, runs

    def run(self) -> None:
        """Call it; an error is kept, as nothing may escape into a driver, and the work behind it goes on."""
        try:
            with inside_host_function():
                self.function(*self.arguments)
        except BaseException as error:  # noqa: BLE001 - even an exit is the host's to see, at its next synchronize
            self.failures.add(self.runs, error)

    def run_here(self) -> None:
        """Call it on a thread of the host's own: what ends the program, such as Ctrl-C, ends it at once."""
        try:
            with inside_host_function():
                self.function(*self.arguments)
        except Exception as error:  # noqa: BLE001 - a user's function
            self.failures.add(self.runs, error)


_calls: Final[dict[int, HostCall]] = {}
_tickets: Final = itertools.count(1)  # a C function gets None for 0


def register(call: HostCall) -> int:
    """The ticket by which a driver knows ``call``, until ``forget``."""
    ticket = next(_tickets)  # each step is one for other threads, too
    _calls[ticket] = call
    return ticket


def forget(ticket: int) -> None:
    """No launch that would use ``ticket`` is pending."""
    _calls.pop(ticket, None)


def run_ticket(ticket: int | None) -> None:
    """Run what ``ticket`` stands for; one that was forgotten does nothing."""
    if ticket is not None and (call := _calls.get(ticket)) is not None:
        call.run()


_thunk: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(run_ticket)
THUNK: Final[int] = ctypes.cast(_thunk, ctypes.c_void_p).value or 0
"""The address of ``void f(void *ticket)``; it stays valid as long as the process."""
