"""What a self-test prints while it runs, and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TextIO

from quadpy.selftest.page import RESULTS
from quadpy.selftest.session import Session
from quadpy.selftest.table import Result


class Progress:
    """Prints a line for each result; on a terminal (``live``), also which check runs."""

    def __init__(self, out: TextIO, count: int, *, live: bool) -> None:
        self._out, self._count, self._done, self._live = out, count, 0, live

    def begun(self, name: str) -> None:
        """A check runs."""
        if self._live:
            number = f"[{self._done + 1}/{self._count}] " if self._done < self._count else ""  # else it runs again
            self._out.write(f"\r\x1b[K  {number}{name} …")
            self._out.flush()

    def ended(self, result: Result) -> None:
        """A check ended."""
        self._done += 1
        start = "\r\x1b[K" if self._live else ""
        reason = f"  {result.text.splitlines()[0]}" if result.text else ""
        self._out.write(f"{start}  {result.status:<8} {result.name:<30}{result.seconds:7.2f} s{reason}\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """A line about what comes next."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def summary(self, report: Mapping[str, Any], session: Session) -> None:
        """What the results mean, and what to do."""
        counts = Counter(row["status"] for row in report["checks"])
        self.say(", ".join(f"{count} {status}" for status, count in counts.items()) + f" in {session.seconds:.0f} s")
        for name, off in report["off"].items():
            self.say(
                f"off: {name}, because {off['why']}\n     {off['instead']}; QUADPY_WITHOUT=nothing uses it all the same"
            )
        for row in report["checks"]:
            result = session.results.get(row["name"])
            if result is not None and result.bad and not result.mended:
                self.say(f"{result.status}: {result.name} ({row['proves']})\n     {row['remedy']}")
        if session.trouble:
            self.say(f"what was found is not stored, because {session.trouble}")
        self.say(RESULTS[session.status])
