"""Verdicts about races of one array in one parallel task."""

from __future__ import annotations

from typing import TypeAlias

from quadpy.core.light import dataclass
from quadpy.core.source import Span


@dataclass(frozen=True, slots=True)
class Proved:
    """No two iterations touch one element, unless both only read it, or both only update it atomically.

    This holds for all arguments for which no arithmetic of an index overflows and nothing is divided by 0, which
    ``debug=True`` reports.  Casts to 8 and 16 bits may wrap.
    """


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """One of two accesses: ``verb`` says what it does, ``iteration`` has the loop's variables, as text, if they are known."""

    verb: str
    iteration: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Definite:
    """Two iterations touch one element, whatever the data; at least one writes, and not both update atomically.

    element   the indices, as text
    needs     what the launch needs for that, as text: empty if every launch has it
    is_slot   whether it is a variable from before the loop, and not an array
    """

    first: AccessPoint
    second: AccessPoint
    element: tuple[str, ...]
    needs: str = ""
    is_slot: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was shown for these two accesses, because of ``reason``; their iterations are not known."""

    reason: str
    first: AccessPoint
    second: AccessPoint


Verdict: TypeAlias = Proved | Definite | Unknown
