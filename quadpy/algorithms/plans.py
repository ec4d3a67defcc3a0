"""What calls of algorithms launch, kept for later calls with arrays of the same types and shapes.

To check arguments, to choose kernels, and to make an array for each part of the scratch memory takes longer than the work
on some thousand numbers.  None of this depends on the numbers: a second call makes its results, and launches.

Launches of a kernel that differ from an earlier one only in the addresses of their arrays are kept, too.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from quadpy.algorithms.runs import ALIGNMENT, Run, on_gpu
from quadpy.core.dtypes import Scalar
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.launch_records import LaunchRecords
from quadpy.jit.fast_call.native_launch import HEAD
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.lang.decorators import Func
from quadpy.runtime.arrays.ndarray import NDArray, unset_array
from quadpy.runtime.arrays.reinterpret import over_memory_of
from quadpy.runtime.device.current import State
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, StreamHandle
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.memory.host_memory import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from quadpy.jit.kernel import Kernel
    from quadpy.jit.plan import ArgumentValue, Plan, Values, Views
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.streams.timeline import Timeline

T = TypeVar("T")
Answer: TypeAlias = "int | _View | tuple[Any, list[Answer]]"
"""What a call returns: an array by its number, a view of one, or a tuple with its class."""

_MOST: Final = 512
"""Calls that are kept; then all are forgotten."""


class _Unknown(Exception):
    """A call has no plan: the next one may differ in what its arguments do not show."""


class _View(NamedTuple):
    array: int
    dtype: Scalar
    shape: tuple[int, ...]
    start: int


class _Planned(NamedTuple):
    """A call.  Its memory is numbered: the arrays of the caller, the results, the scratch memory.

    ``written`` says of each array whether it is written; ``device`` is None for the CPU.
    """

    launches: list[PlannedLaunch]
    results: list[tuple[Scalar, tuple[int, ...]]]
    scratch: int
    answer: Answer
    written: list[bool]
    device: Device | None

    def call(self, given: list[NDArray], stream: object) -> Any:
        device = self.device
        on = None if device is None else stream_of(device, stream)
        arrays = [*given, *(unset_array(dtype, shape, on) for dtype, shape in self.results)]
        bases = [array.pointer for array in arrays]
        if device is None or on is None:
            if self.scratch:
                scratch = HOST.allocate(self.scratch)
                bases.append(scratch.pointer)
            self._launch(bases, DEFAULT_STREAM)
        else:
            self._announce(device, arrays, on.timeline)
            if self.scratch:
                buffer = device.allocate(self.scratch, on)
                bases.append(buffer.pointer)
            on._call(self._launch, bases)  # noqa: SLF001 - keeps the handle alive
        return _answered(self.answer, arrays)

    def _launch(self, bases: list[int], stream: StreamHandle) -> None:
        for launch in self.launches:
            launch.run(bases, stream)

    def _announce(self, device: Device, arrays: list[NDArray], timeline: Timeline) -> None:
        for array, writes in zip(arrays, self.written, strict=True):
            if (block := array.block) is not None and (writes or block.home is not timeline):
                device.memory.use((block,), timeline, writes=writes)


def _answered(answer: Answer, arrays: list[NDArray]) -> Any:
    if isinstance(answer, int):
        return arrays[answer]
    if isinstance(answer, _View):
        return over_memory_of(arrays[answer.array], answer.dtype, answer.shape, answer.start)
    made, parts = answer
    return made(_answered(part, arrays) for part in parts)


class _Recorder(Run):
    """A call that runs, and is noted: its results, the parts of its scratch memory with their offsets, its launches."""

    def __init__(self, stream: object) -> None:
        super().__init__(stream)
        self.results: list[NDArray] = []
        self.parts: list[tuple[NDArray, int]] = []
        self.launches: list[tuple[CpuPlan | GpuPlan, Values, Views]] = []

    def launch(self, kernel: Kernel, *args: object) -> None:
        kernel.planned(args, {}, self._run)

    def _run(self, plan: Plan, values: Values, views: Views) -> None:
        before = values.copy()
        plan.run(values, views, self.stream)
        if isinstance(plan, (CpuPlan, GpuPlan)) and not plan.fields and all(view.nbytes for view in views):
            self.launches.append((plan, before, views))
        else:
            self.depends_on_more = True

    def temporary(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        made = super().temporary(dtype, shape)
        self.parts.append((made, self.used - made.nbytes))
        return made

    def result(self, dtype: Scalar, shape: int | tuple[int, ...]) -> NDArray:
        made = super().result(dtype, shape)
        self.results.append(made)
        return made

    def planned(self, given: list[NDArray], answer: object) -> _Planned | None:
        """The call, which gave ``answer``; None if later calls may differ."""
        try:
            return None if self.depends_on_more else self._planned(given, answer)
        except _Unknown:
            return None

    def _planned(self, given: list[NDArray], answer: object) -> _Planned:
        arrays = [*given, *self.results]
        memory = [(array.pointer, array.nbytes, number, 0) for number, array in enumerate(arrays)]
        memory += [(part.pointer, part.nbytes, len(arrays), offset) for part, offset in self.parts]
        slots = len(arrays), -(-self.used // ALIGNMENT) * ALIGNMENT
        launches: list[PlannedLaunch] = []
        written, most = [False] * (len(arrays) + 1), 0
        for plan, values, _ in self.launches:
            places = [_place(memory, int(values[index])) for index in plan.arrays.pointers]
            for (number, _), writes in zip(places, plan.arrays.written, strict=True):
                written[number] |= writes
            launch = planned_launch(plan, values, places, slots)
            if launch is None:
                raise _Unknown
            launches.append(launch)
            if isinstance(plan, GpuPlan):
                most = max(most, 8 * plan.code.slots)
        results = [(array.dtype, array.shape) for array in self.results]
        scratch = slots[1] + most if most else self.used
        described, device = _described(answer, arrays, memory), current_device() if on_gpu() else None
        return _Planned(launches, results, scratch, described, written[:-1], device)


def _place(memory: list[tuple[int, int, int, int]], pointer: int) -> Place:
    """In which memory an address is, and where."""
    for start, nbytes, number, offset in memory:
        if start <= pointer < start + nbytes:
            return number, pointer - start + offset
    raise _Unknown


def _described(answer: Any, arrays: list[NDArray], memory: list[tuple[int, int, int, int]]) -> Answer:
    if isinstance(answer, tuple):
        parts = [_described(part, arrays, memory) for part in answer]
        return getattr(answer, "_make", tuple), parts
    for number, array in enumerate(arrays):
        if answer is array:
            return number
    number, start = _place(memory, answer.pointer)
    if number == len(arrays):
        raise _Unknown  # scratch memory
    return _View(number, answer.dtype, answer.shape, start)


class _Known:
    """The plans for a configuration and a device: signature -> plan, or None where there is none."""

    config: object = None
    device: Device | None = None
    plans: dict[Hashable, _Planned | None] = {}  # noqa: RUF012 - replaced, not shared


def run_planned(name: str, body: Callable[[Run], T], stream: object) -> T:
    """The result of ``body``, which depends on its closure alone, on ``stream`` of a GPU, or on the CPU."""
    device = current_device() if on_gpu() else None
    if _Known.config is not State.config or _Known.device is not device or len(_Known.plans) > _MOST:
        _Known.config, _Known.device, _Known.plans = State.config, device, {}
    plans = _Known.plans
    given: list[NDArray] = []
    try:
        signature = (name, *[_signed(cell.cell_contents, given) for cell in body.__closure__ or ()])
    except _Unknown:
        return body(Run(stream))
    if any(array.device is not device for array in given):
        return body(Run(stream))
    if signature not in plans:
        recorder = _Recorder(stream)
        answer = body(recorder)
        plans[signature] = recorder.planned(given, answer)
        return answer
    found = plans[signature]
    return body(Run(stream)) if found is None else found.call(given, stream)


def _signed(value: Any, given: list[NDArray]) -> Any:
    """All that a call can depend on in one of its arguments, except for the numbers in an array.

    Raises:
        _Unknown: it may depend on more.
    """
    kind = type(value)
    if kind is NDArray:
        return _signed_array(value, given)
    if value is None or kind is int or kind is str or kind is bool or isinstance(value, Func):
        return kind, value
    if kind is float:
        return value.hex()
    if kind is Scalar:
        return value.name
    if kind is tuple:
        return tuple([_signed(part, given) for part in value])
    raise _Unknown


def _signed_array(array: NDArray, given: list[NDArray]) -> Hashable:
    if not array.nbytes:
        raise _Unknown
    start = array.pointer
    end = start + array.nbytes
    for number, other in enumerate(given):
        if start < other.pointer + other.nbytes and other.pointer < end:
            if array is other:
                return number
            raise _Unknown  # they overlap
    given.append(array)
    return array.type_key, array.shape


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
    # Plans with memory of their own, such as that of checks for races, need the arrays.
    return _CpuLaunch(plan, values, places) if type(plan) is CpuPlan else None


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
