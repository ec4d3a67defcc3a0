"""Definite races of kernels: found when one compiles, and warned of once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

from quadpy.errors import RaceWarning
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import ArrayParam, Kernel, Param, Task
from quadpy.ir.races import AccessPoint, Definite, definite_races, slot_name
from quadpy.ir.walk import walk
from quadpy.races import Race, RaceAccess, source_name, users_index

__all__ = ["race_of", "races_in", "variable_name", "warn_of_races"]


def races_in(kernel: Kernel, name: str) -> tuple[Race, ...]:
    """The definite races of ``kernel``, which users call ``name``."""
    return tuple(
        race_of(name, array, found, kernel)
        for task in kernel.tasks
        for array, found in definite_races(task, noalias=kernel.noalias).items()
    )


def race_of(name: str, array: str, found: Definite, kernel: Kernel) -> Race:
    """``found`` of ``kernel``, which users call ``name``, as they read it."""
    points = (found.first, found.second)
    param = next((each for each in kernel.params if each.name == array), None)
    element = "" if found.is_slot else f"[{', '.join(_users_index(found.element, param)) or 'None'}]"
    array = source_name(array, (point.span for point in points if point.verb != "reads"))

    def access(point: AccessPoint) -> RaceAccess:
        return RaceAccess(name, point.verb, ", ".join(point.iteration), array, element, point.span)

    return Race(access(found.first), access(found.second), reason=found.needs)


def _users_index(element: tuple[str, ...], param: Param | None) -> tuple[str, ...]:
    """``element`` as users write it, where it is known in numbers."""
    if not isinstance(param, ArrayParam) or not (param.offset or param.blocks):
        return element
    if not all(part.removeprefix("-").isdecimal() for part in element):
        return ("…",)
    return tuple(map(str, users_index([int(part) for part in element], param.offset, param.blocks)))


def variable_name(task: Task, array: str) -> str:
    """What the source calls ``array`` of ``task``, which may be a field or a variable from before the loop."""
    spans = []
    for node in walk(task) if array.startswith("$") else ():
        if isinstance(node, (ir.Load, ir.Store, ir.Atomic)):
            name = node.place.array if isinstance(node.place, ir.Element) else slot_name(node.place.number)
            spans += [node.span] if name == array else []
    return source_name(array, spans)


_warned: Final[set[tuple[str, str, str]]] = set()


def warn_of_races(races: Iterable[Race]) -> None:
    """Warns of each race once in a process, at the line of its second access.

    Raises:
        RaceWarning: where the user's filters make errors of warnings.
    """
    for race in races:
        key = race.first.location, race.second.location, race.second.array
        if key in _warned:
            continue
        warning = RaceWarning(str(race))
        warning.hazard = race
        warnings.warn_explicit(warning, RaceWarning, race.second.file, race.second.line)
        _warned.add(key)
