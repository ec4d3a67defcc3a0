"""Processes that ask what may hang or crash: each tells events, one line of JSON for each, and is left alone if it never ends."""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, TextIO

_PR_SET_PDEATHSIG: Final = 1
_END: Final = 10.0
"""Seconds until a child that was killed has ended."""

Event = Mapping[str, Any]


def python_command(statement: str) -> list[str]:
    """Python that runs ``statement`` with this quadpy, and with no module of the current folder: people have a ``random.py``."""
    root = str(Path(__file__).parents[2])
    paths = f"import sys; sys.path[:] = filter(None, sys.path); {root!r} in sys.path or sys.path.insert(0, {root!r})"
    return [sys.executable, "-c", f"{paths}; {statement}"]


def events_to_tell() -> TextIO:
    """What was standard output, for ``tell``; from now on, what is printed goes to standard error.

    On Linux, this process ends with its parent, even while a driver hangs.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


def tell(events: TextIO, event: str, **facts: Any) -> None:
    """Write an event."""
    events.write(json.dumps({"event": event, **facts}) + "\n")
    events.flush()


class Child:
    """A process, and the events that it tells."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
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
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"no end within {seconds:.0f} s"
        self._readers[1].join(_END)
        said = b"".join(self._said[-20:]).decode(errors="replace").strip().splitlines()
        return f"the process ended with {_ending(code)}" + (f": {said[-1]}" if said else "")

    @property
    def succeeded(self) -> bool:
        """Whether the process has ended with exit status 0."""
        return self._process.returncode == 0

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


def _ending(code: int) -> str:
    with suppress(ValueError):  # an exit status, or a real-time signal, which has no name
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"exit status {code}" if code >= 0 else f"signal {-code}"
