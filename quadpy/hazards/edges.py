"""Checks the edges of a graph: the dependencies of its nodes must order their accesses."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from quadpy.core.conflicts import Hazard, HazardAccess
from quadpy.core.source import Span
from quadpy.hazards.calls import node_entries
from quadpy.hazards.findings import raise_hazard
from quadpy.hazards.operations import Entry, conflict
from quadpy.hazards.regions import Overlap, overlap
from quadpy.hazards.reports import allowed_in_both, kind_of, range_text, verb_of
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.observing import ObservedNode

Pair: TypeAlias = tuple[int, int]


def check_edges(nodes: Sequence[ObservedNode]) -> None:
    """Report the edges that ``nodes`` lack: to the checker if it is on, else only those that are certainly needed.

    Raises:
        HazardError: an edge is certainly needed, and hazards are not collected.
    """
    if CAPTURES.checker is not None:
        CAPTURES.checker.report(list(missing_edges(nodes)))
        return
    for hazard in missing_edges(nodes):
        if hazard.certain and not hazard.allowed:
            raise_hazard(hazard)


def missing_edges(nodes: Sequence[ObservedNode]) -> Iterator[Hazard]:
    """A hazard for each pair of nodes that touch the same memory without dependencies that order them."""
    ancestors = ancestors_of(nodes)
    entries: dict[int, list[Entry]] = {}

    def entries_of(number: int) -> list[Entry]:
        if number not in entries:
            entries[number] = [entry for access in nodes[number].accesses() for entry in node_entries(access)]
        return entries[number]

    for first, second in _candidates(nodes, ancestors):
        if (hazard := _hazard(nodes, first, second, entries_of(first), entries_of(second))) is not None:
            yield hazard
    for number, node in enumerate(nodes):
        if node.unknown:
            yield from _of_unknown(nodes, number, ancestors)


def ancestors_of(nodes: Sequence[ObservedNode]) -> list[int]:
    """For each node a bit for each node that comes before it."""
    numbers: dict[str, int] = {}
    found: list[int] = []
    for number, node in enumerate(nodes):
        before = 0
        for name in node.after:
            at = numbers[name]
            before |= found[at] | 1 << at
        found.append(before)
        numbers[node.name] = number
    return found


def _candidates(nodes: Sequence[ObservedNode], ancestors: list[int]) -> list[Pair]:
    """Pairs of nodes that nothing orders and whose ranges of bytes overlap, at least one of them written."""
    if all(before == (1 << number) - 1 for number, before in enumerate(ancestors)):
        return []  # one after another
    ranges = sorted(
        (low, low + nbytes, number, writes) for number, node in enumerate(nodes) for low, nbytes, writes in node.touches
    )
    found: set[Pair] = set()
    open_: list[tuple[int, int, bool]] = []
    for low, high, number, writes in ranges:
        open_ = [one for one in open_ if one[0] > low]
        for _, other, wrote in open_:
            first, second = min(other, number), max(other, number)
            if (wrote or writes) and first != second and not ancestors[second] >> first & 1:
                found.add((first, second))
        open_.append((high, number, writes))
    return sorted(found)


def _hazard(
    nodes: Sequence[ObservedNode], first: int, second: int, earlier: list[Entry], later: list[Entry]
) -> Hazard | None:
    """The worst hazard of two nodes that nothing orders; None if they touch different elements."""
    found: Hazard | None = None
    for one in earlier:
        for other in later:
            if conflict(one.kind, other.kind) and (how := overlap(one.region, other.region)) is not Overlap.NONE:
                made = _report(nodes[first], nodes[second], one, other, how)
                if made.certain:
                    return made
                found = found or made
    return found


def _report(first: ObservedNode, second: ObservedNode, one: Entry, other: Entry, how: Overlap) -> Hazard:
    reasons = [f"of the first node, {one.reason}"] if one.reason else []
    reasons += [f"of the second node, {other.reason}"] if other.reason else []
    if how is Overlap.POSSIBLE:
        reasons.append("the two touch parts of the same range of bytes, but perhaps not the same bytes")
    sides = _side(first, one), _side(second, other)
    allowed = allowed_in_both(one.region, other.region)
    reason = "; ".join(reasons)
    return Hazard(kind_of(one.kind, other.kind), *sides, not reason, reason, _fix(first, second), allowed)


def _of_unknown(nodes: Sequence[ObservedNode], number: int, ancestors: list[int]) -> Iterator[Hazard]:
    """The hazards of a node that may touch any memory, with nodes that nothing orders with it."""
    node = nodes[number]
    for other, touching in enumerate(nodes):
        first, second = min(other, number), max(other, number)
        if other != number and touching.touches and not ancestors[second] >> first & 1:
            sides = [
                HazardAccess(*place(each.span), each.what, "may touch" if each is node else "touches", "memory", "")
                for each in (nodes[first], nodes[second])
            ]
            yield Hazard(
                "write after write", sides[0], sides[1], False, node.unknown, _fix(nodes[first], nodes[second])
            )


def _side(node: ObservedNode, entry: Entry) -> HazardAccess:
    where = f" ({entry.span.file}:{entry.span.line})" if entry.span is not None else ""
    actor = f"node {node.name!r}, {node.what}{where},"
    return HazardAccess(*place(node.span), actor, verb_of(entry.kind), entry.array, range_text(entry.region))


def place(span: Span | None) -> tuple[str, int]:
    """File and line of ``span``."""
    return ("quadpy", 0) if span is None else (span.file, span.line)


def _fix(first: ObservedNode, second: ObservedNode) -> str:
    if second.span is not None and "deps" in linecache.getline(second.span.file, second.span.line):
        return f"add {first.name!r} to the deps of {second.name!r}"
    line = "?" if first.span is None else first.span.line
    return f"record an event after line {line} on its stream, and let the stream of this line wait for it"
