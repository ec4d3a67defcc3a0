"""Calls of one kernel, one after another: the memory that each touches is worked out on demand, which is rare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from quadpy.hazards.clocks import Clock, Lane
from quadpy.hazards.ledger import Ledger
from quadpy.hazards.operations import Entry, Operation, merged
from quadpy.runtime.launch.observing import CallAccesses, KernelAccess

Touched = tuple[tuple[Ledger, Entry], ...]
Values = Sequence[float]
_Old = tuple[Ledger, Entry, Operation]

_MOST: Final = 256
"""The number of calls that are kept one by one."""


class Run:
    """Calls on one lane of the same code with the same arrays, which differ in the ``values`` of their argument blocks.

    ledgers  of the arrays
    entries    what a call touches, from its accesses
    lent     whether some arrays come from another library: then a call waits for the thread's current stream
    latest   the time of the last call
    is_latest  whether nothing but other runs on the same lane has touched any of the arrays since
    """

    __slots__ = ("_calls", "_code", "_entries", "_known", "_old", "is_latest", "lane", "latest", "ledgers", "lent")

    def __init__(
        self,
        lane: Lane,
        code: CallAccesses,
        ledgers: Iterable[Ledger],
        entries: Callable[[tuple[KernelAccess, ...]], Touched],
        *,
        lent: bool,
    ) -> None:
        self.lane, self._code, self._entries, self.lent = lane, code, entries, lent
        self.ledgers = tuple(dict.fromkeys(ledgers))
        self._calls: dict[object, tuple[Operation, Values]] = {}
        self._old: list[_Old] = []
        self._known: dict[object, Touched] = {}
        self.latest, self.is_latest = 0, False

    def follows_all(self, clock: Clock) -> bool:
        """Whether a call with ``clock`` comes after all accesses to the arrays on other lanes: no entry is compared."""
        if self.is_latest:
            return True
        lane, known = self.lane, clock.get
        for ledger in self.ledgers:
            running = ledger.running
            plain = running is not None and (running is lane or known(running.number, 0) >= running.time)
            if not plain and not ledger.is_before(lane, clock):
                return False
        return True

    def add(self, values: Values, operation: Operation) -> None:
        """Note ``operation``, a call with ``values``; each change is one assignment, as in ``Ledger.note``."""
        calls = self._calls
        calls[self._code.numbers(values)] = operation, values
        self.latest = operation.time
        if not self.is_latest:
            for ledger in self.ledgers:
                ledger.begin(self, operation.time - 1)
            self.is_latest = True
        if len(calls) > _MOST:
            self._shorten()

    def touched(self, values: Values) -> Touched:
        """The memory that a call touches; the identical entries for calls that do the same."""
        numbers = self._code.numbers(values)
        found = self._known.get(numbers)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[numbers] = self._entries(self._code.accesses(values))
        return found

    def since(self, ledger: Ledger, time: int) -> Iterator[tuple[Operation, Entry]]:
        """The accesses to ``ledger`` of calls after ``time`` that the host does not know to be complete."""
        after = max(time, self._complete)
        for of, entry, operation in self._old:
            if of is ledger and operation.time > after:
                yield operation, entry
        for operation, values in self._calls.values():
            if operation.time > after:
                for of, entry in self.touched(values):
                    if of is ledger:
                        yield operation, entry

    @property
    def _complete(self) -> int:
        return self.lane.clocks.host.get(self.lane.number, 0)

    def _shorten(self) -> None:
        """Forget calls that are no longer needed; if many are left, the older half becomes one access of each kind."""
        after = max(
            self._complete, min((ledger.runs[self] for ledger in self.ledgers if self in ledger.runs), default=0)
        )
        calls = sorted(
            (call for call in self._calls.items() if call[1][0].time > after), key=lambda call: call[1][0].time
        )
        old = [old for old in self._old if old[2].time > after]
        if len(calls) > _MOST // 2:
            old = self._merged([call for _, call in calls[: _MOST // 2]], old)
            calls = calls[_MOST // 2 :]
        self._old, self._calls = old, dict(calls)

    def _merged(self, calls: Sequence[tuple[Operation, Values]], old: Sequence[_Old]) -> list[_Old]:
        """``calls``, the newest last, and those merged before, as one access of each array and kind."""
        found: dict[tuple[Ledger, str, str], list[tuple[Entry, Operation]]] = {}
        newest = calls[-1][0]
        for ledger, entry in self._entries(self._code.together(values for _, values in calls)):
            found.setdefault((ledger, entry.kind, entry.array), []).append((entry, newest))
        for ledger, entry, operation in old:
            found.setdefault((ledger, entry.kind, entry.array), []).append((entry, operation))
        return [(ledger, *merged(records)) for (ledger, *_), records in found.items()]
