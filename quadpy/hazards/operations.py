"""Operations of streams, and how they touch memory."""

from __future__ import annotations

import itertools
from typing import ClassVar, Final

from quadpy.core.source import Span
from quadpy.hazards.clocks import Clock, Lane, Snapshot
from quadpy.hazards.regions import Region, contains
from quadpy.runtime.launch.observing import NodeTimer, TaskTimes

READ: Final = "read"
WRITE: Final = "write"
ALLOCATION: Final = "allocation"
FREE: Final = "free"
ENDS: Final = frozenset({ALLOCATION, FREE})
_ALONE: Final = frozenset({WRITE, ALLOCATION, FREE})
"""Kinds of accesses that conflict with all others; other kinds conflict only with different kinds."""


def conflict(one: str, other: str) -> bool:
    """Whether accesses of these kinds must be ordered: reads need no order, nor do updates that commute."""
    return one != other or one in _ALONE


class Operation:
    """Work on a stream, or on memory: the ``time``-th of ``lane``, after what ``clock`` contains.

    what     the work, in words
    kernel   where the kernel is, for a launch
    file, line  the call in the user's program
    doubt    why it may not have taken place; empty once it has been submitted
    order    its place among the operations of all lanes, in the order of the calls

    It is the ``Submission`` of itself: until ``done``, it is in doubt.
    """

    task_times: ClassVar[TaskTimes | None] = None
    node_timer: ClassVar[NodeTimer | None] = None

    __slots__ = ("clock", "doubt", "file", "kernel", "lane", "line", "order", "time", "what")

    def __init__(self, lane: Lane, clock: Clock, what: str, kernel: Span | None, site: tuple[str, int]) -> None:
        self.lane, self.clock, self.what, self.kernel = lane, clock, what, kernel
        self.file, self.line = site
        self.time = lane.time + 1
        self.order = next(_numbers)
        self.doubt = "the call was interrupted, or failed"

    def done(self) -> None:
        """Like ``Submission.done``."""
        self.doubt = ""

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.file, self.line

    def point(self) -> Snapshot:
        """The point of the lane after the operation."""
        return Snapshot(self.lane, self.time, self.clock)


_numbers: Final = itertools.count()


class Entry:
    """How an operation touches an allocation.  Equal accesses of later operations have the identical object.

    kind    READ, WRITE, ALLOCATION, FREE, or an atomic operation, which commutes with the same operation
    reason  why the access may not take place as described; empty if it is certain
    array   the name of the array
    span    where in the kernel
    handle  the name of the memory that it used; None for several
    fills   whether it certainly writes every byte of its region
    """

    __slots__ = ("array", "fills", "handle", "kind", "reason", "region", "span")

    def __init__(self, kind: str, region: Region, reason: str, array: str, span: Span | None = None) -> None:
        self.kind, self.region, self.reason, self.array, self.span = kind, region, reason, array, span
        self.handle: object = None
        self.fills = kind in _ALONE and not reason and region.dense

    def copy(self) -> Entry:
        """An equal access of other memory."""
        return Entry(self.kind, self.region, self.reason, self.array, self.span)


def merged(records: list[tuple[Entry, Operation]]) -> tuple[Entry, Operation]:
    """Records of one kind as one; the newest is the first."""
    entry, operation = records[0]
    low, high = min(s.region.low for s, _ in records), max(s.region.high for s, _ in records)
    reason = "it stands for many accesses of different parts, whose history was shortened"
    return Entry(entry.kind, Region(low, high, False), reason, entry.array, entry.span), operation


def covers(later: Entry, earlier: Entry) -> bool:
    """Whether every conflict with ``earlier`` is also one with ``later``, of the same lane and name, and as certain."""
    same = later.handle is earlier.handle and (later.kind == earlier.kind or later.kind in _ALONE)
    return same and (not later.reason or bool(earlier.reason)) and contains(later.region, earlier.region)
