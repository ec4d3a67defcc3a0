"""Races of kernels, as users read them; found during compilation."""

from __future__ import annotations

import re

from quadpy.core.conflicts import Race, race_access, race_of_iterations
from quadpy.core.messages import users_index
from quadpy.ir.nodes import ArrayParam, Kernel, ParallelTask, Param
from quadpy.ir.races import Definite, Proved, Unknown, definite_races, races_of


def races_in(kernel: Kernel, name: str) -> tuple[Race, ...]:
    """The definite races of ``kernel``, which users call ``name``; and all that it allows, unless there are none."""
    found: list[Race] = []
    for task in kernel.tasks:
        races: dict[str, Definite | Unknown] = {**definite_races(task, noalias=kernel.noalias)}
        allowed = dict(task.allowed) if isinstance(task, ParallelTask) else {}
        verdicts = races_of(task, noalias=kernel.noalias) if allowed else {}
        races |= {name: each for name, each in verdicts.items() if name in allowed and not isinstance(each, Proved)}
        found += [race_of(name, array, race, kernel, allowed.get(array, "")) for array, race in races.items()]
    return tuple(found)


def race_of(name: str, array: str, found: Definite | Unknown, kernel: Kernel, allowed: str = "") -> Race:
    """``found`` of ``kernel``, which users call ``name``, as they read it."""
    shown, element = kernel.called(array), ""
    if isinstance(found, Definite) and not found.is_slot:
        param = next((each for each in kernel.params if each.name == array), None)
        element = f"[{', '.join(_users_index(found.element, param)) or 'None'}]"
    first, second = (
        race_access(
            name, point.verb, _as_in_source(", ".join(point.iteration), kernel), shown, _as_in_source(element, kernel),
            point.span,
        )
        for point in (found.first, found.second)
    )  # fmt: skip
    certain = isinstance(found, Definite)
    reason = found.needs if isinstance(found, Definite) else found.reason
    return race_of_iterations(name, first, second, certain=certain, reason=reason, allowed=allowed)


def _as_in_source(text: str, kernel: Kernel) -> str:
    """``text`` with the names that the source has for fields and variables."""
    return re.sub(r"\$\w+", lambda name: kernel.called(name[0]), text)


def _users_index(element: tuple[str, ...], param: Param | None) -> tuple[str, ...]:
    """``element`` as users write it, where it is known in numbers."""
    if not isinstance(param, ArrayParam) or not (any(param.offset) or param.blocks):
        return element
    if not all(part.removeprefix("-").isdecimal() for part in element):
        return ("…",)
    return tuple(map(str, users_index([int(part) for part in element], param.offset, param.blocks)))
