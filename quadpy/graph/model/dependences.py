"""The order in which work must run: one tracker for the tasks of a kernel and for the nodes of a graph.

A read comes after earlier writes, a write after earlier reads and writes.  ``Ancestors`` numbers what is added; callers keep
a ``History`` for each thing that is touched, such as a range of memory or an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple


class Ancestors:
    """Numbered nodes, and which of them must have run before each."""

    def __init__(self) -> None:
        self._before: list[int] = []  # a bit for each ancestor

    def __len__(self) -> int:
        return len(self._before)

    def add(self, after: Iterable[int]) -> int:
        """The number of a new node that comes after ``after``."""
        ancestors = 0
        for node in after:
            ancestors |= self._before[node] | 1 << node
        self._before.append(ancestors)
        return len(self._before) - 1

    def follows(self, later: int, earlier: int) -> bool:
        """Whether ``later`` comes after ``earlier``, directly or not."""
        return bool(self._before[later] >> earlier & 1)

    def without_implied(self, nodes: set[int]) -> tuple[int, ...]:
        """``nodes`` in order, without those that another of them comes after."""
        implied = 0
        for node in nodes:
            implied |= self._before[node]
        return tuple(sorted([node for node in nodes if not implied >> node & 1]))

    def not_before(self, nodes: Sequence[int], later: int) -> list[int]:
        """Those of ``nodes`` that ``later`` does not come after."""
        ancestors = self._before[later]
        return [node for node in nodes if not ancestors >> node & 1]


class History(NamedTuple):
    """Who wrote something last, and who has read it since."""

    writers: Sequence[int]
    readers: Sequence[int]

    def read_by(self, node: int, ancestors: Ancestors) -> History:
        """The history with a read by ``node``: work after ``node`` also comes after its ancestors."""
        return History(self.writers, [*ancestors.not_before(self.readers, node), node])

    def written_by(self, node: int, ancestors: Ancestors) -> History:
        """The history with a write by ``node``."""
        readers = [reader for reader in ancestors.not_before(self.readers, node) if reader != node]
        return History([*ancestors.not_before(self.writers, node), node], readers)

    def joined(self, other: History) -> History:
        """The union of both histories, for work after two branches."""
        return History(list({*self.writers, *other.writers}), list({*self.readers, *other.readers}))


UNTOUCHED: Final = History((), ())
"""The history of memory that was never read or written."""
