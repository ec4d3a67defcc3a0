"""The warnings of races that were found during compilation, in this process or an earlier one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

from quadpy.core.conflicts import Race
from quadpy.errors import RaceWarning
from quadpy.runtime.launch.capturing import CAPTURES

_warned: Final[set[tuple[str, str, str]]] = set()


def warn_of_races(races: Iterable[Race]) -> None:
    """Warns of each race once in a process, at the line of its second access; the hazard checker lists what is allowed.

    Raises:
        RaceWarning: if the user's filters turn warnings into errors.
    """
    if CAPTURES.checker is not None:
        CAPTURES.checker.report([race for race in races if race.allowed])
    for race in races:
        if race.allowed:
            continue
        key = race.first.location, race.second.location, race.second.array
        if key in _warned:
            continue
        warning = RaceWarning(str(race))
        warning.hazard = race
        warnings.warn_explicit(warning, RaceWarning, race.second.file, race.second.line)
        _warned.add(key)
