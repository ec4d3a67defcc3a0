"""Where findings go: to the innermost block that checks, unless they are allowed."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.core.conflicts import Hazard
from quadpy.hazards.findings import Findings, raise_hazard, warn_of
from quadpy.runtime.device.blocks import Lasting


class Sinks:
    """The findings of the blocks that are being checked, the innermost last, and outside of them those of the process."""

    def __init__(self) -> None:
        self.blocks: Lasting[Findings] = Lasting()
        self.process: Findings | None = None

    @property
    def innermost(self) -> Findings | None:
        """Where hazards go; None while nothing is checked."""
        blocks = tuple(self.blocks.values())
        return blocks[-1] if blocks else self.process

    def report(self, hazards: Sequence[Hazard]) -> None:
        """Enter ``hazards``; a certain one is raised unless the block collects.

        Raises:
            HazardError: a hazard is certain.
        """
        findings = self.innermost
        if findings is None:
            return
        for hazard in hazards:
            new = findings.add(hazard)
            if findings.collect or hazard.allowed:
                continue
            if hazard.certain:
                raise_hazard(hazard)
            if new:
                warn_of(hazard)
