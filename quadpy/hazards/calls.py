"""The accesses of calls of kernels, as entries of ledgers; calls that do the same reuse them.

Of calls of one kernel, one after another, the memory that each touches is worked out on demand, which is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from quadpy.hazards.leaves import Leaf, leaves_of
from quadpy.hazards.ledger import Ledger
from quadpy.hazards.operations import READ, Entry, Operation, merged
from quadpy.hazards.regions import ByteGrid, Region, region_in
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.launch.observing import CallAccesses, KernelAccess, ObservedCall, RawAccess

if TYPE_CHECKING:
    from quadpy.hazards.clocks import Clock, Lane
    from quadpy.hazards.memory import Allocations, Handle
    from quadpy.runtime.arrays.view import ArrayMemory

Handles: TypeAlias = tuple["Handle | None", ...]

_MOST: Final = 256
"""Runs that are kept, and accesses of a layout."""


class CallTouches(NamedTuple):
    """The memory that a call touches.

    touched  the entries of its arrays
    of_host  the entries of arrays of the host that only the call refers to
    waits    whether the host waits for the call, as it writes one of those
    lent     whether some arrays come from another library: then the call waits for the thread's current stream
    """

    touched: Touched
    of_host: tuple[Entry, ...]
    waits: bool
    lent: bool


class _Place(NamedTuple):
    """Where an array of a call is, even after the array has died."""

    pointer: int
    nbytes: int
    leaves: tuple[Leaf, ...]
    is_view: bool = False
    """For memory of the host that is not quadpy's."""


class _Places:
    """Where the arrays of calls are, and the parts of them that they touch: regions take long to compute.

    Calls with the same addresses and shapes have one, whatever memory is at the addresses.
    """

    __slots__ = ("_known", "_places")

    def __init__(self, call: ObservedCall) -> None:
        self._places = tuple([_place_of(array, is_view=isinstance(array, HostView)) for array in call.arrays])
        self._known: dict[int, tuple[object, list[tuple[int, Entry]]]] = {}

    def has_views(self, handles: Handles) -> bool:
        """Whether there are arrays of the host that only the call refers to."""
        return any(handle is None and place.is_view for place, handle in zip(self._places, handles, strict=True))

    def touches(self, accesses: tuple[KernelAccess, ...], handles: Handles) -> tuple[Touched, tuple[Entry, ...]]:
        """The entries of arrays that the checker knows, and of those that only the call refers to.

        While the name of an array is the same, so is its entry, and the ledger keeps one.
        """
        _, found = self._known.get(id(accesses), (None, None))
        if found is None:
            found = list(self._entries(accesses))
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[id(accesses)] = accesses, found
        touched: list[tuple[Ledger, Entry]] = []
        of_host: list[Entry] = []
        for k, (number, entry) in enumerate(found):
            handle = handles[number]
            if handle is not None:
                if entry.handle is not handle and entry.handle is not None:
                    entry = entry.copy()
                    found[k] = number, entry
                touched.append((handle.ledger, handle.ledger.adopt(entry, handle)))
            elif self._places[number].is_view:
                of_host.append(entry)
        return tuple(touched), tuple(of_host)

    def _entries(self, accesses: Iterable[KernelAccess]) -> Iterator[tuple[int, Entry]]:
        for access in accesses:
            if access.array < len(self._places):  # a distributed field has more, which the ranks order
                for entry in _entries(access, self._places[access.array]):
                    yield access.array, entry


@dataclass(slots=True)
class _Known:
    """A run, by the objects that must be the same; if the memory's ``version`` is the same, so are all others."""

    version: object
    handles: Handles
    ledgers: tuple[Ledger | None, ...]
    run: Run
    layout: _Places


class Calls:
    """Finds the runs that calls belong to, and the entries of those that belong to none."""

    def __init__(self, memory: Allocations) -> None:
        self._memory = memory
        self._known: dict[tuple[object, ...], _Known] = {}

    def run(self, call: ObservedCall, lane: Lane) -> Run | None:
        """The run of ``call``; None if it has arrays that only it refers to: their memory may become quadpy's."""
        memory, code = self._memory, call.code()
        key = code, lane, code.place(call.values), *map(type, call.arrays)
        found = self._known.get(key)
        if found is not None and found.version is memory.version:
            return found.run
        version = memory.version
        handles = tuple([memory.of_array(array) for array in call.arrays])
        ledgers = tuple([None if handle is None else handle.ledger for handle in handles])
        if found is not None and (found.handles, found.ledgers) == (handles, ledgers):
            found.version = version
            return found.run
        layout = _Places(call) if found is None else found.layout
        if layout.has_views(handles):
            return None
        if len(self._known) >= _MOST:
            self._known.clear()
        some = [ledger for ledger in ledgers if ledger is not None]
        made = Run(
            lane, code, some, lambda accesses: layout.touches(accesses, handles)[0], lent=_is_lent(call, handles)
        )
        self._known[key] = _Known(version, handles, ledgers, made, layout)
        return made

    def touches(self, call: ObservedCall) -> CallTouches:
        """The memory that a call touches if it belongs to no run."""
        handles = tuple([self._memory.of_array(array) for array in call.arrays])
        touched, of_host = _Places(call).touches(call.code().accesses(call.values), handles)
        waits = any(entry.kind != READ for entry in of_host)
        return CallTouches(touched, of_host, waits, _is_lent(call, handles))


def _is_lent(call: ObservedCall, handles: Handles) -> bool:
    for array, handle in zip(call.arrays, handles, strict=True):
        if handle is not None and isinstance(array, (HostView, DeviceView)):
            return True
    return False


def _place_of(array: ArrayMemory, *, is_view: bool = False) -> _Place:
    return _Place(array.pointer, array.nbytes, leaves_of(array), is_view)


def node_entries(access: RawAccess | tuple[ArrayMemory, KernelAccess]) -> list[Entry]:
    """The entries of a graph node's accesses, which belong to no ledger yet; none if it touches nothing."""
    if isinstance(access, RawAccess):
        if not access.nbytes or not access.rows:
            return []
        region = Region(access.low, access.low + access.nbytes, True)
        if access.rows > 1:
            rows = ByteGrid(access.low, (access.rows, access.nbytes), (access.pitch, 1), 1)
            region = region_in(rows, ()) or region
        return [Entry(access.kind, region, access.reason, access.name)]
    array, touched = access
    return _entries(touched, _place_of(array))


def _entries(access: KernelAccess, place: _Place) -> list[Entry]:
    """The entries of ``access``: none if it covers nothing."""
    leaves = place.leaves
    if access.axes is None or not leaves or any(len(access.axes) > len(leaf.grid.shape) for leaf in leaves):
        whole = region_in(leaves[0].grid, ()) if len(leaves) == 1 else None
        region = whole or Region(place.pointer, place.pointer + place.nbytes, False)
        return [Entry(access.kind, region, access.reason or _UNKNOWN_LAYOUT, access.name, access.span)]
    found = [region_in(grid, axes) for grid, axes in _parts(access.axes, access.components, leaves)]
    return [
        Entry(access.kind, region, access.reason, access.name, access.span) for region in found if region is not None
    ]


_UNKNOWN_LAYOUT: Final = "the memory layout of its elements is not known"


def _parts(
    axes: tuple[range, ...], components: tuple[int, ...] | None, leaves: Sequence[Leaf]
) -> Iterator[tuple[ByteGrid, tuple[range, ...]]]:
    """``axes`` in the grids of the scalars that are touched: ``components``, or all."""
    ndim, first = len(axes), 0
    for leaf in leaves:
        count = leaf.components(ndim)
        theirs = [k for k in range(count) if components is None or first + k in components]
        if len(theirs) == count:
            yield leaf.grid, axes
        else:
            for component in theirs:
                yield leaf.grid, (*axes, *leaf.axes(ndim, component))
        first += count


Touched = tuple[tuple[Ledger, Entry], ...]
Values = Sequence[float]
_Old = tuple[Ledger, Entry, Operation]

_MOST_CALLS: Final = 256
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
        if len(calls) > _MOST_CALLS:
            self._shorten()

    def touched(self, values: Values) -> Touched:
        """The memory that a call touches; the identical entries for calls that do the same."""
        numbers = self._code.numbers(values)
        found = self._known.get(numbers)
        if found is None:
            if len(self._known) >= _MOST_CALLS:
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
        """Drops calls that are no longer needed; if many remain, merges the older half into one access of each kind."""
        after = max(
            self._complete, min((ledger.runs[self] for ledger in self.ledgers if self in ledger.runs), default=0)
        )
        calls = sorted(
            (call for call in self._calls.items() if call[1][0].time > after), key=lambda call: call[1][0].time
        )
        old = [old for old in self._old if old[2].time > after]
        if len(calls) > _MOST_CALLS // 2:
            old = self._merged([call for _, call in calls[: _MOST_CALLS // 2]], old)
            calls = calls[_MOST_CALLS // 2 :]
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
