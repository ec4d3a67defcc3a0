"""A whole self-test: the checks, then those that failed once more without what does not work, and what is stored of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from quadpy.runtime.device.known import Known, Measured, known_in, store
from quadpy.selftest.runner import Run
from quadpy.selftest.table import Check, Result

INSTEAD: Final = {
    "pool": "memory comes from quadpy's own cache",
    "cooperative": "quadpy launches the tasks of a graph one by one",
    "graph-loops": "the host repeats the loops of graphs, or one launch does",
    "graph-branches": "quadpy runs the nodes of graphs one after another",
    "graph-updates": "quadpy makes a graph again where it would change its nodes",
    "mapped": "kernels leave their results in the device's memory, and quadpy copies them",
    "float-atomics": "atomics of floats compare and exchange until they succeed",
    "parts": "create_stream(compute_units=…) raises a StreamError; all other streams have the whole GPU",
    "graphs": "quadpy launches the nodes of graphs one by one",
    "large-graphs": "quadpy launches the nodes of graphs of more than 100 nodes one by one",
}
"""What quadpy does without each of ``settings.CAPABILITIES``, in the order in which it tries."""


_MEMORY: Final = "stop other programs that use the GPU's memory (rocm-smi, nvidia-smi), or use a GPU with more"
_UNKNOWN: Final = (
    "update the GPU's driver and try again; quadpy has no way around this, so send the report to its issues"
)


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
            self._attribute(say)
            self._keep()
        except KeyboardInterrupt:
            self.interrupted = True
        self.seconds = time.monotonic() - began

    @property
    def status(self) -> int:
        """0: everything works; 3: quadpy works around what does not; 1: something fails; 130: interrupted."""
        if self.interrupted:
            return 130
        bad = [result for result in self.results.values() if result.bad or result.status == "not run"]
        return 0 if not bad else 3 if all(result.mended for result in bad) else 1

    def result_of(self, check: Check) -> Result:
        """What became of ``check`` so far."""
        return self.results.get(check.name, Result(check.name, "not run"))

    def advice(self, check: Check) -> str:
        """What a user can do about ``check``, as it stands."""
        result = self.result_of(check)
        if result.lacked_memory:
            return _MEMORY
        return _UNKNOWN if check.speaks_for in INSTEAD and result.bad and not result.mended else check.remedy

    def _attribute(self, say: Callable[[str], object]) -> None:
        """Switch off each capability whose check passes without it, and try again what else failed."""
        for name in INSTEAD:
            failed = [check for check in self.checks if self._fails(self.results[check.name])]
            speaking = [check for check in failed if check.speaks_for == name]
            if not speaking:
                continue
            say(f"without {name}:")
            trial = ",".join([*self.off, name])
            self._try_without(speaking[:1], trial)
            result = self.results[speaking[0].name]
            if result.mended:
                self.off[name] = f"{result.name} {result.status}: {(result.text.splitlines() or [''])[0]}"
                self._try_without([check for check in failed if check != speaking[0]], trial)

    @staticmethod
    def _fails(result: Result) -> bool:
        """Whether something does not work that may work without a capability."""
        return (result.bad or result.status == "not run") and not result.mended and not result.lacked_memory

    def _try_without(self, checks: Sequence[Check], without: str) -> None:
        run = replace(self.run, environ={**self.run.environ, "QUADPY_WITHOUT": without})
        for result in run.results(checks):
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
