"""Where findings go: to the innermost block that checks, unless they are allowed."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.conflicts import Hazard
from quadpy.hazards.findings import Findings, raise_hazard, warn_of

__all__ = ["Sinks"]


class Sinks:
    """The findings of the blocks that are being checked, the innermost last."""

    def __init__(self) -> None:
        self.open: list[Findings] = []

    def report(self, hazards: Sequence[Hazard]) -> None:
        """Enter ``hazards``; a certain one is raised unless the block collects.

        Raises:
            HazardError: a hazard is certain.
        """
        if not self.open:
            return
        findings = self.open[-1]
        for hazard in hazards:
            new = findings.add(hazard)
            if findings.collect or hazard.allowed:
                continue
            if hazard.certain:
                raise_hazard(hazard)
            if new:
                warn_of(hazard)
