"""Decides when the nodes of a graph read their arguments from memory instead of holding them: see docs/adr/0012."""

from __future__ import annotations

from typing import Final

FEW_CHANGES: Final = 2
"""Changing up to this many nodes takes less time than writing their arguments to memory."""
PATIENCE: Final = 2
"""After this many changes of more nodes, a graph keeps its arguments in memory."""
_NEVER: Final = -(1 << 62)
"""This count never reaches PATIENCE."""


class ArgumentPolicy:
    """The decision for one graph, which begins with arguments in its nodes.

    few  the most changes at once that are always made node by node
    """

    __slots__ = ("_changes", "few")

    def __init__(self) -> None:
        self.few = FEW_CHANGES
        self._changes = 0

    @property
    def wants_memory(self) -> bool:
        """Whether arguments should be in memory."""
        return self._changes >= PATIENCE

    def note_changes(self, changed: int) -> bool:
        """Count a call that changes ``changed`` nodes at once; returns whether it should use arguments in memory."""
        if changed <= self.few:
            return False
        self._changes += 1
        return self.wants_memory

    def keep_in_nodes(self) -> None:
        """Leave arguments in the nodes for good: there is no such code, or the driver refused it."""
        self._changes = _NEVER
