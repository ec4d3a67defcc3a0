"""A whole self-test: the checks, then those that failed once more without what does not work, and what is stored of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from quadpy.runtime.device.known import Known, Measured, known_in, store
from quadpy.selftest.runner import Run
from quadpy.selftest.table import Check, Result
from quadpy.settings import CAPABILITIES

INSTEAD: Final = {
    "graphs": "quadpy launches the nodes of graphs one by one",
    "large-graphs": "quadpy divides graphs into parts of at most 100 nodes",
    "graph-branches": "quadpy runs the nodes of graphs one after another",
    "graph-updates": "quadpy makes a graph again where it would change its nodes",
    "graph-loops": "the host repeats the loops of graphs, or one launch does",
    "pool": "memory comes from quadpy's own cache",
    "cooperative": "quadpy launches the tasks of a graph one by one",
    "mapped": "kernels leave their results in the device's memory, and quadpy copies them",
}
"""What quadpy does without each of ``settings.CAPABILITIES``."""


@dataclass(slots=True)
class Session:
    """A run of ``checks``.

    results      what is known so far, by name; the rest did not run
    off          the capabilities that are switched off, and why
    interrupted  whether Ctrl-C ended it
    trouble      why the answers could not be stored; empty if they were, or if there is nothing to store
    """

    run: Run
    checks: Sequence[Check]
    whole: bool
    results: dict[str, Result] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    measured: Measured | None = None
    interrupted: bool = False
    trouble: str = ""
    seconds: float = 0.0

    def go(self, say: Callable[[str], object]) -> None:
        """Run everything; Ctrl-C leaves what is known."""
        began = time.monotonic()
        try:
            for result in self.run.results(self.checks):
                self.results[result.name] = result
            self.off = self._off()
            if self.off:
                say(f"without {', '.join(self.off)}:")
                self._again(",".join(self.off))
            self._keep()
        except KeyboardInterrupt:
            self.interrupted = True
        self.seconds = time.monotonic() - began

    @property
    def status(self) -> int:
        """0: everything works; 3: quadpy works around what does not; 1: something fails; 130: interrupted."""
        if self.interrupted:
            return 130
        bad = [result for result in self.results.values() if result.bad]
        return 0 if not bad else 3 if all(result.without == "passed" for result in bad) else 1

    def _off(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for check in self.checks:
            result = self.results[check.name]
            if result.bad and check.speaks_for in CAPABILITIES:
                why = (result.text.splitlines() or [result.status])[0]
                found.setdefault(check.speaks_for, f"{check.name} {result.status}: {why}")
        return found

    def _again(self, without: str) -> None:
        """The checks that failed, without what they showed not to work."""
        failed = [check for check in self.checks if self.results[check.name].bad]
        run = replace(self.run, environ={**self.run.environ, "QUADPY_WITHOUT": without})
        for result in run.results(failed):
            before = self.results[result.name]
            self.results[result.name] = before._replace(without=result.status)

    def _keep(self) -> None:
        """Store the answers, if all were asked; what an earlier run measured stays."""
        world: Mapping[str, str] = self.run.device["world"]
        figures = self.results.get("costs.crossing")
        if figures is not None and figures.status == "passed":
            self.measured = Measured(**figures.figures["measured"])
        if self.whole and "host" not in self.run.device["features"]:
            before = known_in(world)
            kept = self.measured or (before.measured if before else None)
            self.trouble = store(world, Known(self.off, kept))
