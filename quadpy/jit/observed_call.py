"""Reports calls of kernels to observers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from quadpy.core.artifact import SHADOW
from quadpy.core.source import Span
from quadpy.ir.expressions import COMBINES, AtomicOp
from quadpy.ir.node import Access
from quadpy.jit.misfits import MISFITS
from quadpy.jit.plan import Plan, Values, Views
from quadpy.jit.timed_entry import TIMED
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.launch.observing import KernelAccess, ObservedCall, Observer
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.jit.footprints import LaunchFootprint, LaunchFootprints

_COMMUTING: Final = {op: "add" if op is AtomicOp.SUB else op.value for op in COMBINES}
"""Atomic operations that commute with each other, by a common name; an exchange and a compare-and-swap do not."""

_MOST: Final = 64
"""Most calls of one plan whose accesses are kept."""


def run_observed(
    observer: Observer, source: FunctionSource, plan: Plan, values: Values, views: Views, stream: object
) -> object:
    """``plan.run``, reported to ``observer`` unless a capture records the call.

    Raises:
        HazardError: the observer refuses the call; nothing has been launched.
    """
    on = stream_of(current_device(), stream)
    if session_of(on) is not None:
        return plan.run(values, views, stream)
    arrays: tuple[ArrayMemory, ...] = (*views, *plan.fields)
    call = ObservedCall(
        source.name, source.span, arrays, partial(call_accesses, plan), values[:], bool(plan.code.results),
        partial(_spans, plan),
    )  # fmt: skip
    told = observer.launching(on, call)
    if told.task_times is not None or told.node_timer is not None:
        plan = plan.apart(values)
    before, TIMED.times = TIMED.times, told.task_times
    try:
        result = plan.run(values, views, on if stream is not None and _needs_stream(on) else None)
    finally:
        TIMED.times = before
    told.done()
    return result


def _spans(plan: Plan) -> Sequence[Span | None]:
    """Where each task of ``plan`` begins, if the CPU runs them."""
    spans: Sequence[Span | None] = getattr(plan, "spans", ())
    return spans


def _needs_stream(stream: Stream) -> bool:
    """Whether ``Plan.run`` needs the stream: on the host only a capture does."""
    return bool(CAPTURES.count) or "host" not in stream.device.driver.features


TaskAccesses: TypeAlias = tuple[tuple[KernelAccess, ...], ...]
"""The accesses of each task of a kernel."""


class _Found(NamedTuple):
    """The accesses of one call; ``touches`` is kept, as its identity stands for the call."""

    touches: LaunchFootprints
    tasks: TaskAccesses
    accesses: tuple[KernelAccess, ...]


def accesses_of(plan: Plan, values: Sequence[float]) -> tuple[KernelAccess, ...]:
    """The accesses of a call with ``values`` to its arrays; the identical object for the same footprints."""
    return call_accesses(plan).found(values).accesses


def task_accesses(plan: Plan, values: Sequence[float]) -> TaskAccesses:
    """The same for each task of the code; the identical object for the same touches."""
    return call_accesses(plan).found(values).tasks


class _PlanAccesses:
    """The accesses of a plan's calls to their arrays: a ``CallAccesses``."""

    def __init__(self, plan: Plan) -> None:
        self._footprints = footprints = plan.footprints()
        self.place, self.numbers = footprints.place, footprints.key
        names = [v.param for v in plan.code.layout.values if v.part == "pointer" and v.param != SHADOW]
        self._arrays = {name: number for number, name in enumerate(names)}
        self._known: dict[int, _Found] = {}

    def found(self, values: Sequence[float]) -> _Found:
        """The accesses of a call with ``values``."""
        footprints = self._footprints
        touches = footprints.at(values)
        found = self._known.get(id(touches))
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            tasks = tuple(tuple(_accesses(self._arrays, footprints.called, task)) for task in touches)
            whole = tuple(_without_implied(access for task in tasks for access in task))
            found = self._known[id(touches)] = _Found(touches, tasks, whole)
        return found

    def accesses(self, values: Sequence[float]) -> tuple[KernelAccess, ...]:
        """Like ``CallAccesses.accesses``: nothing if the values do not fit, since the call was refused."""
        try:
            return self.found(values).accesses
        except MISFITS:
            return ()

    def together(self, calls: Iterable[Sequence[float]]) -> tuple[KernelAccess, ...]:
        """See ``CallAccesses.together``."""
        touches = self._footprints.together(calls)
        return tuple(
            replace(access, certain=False, reason=_TOGETHER)
            for access in _accesses(self._arrays, self._footprints.called, touches)
        )


_TOGETHER: Final = "it stands for many accesses of different parts, whose history was shortened"


def call_accesses(plan: Plan) -> _PlanAccesses:
    """The accesses of calls of ``plan`` to their arrays."""
    footprints = plan.footprints()
    found = footprints.observed
    if not isinstance(found, _PlanAccesses):
        found = footprints.observed = _PlanAccesses(plan)
    return found


def _accesses(
    numbers: Mapping[str, int], called: Mapping[str, str], touches: Sequence[LaunchFootprint]
) -> Iterator[KernelAccess]:
    for touch in touches:
        name = touch.footprint.array
        if name in numbers:
            yield _access(numbers[name], called.get(name, name), touch)


def _access(number: int, name: str, touch: LaunchFootprint) -> KernelAccess:
    footprint, box = touch
    kind = "read" if footprint.access is Access.READ else "write"
    if footprint.access is Access.ATOMIC:
        kind = "write" if footprint.operation is None else _COMMUTING.get(footprint.operation, "write")
    certain = box.axes is not None and box.exact and box.always
    return KernelAccess(number, name, kind, box.axes, footprint.components, certain, _reason(touch), footprint.location)


def _reason(touch: LaunchFootprint) -> str:
    """Why an access may not take place as described; empty if it does."""
    if touch.box.axes is None:
        return "which elements it touches depends on data"
    if not touch.box.always:
        return "whether it takes place depends on data"
    return "" if touch.box.exact else "it may touch only some of these elements"


def _without_implied(accesses: Iterable[KernelAccess]) -> list[KernelAccess]:
    """``accesses`` without those that another one of the same kind covers."""
    found: list[KernelAccess] = []
    for new in accesses:
        if not any(_covers(known, new) for known in found):
            found = [known for known in found if not _covers(new, known)]
            found.append(new)
    return found


def _covers(one: KernelAccess, other: KernelAccess) -> bool:
    same = (one.array, one.kind) == (other.array, other.kind) and one.certain >= other.certain
    if not same or (one.components is not None and one.components != other.components):
        return False
    if one.axes is None or one.axes == other.axes:
        return one.axes is None or other.axes is not None
    return other.axes is not None and all(map(_contains, one.axes, other.axes))


def _contains(outer: range, inner: range) -> bool:
    if not inner:
        return True
    if len(inner) == 1:
        return inner[0] in outer
    return inner[0] in outer and inner[-1] in outer and inner.step % outer.step == 0
