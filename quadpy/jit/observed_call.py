"""A call of a kernel that an observer is told of."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from quadpy.artifact import SHADOW
from quadpy.ir.expressions import COMBINES, Access, AtomicOp
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
    from quadpy.jit.footprints import KernelFootprints, Touch, Touches

__all__ = ["accesses_of", "run_observed", "task_accesses"]

_COMMUTING: Final = {op: "add" if op is AtomicOp.SUB else op.value for op in COMBINES}
"""Atomic operations that commute with their like, by one name; an exchange and a compare-and-swap do not."""

_MOST: Final = 64
"""Different calls of one plan whose accesses are kept."""


def run_observed(
    observer: Observer, source: FunctionSource, plan: Plan, values: Values, views: Views, stream: object
) -> object:
    """``plan.run``, of which ``observer`` is told unless a capture records the call.

    Raises:
        HazardError: the observer refuses the call; nothing has been launched.
    """
    from quadpy.jit.cpu_plan import CpuPlan  # with LLVM, which is loaded by now
    from quadpy.jit.fusion.plan import FusingPlan
    from quadpy.jit.graph_plan import GraphPlan

    on = stream_of(current_device(), stream)
    if session_of(on) is not None:
        return plan.run(values, views, stream)
    arrays: tuple[ArrayMemory, ...] = (*views, *plan.fields)
    given = values[:]
    call = ObservedCall(
        source.name, source.span, arrays, lambda: accesses_of(plan, given), bool(plan.code.results),
        plan.spans if isinstance(plan, CpuPlan) else (),
    )  # fmt: skip
    told = observer.launching(on, call)
    if told.task_times is not None and isinstance(plan, CpuPlan):
        plan, TIMED.times = plan.timed, told.task_times
    elif told.node_timer is not None and isinstance(plan, (GraphPlan, FusingPlan)):
        plan = plan.apart(values)
    result = plan.run(values, views, on if stream is not None and _needs_stream(on) else None)
    told.done()
    return result


def _needs_stream(stream: Stream) -> bool:
    """Whether ``Plan.run`` must be told of the stream: on the host only a capture asks for it."""
    return bool(CAPTURES.count) or "host" not in stream.device.driver.features


TaskAccesses: TypeAlias = tuple[tuple[KernelAccess, ...], ...]
"""What each task of a kernel does."""


class _Found(NamedTuple):
    """The accesses of one call; ``touches`` is kept, as its identity stands for the call."""

    touches: Touches
    tasks: TaskAccesses
    accesses: tuple[KernelAccess, ...]


_known: Final[weakref.WeakKeyDictionary[KernelFootprints, dict[int, _Found]]] = weakref.WeakKeyDictionary()
"""What was found for each plan, by the identity of the touches."""


def accesses_of(plan: Plan, values: Sequence[float]) -> tuple[KernelAccess, ...]:
    """What a call with ``values`` does with its arrays; the identical object for the same touches."""
    return _found(plan, values).accesses


def task_accesses(plan: Plan, values: Sequence[float]) -> TaskAccesses:
    """The same for each task of the code; the identical object for the same touches."""
    return _found(plan, values).tasks


def _found(plan: Plan, values: Sequence[float]) -> _Found:
    footprints = plan.footprints()
    touches = footprints.at(values)
    known = _known.get(footprints)
    if known is None:
        known = _known.setdefault(footprints, {})
    found = known.get(id(touches))
    if found is None:
        if len(known) >= _MOST:
            known.clear()
        layout = plan.code.layout.values
        names = [value.param for value in layout if value.part == "pointer" and value.param != SHADOW]
        numbers = {name: number for number, name in enumerate(names)}
        tasks = tuple(tuple(_accesses(numbers, footprints.called, task)) for task in touches)
        whole = tuple(_without_implied(access for task in tasks for access in task))
        found = known[id(touches)] = _Found(touches, tasks, whole)
    return found


def _accesses(
    numbers: Mapping[str, int], called: Mapping[str, str], touches: Sequence[Touch]
) -> Iterator[KernelAccess]:
    for touch in touches:
        name = touch.footprint.array
        if name in numbers:
            yield _access(numbers[name], called.get(name, name), touch)


def _access(number: int, name: str, touch: Touch) -> KernelAccess:
    footprint, box = touch
    kind = "read" if footprint.access is Access.READ else "write"
    if footprint.access is Access.ATOMIC:
        kind = "write" if footprint.operation is None else _COMMUTING.get(footprint.operation, "write")
    certain = box.axes is not None and box.exact and box.always
    return KernelAccess(number, name, kind, box.axes, footprint.components, certain, _reason(touch), footprint.location)


def _reason(touch: Touch) -> str:
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
