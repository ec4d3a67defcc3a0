"""Races inside a parallel loop: two iterations touch one element, and at least one writes.

Iterations of a loop have no order, so such a program has no meaning, whatever a serial run may give.  For each
array that a task touches, ``races_of`` tells whether it is proved free of races, has two iterations that certainly
collide, or neither.
"""

from __future__ import annotations

from quadpy.ir.races.find import AccessPoint, Definite, Proved, Unknown, Verdict, definite_races, races_of
from quadpy.ir.races.witnesses import orders_itself

__all__ = [
    "AccessPoint", "Definite", "Proved", "Unknown", "Verdict", "definite_races", "orders_itself",
    "races_of",
]  # fmt: skip
