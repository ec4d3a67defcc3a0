"""A whole self-test: the checks, what fails again and without which capability, all of it without those, and what is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from quadpy.errors import NoDeviceError
from quadpy.runtime.device.known import Known, Measured, known_in, store
from quadpy.selftest.runner import Run
from quadpy.selftest.table import WORKS, Check, Result
from quadpy.settings import NO_CAPABILITY, settings

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

_ONCE: Final = "it passed when it ran again: run the self-test once more, while nothing else uses the GPU"


@dataclass(slots=True)
class Session:
    """A run of ``checks``.

    results      what is known so far, by name; the rest did not run
    off          the capabilities that must be off, and why
    interrupted  whether Ctrl-C ended it
    lost         why the device could not be opened, or not any more
    trouble      why quadpy uses what is ``off`` all the same, and what was measured is not stored; empty if neither is so
    """

    run: Run
    checks: Sequence[Check]
    whole: bool
    results: dict[str, Result] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    measured: Measured | None = None
    interrupted: bool = False
    lost: NoDeviceError | None = None
    trouble: str = ""
    seconds: float = 0.0

    def go(self, say: Callable[[str], object]) -> None:
        """Run everything; Ctrl-C, or a device that is gone, leaves what is known."""
        began = time.monotonic()
        try:
            for result in self.run.results(self.checks):
                self.results[result.name] = result
            self._attribute(say)
            self._keep(say)
        except KeyboardInterrupt:
            self.interrupted = True
        except NoDeviceError as error:
            self.lost, self.trouble = error, "the run did not come to its end"
        self.seconds = time.monotonic() - began

    @property
    def status(self) -> int:
        """0: everything works; 3: quadpy works around what does not; 1: something fails; 130: interrupted."""
        if self.interrupted:
            return 130
        if self.lost or any(result.unmended for result in self.results.values()):
            return 1
        return (1 if self.trouble else 3) if any(result.mended for result in self.results.values()) else 0

    def result_of(self, check: Check) -> Result:
        """What became of ``check`` so far."""
        return self.results.get(check.name, Result(check.name, "not run"))

    def advice(self, check: Check) -> str:
        """What a user can do about ``check``, as it stands."""
        result = self.result_of(check)
        if result.lacked_memory:
            return _MEMORY
        if result.again in WORKS:
            return _ONCE
        if result.mended and self.trouble:
            return f"set QUADPY_WITHOUT={','.join(self.off)}, and update the GPU's driver"
        broken = result.unmended and result.status != "not run"
        return _UNKNOWN if broken and check.speaks_for in INSTEAD else check.remedy

    def _attribute(self, say: Callable[[str], object]) -> None:
        """Switch off each capability whose check fails again, but not without it; then try again what else fails."""
        for name in INSTEAD:
            if speaking := self._failing(name):
                say(f"once more, for {name}:")
                self._repeat(speaking, self.off, control=True)  # a busy machine, say, fails by chance
            if speaking := self._failing(name):
                say(f"without {name}:")
                self._repeat(speaking[:1], [*self.off, name])
                result = self.results[speaking[0].name]
                if result.mended:
                    why = f"{result.name} {result.status}: {(result.text.splitlines() or [''])[0]}"
                    self._repeat(self._failing(), [*self.off, name])
                    self.off[name] = why

    def _failing(self, name: str = "") -> list[Check]:
        """The checks that do not work, but might without a capability: without ``name``, where it is given."""
        results = ((each, self.results[each.name]) for each in self.checks if name in ("", each.speaks_for))
        return [
            check
            for check, result in results
            if result.unmended and not result.lacked_memory and result.again not in WORKS
        ]

    def _repeat(
        self, checks: Iterable[Check], off: Iterable[str], *, control: bool = False, quick: bool = False
    ) -> None:
        """Run ``checks`` without what is ``off``: each result has the new status as ``without``; of a control, as ``again``."""
        environ = {**self.run.environ, "QUADPY_WITHOUT": ",".join(off) or NO_CAPABILITY}
        for found in replace(self.run, environ=environ, quick=quick or self.run.quick).results([*checks]):
            before = self.results[found.name]
            before = before._replace(text=before.text or found.text)
            if not control:
                now = before._replace(without=found.status)
            else:
                now = found if before.status == "not run" else before._replace(again=found.status)
            self.results[found.name] = now

    def _keep(self, say: Callable[[str], object]) -> None:
        """Run all without what is off, and store the answers, if all were asked.

        What an earlier run switched off or measured stays, until one that is as deep finds that it works.
        """
        world, figures = self.run.device["world"], self.results.get("costs.crossing")
        if figures is not None and figures.status == "passed":
            self.measured = Measured(**figures.figures["measured"])
        before = known_in(world) if self.whole else None
        open_ = {check.speaks_for for check in self.checks if self.run.quick or self.results[check.name].unmended}
        kept = {name: why for name, why in (before.off if before else {}).items() if name in open_ - {*self.off}}
        if self.off:
            say(f"everything without {', '.join([*kept, *self.off])}:")
            again = [check for check in self.checks if check.quick and not self.results[check.name].unmended]
            self._repeat(again, [*kept, *self.off], quick=True)
        if not self.whole or "host" in self.run.device["features"]:
            self.trouble = "only a whole run on a GPU stores it" if self.off else ""
            return
        self.trouble = store(world, Known({**kept, **self.off}, self.measured or (before.measured if before else None)))
        self.off |= {name: f"{why} (in an earlier run; --full asks again)" for name, why in kept.items()}
        wish = settings().without
        if not self.trouble and wish is not None and not self.off.keys() <= {*wish}:
            self.trouble = "QUADPY_WITHOUT is set, which overrides what is stored"
