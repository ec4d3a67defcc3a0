"""The launches of a kernel that differ from an earlier one only in the addresses of their arrays."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Protocol

from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.launch_records import LaunchRecords
from quadpy.jit.fast_call.native_launch import HEAD
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.plan import ArgumentValue, Plan, Values
from quadpy.runtime.drivers.driver import StreamHandle

Place = tuple[int, int]
"""The number of a memory among those of a call, and an offset in it."""

_ADDRESS: Final = struct.Struct("=Q")


class PlannedLaunch(Protocol):
    """A launch for memory that begins at ``bases``."""

    def run(self, bases: Sequence[int], stream: StreamHandle) -> None: ...


def planned_launch(plan: Plan, values: Values, places: Sequence[Place], slots: Place) -> PlannedLaunch | None:
    """The launch of ``plan`` with ``values`` and arrays at ``places``; ``slots`` is for its own scratch memory.

    None if later launches may differ in more.
    """
    if type(plan) is GpuPlan and plan.is_straight and not plan.hidden.counts:
        grids = plan.complete(values)
        return None if grids is None else _GpuLaunch(plan, grids, values, places, slots)
    return _CpuLaunch(plan, values, places) if isinstance(plan, CpuPlan) else None


class _Arguments:
    """The values of a launch."""

    def __init__(self, plan: CpuPlan | GpuPlan, values: Values, places: Sequence[Place]) -> None:
        self._values = values
        self._addresses = [(index, *place) for index, place in zip(plan.arrays.pointers, places, strict=True)]

    def at(self, bases: Sequence[int]) -> list[ArgumentValue]:
        """The values for memory that begins at ``bases``."""
        found = self._values.copy()
        for index, memory, offset in self._addresses:
            found[index] = bases[memory] + offset
        return found


class _CpuLaunch:
    def __init__(self, plan: CpuPlan, values: Values, places: Sequence[Place]) -> None:
        self._run, self._arguments = plan.run, _Arguments(plan, values, places)

    def run(self, bases: Sequence[int], stream: StreamHandle) -> None:
        self._run(self._arguments.at(bases), (), None)


class _GpuLaunch:
    """``grids`` are those of each such launch, as shapes are the same."""

    def __init__(
        self, plan: GpuPlan, grids: Sequence[int], values: Values, places: Sequence[Place], slots: Place
    ) -> None:
        self._plan, self._grids, self._slots = plan, grids, slots
        self._arguments = _Arguments(plan, values, places)
        self._records = LaunchRecords(plan.device.driver, plan.launches, plan.block_bytes)
        self._pack = struct.Struct(f"@Q{len(grids)}I0Q{plan.format.format[1:]}").pack_into

    def run(self, bases: Sequence[int], stream: StreamHandle) -> None:
        records = self._records
        try:
            record = records.spare.pop()
        except IndexError:
            record = records.make()
        block, submit, _ = record
        self._pack(block, HEAD, stream, *self._grids, *self._arguments.at(bases))
        if (offset := self._plan.hidden.scratch_offset) is not None:
            memory, start = self._slots
            _ADDRESS.pack_into(block, records.start + offset, bases[memory] + start)
        if (code := submit()) and not records.settle(record, code):
            records.launch(record)
        records.spare.append(record)
