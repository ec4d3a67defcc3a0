"""Runs checks in child processes, each with its time limit; a child that hangs or crashes is replaced."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import quadpy
from quadpy.errors import NoDeviceError
from quadpy.selftest.table import Check, Result
from quadpy.settings import CAPABILITIES

_START: Final = 120.0
"""Seconds until a child has opened the device."""
_END: Final = 10.0
"""Seconds until a child that was killed has ended."""
_MOST: Final = 8
"""Checks of one child."""
_COMMAND: Final = (sys.executable, "-m", "quadpy.selftest.child")

Event = Mapping[str, Any]


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

        Once a check has hung or crashed, others that speak for the same capability do not run.
        """
        for _, group in itertools.groupby(checks, lambda check: check.name.partition(".")[0]):
            rest, lost = list(group), dict[str, str]()
            while rest:
                count = 0
                for result in self._child(rest[:_MOST]):
                    self.told(result)
                    yield result
                    if result.status in ("hung", "crashed") and rest[count].speaks_for in CAPABILITIES:
                        lost[rest[count].speaks_for] = f"{result.name} {result.status} before"
                    count += 1
                rest = rest[count:]
                for check in [check for check in rest if check.speaks_for in lost]:
                    rest.remove(check)
                    result = Result(check.name, "not run", lost[check.speaks_for])
                    self.told(result)
                    yield result

    def _child(self, checks: Sequence[Check]) -> Iterator[Result]:
        """The results of a child: at least one, and the last one may be bad."""
        child = _Child([*self.command, *self._arguments(checks)], self._environ())
        try:
            limit, name = _START, checks[0].name
            limits = {check.name: check.seconds for check in checks}
            while True:
                event = child.next_event(self.slow * limit)
                if isinstance(event, str):
                    if not self.device:
                        raise NoDeviceError(
                            f"the {self.arch} device cannot be opened: {event}", hint="see `quadpy doctor`"
                        )
                    status, text = ("hung", event) if event.startswith("no answer") else ("crashed", event)
                    yield Result(name, status, text)  # type: ignore[arg-type]  # one of Status
                    return
                match event["event"]:
                    case "refused":
                        raise NoDeviceError(event["text"], hint=event["hint"])
                    case "device":
                        self.device = event
                    case "begin":
                        limit, name = limits[event["name"]], event["name"]
                        self.begun(name)
                    case "end":
                        yield Result(**{key: value for key, value in event.items() if key != "event"})
                        limit = _START
                    case "done":
                        child.wait()
                        return
        finally:
            child.end()

    def _arguments(self, checks: Sequence[Check]) -> list[str]:
        quick = ["--quick"] if self.quick else []
        return ["--arch", self.arch, "--device", str(self.ordinal), *quick, *(check.name for check in checks)]

    def _environ(self) -> dict[str, str]:
        """All capabilities are on unless the run says otherwise, and the child finds this quadpy."""
        root = str(Path(quadpy.__path__[0]).parent)
        paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        own = {name: value for name, value in os.environ.items() if name not in ("QUADPY_ARCH", "QUADPY_DEBUG")}
        return {**own, "PYTHONPATH": paths, "QUADPY_WITHOUT": "nothing", **self.environ}


class _Child:
    """A process, and the events that it writes."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this Python
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ
        )
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._said: list[bytes] = []
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_text, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def next_event(self, seconds: float) -> Event | str:
        """The next event, or why there is none."""
        try:
            event = self._events.get(timeout=seconds)
        except queue.Empty:
            return f"no answer within {seconds:.0f} s"
        if event is not None:
            return event
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END)
        self._readers[1].join(_END)
        code = self._process.returncode
        said = b"".join(self._said[-20:]).decode(errors="replace").strip().splitlines()
        ended = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        return f"the process ended with {ended}" + (f": {said[-1]}" if said else "")

    def wait(self) -> None:
        """Let the process close its device."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END)

    def end(self) -> None:
        """End the process, which may hang in a driver that cannot be interrupted: then it is left alone."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END)
        for reader, stream in zip(self._readers, (self._process.stdout, self._process.stderr), strict=True):
            reader.join(1.0)
            if stream is not None and not reader.is_alive():
                stream.close()

    def _read_events(self, stream: IO[bytes]) -> None:
        for line in stream:
            with suppress(ValueError):  # a line that was cut off
                self._events.put(json.loads(line))
        self._events.put(None)

    def _read_text(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._said.append(line)
            del self._said[:-50]
