"""Hazards that were found: raised, collected or warned about; and those that are allowed."""

from __future__ import annotations

import json
import warnings
from typing import Any, NoReturn

from quadpy.core.completion import shows
from quadpy.core.conflicts import Hazard
from quadpy.errors import HazardError, HazardWarning


@shows("allowed", "certain", "possible", "to_json")
class Findings:
    """The hazards that were found, each pair of lines and array once; a report that grows as the program runs.

    A certain hazard replaces a possible one of the same lines; a hazard that was allowed once may be found later.

    certain   both accesses take place, whatever the data
    possible  those that the checker cannot decide
    allowed   those that ``qp.hazards.allow`` covers
    """

    def __init__(self, *, collect: bool = True) -> None:
        self.collect = collect
        self.certain: list[Hazard] = []
        self.possible: list[Hazard] = []
        self.allowed: list[Hazard] = []
        self._known: set[tuple[str, str, str, str]] = set()

    def add(self, hazard: Hazard) -> bool:
        """Enter ``hazard``; False if it is already known for these two lines."""
        verdict = "allowed" if hazard.allowed else "certain" if hazard.certain else "possible"
        if (key := (*_places(hazard), verdict)) in self._known:
            return False
        self._known.add(key)
        dict(self._parts())[verdict].append(hazard)
        if verdict == "certain":
            self._known.add((*_places(hazard), "possible"))
            self.possible[:] = [one for one in self.possible if _places(one) != _places(hazard)]
        return True

    def to_json(self) -> str:
        """All hazards as JSON."""
        return json.dumps({name: [one.to_json() for one in found] for name, found in self._parts()}, indent=2)

    def _parts(self) -> list[tuple[str, list[Hazard]]]:
        return [("certain", self.certain), ("possible", self.possible), ("allowed", self.allowed)]

    def __len__(self) -> int:
        return len(self.certain) + len(self.possible)

    def __repr__(self) -> str:
        return f"<hazards: {self._counts()}>"

    def _counts(self) -> str:
        return ", ".join(f"{len(found)} {name}" for name, found in self._parts())

    def __str__(self) -> str:
        return "\n\n".join([f"hazards: {self._counts()}", *(str(one) for _, found in self._parts() for one in found)])


def _places(hazard: Hazard) -> tuple[str, str, str]:
    """The key that tells the hazards of a report apart."""
    return hazard.first.location, hazard.second.location, hazard.second.array


def raise_hazard(hazard: Hazard) -> NoReturn:
    """Raise the HazardError of ``hazard``."""
    hint = f"before line {hazard.second.line}: {hazard.fix}" if hazard.fix else ""
    error = HazardError(f"{hazard.headline}\n    first   {hazard.first}\n    second  {hazard.second}", hint=hint)
    error.hazard = hazard
    raise error


def warn_of(hazard: Hazard) -> None:
    """Warn about a possible hazard, at the line of its second access."""
    warning: Any = HazardWarning(str(hazard))
    warning.hazard = hazard
    warnings.warn_explicit(warning, HazardWarning, hazard.second.file, hazard.second.line)
