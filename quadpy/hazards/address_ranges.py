"""The ledger of the memory at an address."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator

from quadpy.hazards.ledger import Ledger

__all__ = ["AddressRanges"]


class AddressRanges:
    """The ledgers of ranges of addresses, none of which overlap."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._starts: list[int] = []
        self._known: dict[int, Ledger] = {}

    def at(self, low: int, high: int) -> Iterator[Ledger]:
        """The ledgers with bytes from ``low`` to ``high``, of memory that still exists."""
        index = max(0, bisect.bisect_right(self._starts, low) - 1)
        for start in self._starts[index : bisect.bisect_left(self._starts, high)]:
            found = self._known[start]
            if found.end <= low:
                continue
            if found.alive():
                yield found
            else:
                self.remove(found)

    def enter(self, low: int, high: int, *, fresh: bool, owned: bool = False) -> Ledger:
        """The ledger for memory from ``low`` to ``high``, which begins with it if it is ``fresh``.

        Memory that has been ``owned`` since is different from memory that the user freed at the same address before.
        """
        found = list(self.at(low, high))
        for old in found if owned else ():
            if old.free is not None:
                self.remove(old)
        found = [old for old in found if not owned or old.free is None]
        if not fresh and len(found) == 1 and found[0].start <= low and high <= found[0].end:
            return found[0]
        made = Ledger(low, high)
        for old in found:
            self.remove(old)
            if not fresh and old.free is None:
                made.absorb(old)
        self._known[made.start] = made  # before its address is listed, for interrupts
        bisect.insort(self._starts, made.start)
        return made

    def remove(self, ledger: Ledger) -> None:
        """Forget a ledger; twice does nothing."""
        self._changed()
        if self._known.get(ledger.start) is ledger:
            if ledger.start in self._starts:
                self._starts.remove(ledger.start)
            del self._known[ledger.start]
