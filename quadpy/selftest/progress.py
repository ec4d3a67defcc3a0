"""What a self-test prints while it runs, and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TextIO

from quadpy.selftest.page import RESULTS
from quadpy.selftest.session import Session
from quadpy.selftest.table import WORKS, Result


class Progress:
    """Prints a line for each result; on a terminal, also which check runs.

    If nothing can be printed any more, ``trouble`` says why, and one that is ``patient`` goes on: a report is wanted.
    """

    def __init__(self, out: TextIO, count: int, *, patient: bool = False) -> None:
        self._out, self._count, self._done, self._live, self._patient = out, count, 0, out.isatty(), patient
        self.trouble: OSError | None = None

    def begun(self, name: str) -> None:
        """A check runs."""
        if self._live:
            number = f"[{self._done + 1}/{self._count}] " if self._done < self._count else ""  # else it runs again
            self._write(f"\r\x1b[K  {number}{name} …")

    def ended(self, result: Result) -> None:
        """A check ended."""
        self._done += 1
        start = "\r\x1b[K" if self._live else ""
        reason = f"  {result.text.splitlines()[0]}" if result.text else ""
        self._write(f"{start}  {result.status:<8} {result.name:<30}{result.seconds:7.2f} s{reason}\n")

    def say(self, text: str) -> None:
        """A line about what comes next."""
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        try:
            if not self.trouble:
                self._out.write(text)
                self._out.flush()
        except OSError as error:
            self.trouble = error
            if not self._patient:
                raise

    def summary(self, report: Mapping[str, Any], session: Session) -> None:
        """What the results mean, and what to do."""
        counts = Counter(row["status"] for row in report["checks"])
        self.say(", ".join(f"{count} {status}" for status, count in counts.items()) + f" in {session.seconds:.0f} s")
        wish = f"to do without it, set QUADPY_WITHOUT={','.join(report['off'])}"
        if not session.trouble:
            wish = "to use it anyway, set QUADPY_WITHOUT=nothing"
        for name, off in report["off"].items():
            self.say(f"off: {name}, because {off['why']}\n     {off['instead']}; {wish}")
        for row in report["checks"]:
            result = session.results.get(row["name"])
            if result is not None and result.unmended and result.status != "not run":
                status = f"failed without {', '.join(session.off)}" if result.status in WORKS else result.status
                self.say(f"{status}: {result.name} ({row['proves']})\n     {row['remedy']}")
        if session.trouble:
            self.say(f"quadpy does not keep what was found: {session.trouble}")
        self.say(RESULTS[session.status])
