"""Makes the report of two accesses."""

from __future__ import annotations

from typing import Final

from quadpy.core.conflicts import Hazard, HazardAccess, HazardKind
from quadpy.hazards.allowances import reason_for
from quadpy.hazards.clocks import Lane
from quadpy.hazards.operations import ALLOCATION, FREE, READ, WRITE, Entry, Operation
from quadpy.hazards.regions import Overlap, Region
from quadpy.hazards.sites import name_of_event, name_of_memory, name_of_stream
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.streams.timeline import Timeline


def hazard_of(first: tuple[Operation, Entry], second: tuple[Operation, Entry], how: Overlap) -> Hazard:
    """The hazard of two accesses that nothing orders; ``second`` is about to be submitted."""
    (before, earlier), (now, later) = first, second
    reason = _doubt(before, earlier, now, later, how)
    sides = _access(before, earlier), _access(now, later)
    allowed = allowed_in_both(earlier.region, later.region)
    late = f"let line {before.line} come after this one" if earlier.kind == FREE else ""
    fix = late or _fix(before.lane, now.lane)
    return Hazard(kind_of(earlier.kind, later.kind), *sides, not reason, reason, fix, allowed)


def allowed_in_both(one: Region, other: Region) -> str:
    """Why accesses to their common memory need no order, if the program says so; else empty."""
    return reason_for(max(one.low, other.low), min(one.high, other.high))


def kind_of(earlier: str, later: str) -> HazardKind:
    """The name of a hazard of two kinds of accesses."""
    if FREE in (earlier, later):
        return "use after free"
    if ALLOCATION in (earlier, later):
        return "use before allocation"
    if earlier == READ:
        return "write after read"
    return "read after write" if later == READ else "write after write"


def _doubt(before: Operation, earlier: Entry, now: Operation, later: Entry, how: Overlap) -> str:
    """Why the hazard is only possible; empty if it is certain."""
    reasons = [f"of the first access, {reason}" for reason in (earlier.reason, before.doubt) if reason]
    reasons += [f"of the second access, {later.reason}"] if later.reason else []
    if how is Overlap.POSSIBLE:
        reasons.append("the two touch parts of the same range of bytes, but perhaps not the same bytes")
    return "; ".join(reasons)


def _access(operation: Operation, entry: Entry) -> HazardAccess:
    place = entry.span or operation.kernel
    where = f" ({place.file}:{place.line})" if place is not None else ""
    name = entry.array if place is not None else name_of_memory(entry.region.low) or entry.array
    return HazardAccess(
        operation.file, operation.line, f"{operation.what}{where}", verb_of(entry.kind), name,
        range_text(entry.region), stream_name(operation.lane),
    )  # fmt: skip


def verb_of(kind: str) -> str:
    """A description of an access of ``kind``, in words."""
    known = {READ: "reads", WRITE: "writes", ALLOCATION: "allocates", FREE: "frees"}
    return known.get(kind, f"updates ({kind})")


def range_text(region: Region) -> str:
    """The elements, or how many bytes; empty for all of an array."""
    if region.grid is None:
        return f", {region.high - region.low} bytes" if region.high > region.low else ""
    axes, shape = region.axes, region.grid.shape
    if all(len(positions) == n for positions, n in zip(axes, shape, strict=True)):
        return ""
    return f"[{', '.join(_axis(positions, n) for positions, n in zip(axes, shape, strict=True))}]"


def _axis(positions: range, extent: int) -> str:
    if len(positions) == extent:
        return ":"
    if len(positions) == 1:
        return str(positions[0])
    step = "" if positions.step == 1 else f":{positions.step}"
    return f"{positions[0]}:{positions[-1] + 1}{step}"


def stream_name(lane: Lane) -> str:
    """The stream's name in the calling program, or its number among those that the checker saw."""
    timeline = lane.stream()
    if not isinstance(timeline, Timeline):
        return "" if lane.life is None else "a stream that is gone"
    if (name := name_of_stream(timeline)) is not None:
        return name
    return "the default stream" if lane.default else f"stream number {lane.number}"


def _fix(before: Lane, now: Lane) -> str:
    """A line that orders ``now`` after ``before``."""
    first, second = _expression(before), _expression(now)
    if first is None:
        return "qp.sync()"
    if second is None:
        return f"{first}.synchronize()"
    event = name_of_event()
    return f"{event} = qp.create_event(); {event}.record({_argument(first)}); {event}.wait({_argument(second)})"


_DEFAULT: Final = "qp.Stream.from_handle(0)"


def _expression(lane: Lane) -> str | None:
    """The stream in the calling program; None if it cannot be named there."""
    timeline = lane.stream()
    if not isinstance(timeline, Timeline) or timeline.owner is None:
        return None
    name = name_of_stream(timeline)
    return _DEFAULT if name is None and lane.default else name


def _argument(stream: str) -> str:
    """``stream`` as the argument of a call: none for the default stream if it is the current one, as it usually is."""
    device = current_device()
    return "" if stream == _DEFAULT and device.current_stream() is device.default_stream else stream
