"""Reasons for a trace to start again: the syntax does not show them, and the next trace knows them from the start."""

from __future__ import annotations

from types import CodeType
from typing import TypeAlias

LocalName: TypeAlias = tuple[CodeType, str]
"""A name of one function."""
LoopLocation: TypeAlias = tuple[CodeType, int, int]
"""A loop of one function, by its line and column."""


class Retrace(Exception):
    """What the trace found shows that it must start again."""


class LocalAtomicFound(Retrace):
    """An atomic operation, a method of a struct or a branch changes a local name, which the syntax does not show.

    The trace starts again, and this time makes the name a variable from the start.
    """

    def __init__(self, name: LocalName) -> None:
        super().__init__(name[1])
        self.name = name


class BlockMeets(Retrace):
    """The iterations of a loop from which a failed check jumps wait for each other at a barrier."""

    def __init__(self, loop: LoopLocation) -> None:
        super().__init__()
        self.loop = loop


class CellsChange(Retrace):
    """A loop over active cells makes cells inactive: what it writes may have to make them active again."""

    def __init__(self, loop: LoopLocation) -> None:
        super().__init__()
        self.loop = loop
