"""Checks the parallel sections of a kernel: they must not touch the same elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

from quadpy.core.conflicts import Hazard, HazardAccess
from quadpy.core.source import Span
from quadpy.hazards.calls import node_entries
from quadpy.hazards.findings import raise_hazard
from quadpy.hazards.operations import Entry, conflict
from quadpy.hazards.regions import Overlap, overlap
from quadpy.hazards.reports import allowed_in_both, kind_of, range_text, verb_of
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.observing import KernelAccess

Section: TypeAlias = Sequence[tuple[ArrayMemory, KernelAccess]]
"""The accesses of a section."""


def check_sections(kernel: str, span: Span, forks: Sequence[Sequence[Section]]) -> None:
    """Report memory that several sections of one fork touch: to the checker if it is on, else only certain hazards.

    Raises:
        HazardError: two sections certainly touch one element, one of them writes it, and hazards are not collected.
    """
    found = [hazard for sections in forks for hazard in _hazards(kernel, span, sections)]
    if CAPTURES.checker is not None:
        CAPTURES.checker.report(found)
        return
    for hazard in found:
        if hazard.certain and not hazard.allowed:
            raise_hazard(hazard)


def _hazards(kernel: str, span: Span, sections: Sequence[Section]) -> Iterator[Hazard]:
    entries = [[entry for access in section for entry in node_entries(access)] for section in sections]
    for first, second in combinations(range(len(entries)), 2):
        for one in entries[first]:
            for other in entries[second]:
                how = overlap(one.region, other.region)
                if how is not Overlap.NONE and conflict(one.kind, other.kind):
                    sides = _side(kernel, span, first, one), _side(kernel, span, second, other)
                    yield _hazard(sides, one, other, how)


def _side(kernel: str, span: Span, section: int, entry: Entry) -> HazardAccess:
    place = entry.span or span
    actor = f"section {section + 1} of {kernel}"
    return HazardAccess(place.file, place.line, actor, verb_of(entry.kind), entry.array, range_text(entry.region))


def _hazard(sides: tuple[HazardAccess, HazardAccess], one: Entry, other: Entry, how: Overlap) -> Hazard:
    reasons = [f"of the first section, {one.reason}"] if one.reason else []
    reasons += [f"of the second section, {other.reason}"] if other.reason else []
    if how is Overlap.POSSIBLE:
        reasons.append("the two touch parts of the same range of bytes, but perhaps not the same bytes")
    allowed = allowed_in_both(one.region, other.region)
    fix = "move the second section after the parallel ones"
    return Hazard(kind_of(one.kind, other.kind), *sides, not reasons, "; ".join(reasons), fix, allowed)
