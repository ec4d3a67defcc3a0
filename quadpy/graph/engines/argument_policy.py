"""When the nodes of a graph read their arguments from memory instead of having them: see docs/adr/0012."""

from __future__ import annotations

from typing import Final

__all__ = ["FEW_CHANGES", "PATIENCE", "ArgumentPolicy"]

FEW_CHANGES: Final = 2
"""So many nodes of a graph are changed in less time than it takes to put their arguments into memory."""
PATIENCE: Final = 2
"""After so many changes of more nodes than that, a graph has its arguments in memory."""
_NEVER: Final = -(1 << 62)
"""So many changes as good as never become PATIENCE."""


class ArgumentPolicy:
    """The decision for one graph, which begins with arguments in its nodes.

    few  changes at once that are made node by node, however often they come
    """

    __slots__ = ("_changes", "few")

    def __init__(self) -> None:
        self.few = FEW_CHANGES
        self._changes = 0

    @property
    def wants_memory(self) -> bool:
        """Whether arguments are to stand in memory."""
        return self._changes >= PATIENCE

    def note_changes(self, changed: int) -> bool:
        """Take note of a call that changes ``changed`` nodes at once; whether arguments are to stand in memory for it."""
        if changed <= self.few:
            return False
        self._changes += 1
        return self.wants_memory

    def keep_in_nodes(self) -> None:
        """Leave arguments in the nodes for good: there is no other code, or the driver refused it."""
        self._changes = _NEVER
