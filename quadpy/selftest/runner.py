"""Runs checks in child processes, each with its time limit; a child that hangs or crashes is replaced."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quadpy.core.children import Child, Event, python_command
from quadpy.errors import NoDeviceError
from quadpy.selftest.table import Check, Result, Status
from quadpy.settings import CAPABILITIES

_START: Final = 120.0
"""Seconds until a child has opened the device."""
_CLOSE: Final = 30.0
"""Seconds until a child that has run its checks has ended."""
_RESET: Final = 5.0
"""Seconds that a GPU which crashed may take to come back."""
_MOST: Final = 8
"""Checks of one child."""
_COMMAND: Final = tuple(python_command("from quadpy.selftest.child import main; main()"))


@dataclass(slots=True)
class Run:
    """What is run, and where: ``slow`` multiplies the time limits; ``command`` starts a child."""

    arch: str
    ordinal: int = 0
    quick: bool = False
    slow: float = 1.0
    environ: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = _COMMAND
    told: Callable[[Result], object] = lambda _: None
    begun: Callable[[str], object] = lambda _: None
    device: Event = field(default_factory=dict)

    def results(self, checks: Sequence[Check]) -> Iterator[Result]:
        """The result of each check, as soon as it is known; at an interrupt, the child ends.

        Raises NoDeviceError if the device cannot be opened, or not any more.  Once a check has hung or crashed, others that speak for the same capability do not run.
        """
        for _, group in itertools.groupby(checks, lambda check: check.name.partition(".")[0]):
            rest, lost = list(group), dict[str, str]()
            while rest:
                for result in self._opened(rest[:_MOST]):
                    self.told(result)
                    yield result
                    check = rest.pop(0)
                    if result.status in ("hung", "crashed") and check.speaks_for in CAPABILITIES:
                        lost[check.speaks_for] = f"{result.name} {result.status} before"
                for check in [check for check in rest if check.speaks_for in lost]:
                    rest.remove(check)
                    result = Result(check.name, "not run", lost[check.speaks_for])
                    self.told(result)
                    yield result

    def _opened(self, checks: Sequence[Check]) -> Iterator[Result]:
        """The results of a child; once a child has opened the device, another one tries twice."""
        try:
            yield from self._child(checks)
        except NoDeviceError:
            if not self.device:
                raise
            time.sleep(_RESET)
            yield from self._child(checks)

    def _child(self, checks: Sequence[Check]) -> Iterator[Result]:
        """The results of a child: at least one, and the last one may be bad; NoDeviceError if the device cannot be opened.

        A check ends when the next one begins: drivers end a process from threads of their own, at any time.
        """
        child = Child([*self.command, *self._arguments(checks)], self._environ())
        opened, done, ended = False, False, None
        limit, name = _START, checks[0].name
        limits = {check.name: check.seconds for check in checks}
        try:
            while True:
                event = child.next_event(self.slow * limit)
                if isinstance(event, str):
                    if not opened:
                        text = f"the {self.arch} device cannot be opened: {event}"
                        raise NoDeviceError(text, hint="see `quadpy doctor`")
                    if not (done and child.succeeded):
                        status: Status = "hung" if event.startswith("no ") else "crashed"
                        last = ended or Result(name, "passed")
                        ended = (
                            last if last.bad else last._replace(status=status, text="after it, " * bool(ended) + event)
                        )
                    if ended:
                        yield ended
                    return
                match event["event"]:
                    case "refused":
                        raise NoDeviceError(event["text"], hint=event["hint"])
                    case "device":
                        self.device, opened = event, True
                    case "begin":
                        if ended:
                            yield ended
                        limit, name, ended = limits[event["name"]], event["name"], None
                        self.begun(name)
                    case "end":
                        ended = Result(**{key: value for key, value in event.items() if key != "event"})
                        limit = _START
                    case "done":
                        limit, done = _CLOSE, True
        finally:
            child.end()

    def _arguments(self, checks: Sequence[Check]) -> list[str]:
        quick = ["--quick"] if self.quick else []
        return ["--arch", self.arch, "--device", str(self.ordinal), *quick, *(check.name for check in checks)]

    def _environ(self) -> dict[str, str]:
        """All capabilities are on unless the run says otherwise."""
        own = {name: value for name, value in os.environ.items() if name not in ("QUADPY_ARCH", "QUADPY_DEBUG")}
        return {**own, "QUADPY_WITHOUT": "nothing", **self.environ}
