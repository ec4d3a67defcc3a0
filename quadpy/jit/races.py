"""Definite races of kernels: found when one compiles, and warned of once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

from quadpy.errors import RaceWarning
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import Kernel, Task
from quadpy.ir.races import AccessPoint, Definite, definite_races
from quadpy.ir.walk import walk
from quadpy.races import Race, RaceAccess, base_name, place_text
from quadpy.source import Span

__all__ = ["race_of", "races_in", "variable_name", "warn_of_races"]


def races_in(kernel: Kernel, name: str) -> tuple[Race, ...]:
    """The definite races of ``kernel``, which users call ``name``."""
    return tuple(
        race_of(name, array, found)
        for task in kernel.tasks
        for array, found in definite_races(task, noalias=kernel.noalias).items()
    )


def race_of(kernel: str, array: str, found: Definite) -> Race:
    """``found`` as users read it; what the source calls ``array`` is read there where it has no name of its own."""
    points = (found.first, found.second)
    element = "" if found.is_slot else f"[{', '.join(found.element) or 'None'}]"
    if array.startswith("$"):
        array = _name_at((point.span for point in points if point.verb != "reads"), is_slot=found.is_slot)

    def access(point: AccessPoint) -> RaceAccess:
        return RaceAccess(kernel, point.verb, ", ".join(point.iteration), array, element, point.span)

    return Race(access(found.first), access(found.second), reason=found.needs)


def variable_name(task: Task, array: str) -> str:
    """What the source calls ``array`` of ``task``, which may be a field or a variable from before the loop."""
    if not array.startswith("$"):
        return array
    spans = []
    for node in walk(task):
        if isinstance(node, (ir.Load, ir.Store, ir.Atomic)):
            name = node.place.array if isinstance(node.place, ir.Element) else f"${node.place.number}"
            spans += [node.span] if name == array else []
    return _name_at(spans, is_slot=array[1:].isdigit())


def _name_at(spans: Iterable[Span], *, is_slot: bool) -> str:
    """The array or variable that the source reads or writes at the first of ``spans`` that says it."""
    names = (base_name(place_text(span)) for span in spans)
    return next(filter(None, names), "a variable" if is_slot else "a field")


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
