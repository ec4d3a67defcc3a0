"""A simulated driver for tests, which records its calls and runs work only when it is told to.

It obeys the rules of a GPU: work on streams is asynchronous, a destroyed handle is refused and its number is reused at
once, and memory is freed when its stream reaches the free.  ``races`` finds missing order.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from quadpy.errors import DriverError
from quadpy.runtime.drivers.driver import (
    DEFAULT_STREAM,
    Address,
    AllocatorName,
    DeviceInfo,
    Dim3,
    EventHandle,
    Feature,
    FunctionHandle,
    ModuleHandle,
    NativeLaunch,
    PinnedPointer,
    PlainPointer,
    PoolPointer,
    StreamHandle,
)
from simulated_gpu.device import Call, Event, RecordedKernel, SimulatedDevice, numbered
from simulated_gpu.graphs import RecordingGraphs
from simulated_gpu.simulation import Clock, Op, merge

__all__ = ["Call", "RecordedKernel", "RecordingDriver"]

F = TypeVar("F", bound=Callable[..., Any])

_GROUP: Final = 8
"""Units of a group, the smallest part of the device that a stream can have."""
_THREADS: Final = 2048
"""Threads that one unit can hold."""
_FEATURES: Final[frozenset[Feature]] = frozenset(
    ("handles", "timing", "pool", "modules", "stream-device", "cooperative", "parts")
)


def _recorded(verb: F) -> F:
    """A verb that is logged, and admits one thread at a time."""

    @functools.wraps(verb)
    def wrapper(self: RecordingDriver, *arguments: object, **options: object) -> object:
        with self.lock:
            self.log(verb.__name__, *arguments, *options.values())
            return verb(self, *arguments, **options)

    return wrapper  # type: ignore[return-value]  # it has the signature of ``verb``


class RecordingDriver(SimulatedDevice):
    """A simulated device with ``capacity`` bytes: one of AMD's or, with ``loops``, one of NVIDIA's."""

    def __init__(
        self, ordinal: int = 0, *, capacity: int = 1 << 30, history: bool = True, loops: bool = False,
        beside: RecordingDriver | None = None,
    ) -> None:  # fmt: skip
        """Device ``ordinal``; its streams can wait for events of ``beside``, another device of the same process."""
        super().__init__(capacity, history=history, beside=beside)
        self.name, self.ordinal, self.features = "recording", ordinal, _FEATURES
        self.default_allocator: AllocatorName = "cache"
        arch = "sm_90" if loops else "gfx942:sramecc+:xnack-"
        self.info = DeviceInfo("recorded device", arch, capacity, units=304)
        self._foreign: dict[int, int] = {}
        self._modules: dict[int, object] = {}
        self._freed: Clock = {}  # the frees that have run, after which their memory may be allocated again
        self.graphs = RecordingGraphs(self, loops=loops)

    # for tests

    def races(self) -> list[tuple[Op, Op]]:
        """All pairs of ops on the same bytes that nothing orders, allocations and frees included."""
        return [*self.simulation.races(), *self.graphs.races]

    def left_open(self) -> dict[str, int]:
        """How many objects of each kind were not given back."""
        counts = {"streams": len(self._streams) - 1, "events": len(self._events), "memory": len(self.memory)}
        return counts | {"modules": len(self._modules)} | self.graphs.left_open()

    def foreign_stream(self, device: int | None = None) -> StreamHandle:
        """A stream of another library, on device ``device``."""
        handle = StreamHandle(numbered(0x9000, self._streams, self.simulation.queue()))
        self._foreign[handle] = self.ordinal if device is None else device
        return handle

    # streams

    @_recorded
    def stream_create(self, priority: int) -> StreamHandle:
        return StreamHandle(numbered(0x1000, self._streams, self.simulation.queue()))

    def unit_groups(self) -> Sequence[range]:
        """As on a device with 8 XCCs, or with clusters of 8 multiprocessors."""
        return [range(first, first + _GROUP) for first in range(0, self.info.units, _GROUP)]

    @_recorded
    def stream_create_on(self, priority: int, groups: Sequence[int]) -> StreamHandle:
        if sorted(set(groups)) != list(groups) or not groups:
            raise DriverError(f"stream_create_on failed: {groups} are not numbers of groups in ascending order")
        queue = self.simulation.queue()
        queue.units = sum(len(self.unit_groups()[number]) for number in groups)
        return StreamHandle(numbered(0x1000, self._streams, queue))

    @_recorded
    def stream_destroy(self, stream: StreamHandle) -> None:
        self.queue_of(stream)
        if stream == DEFAULT_STREAM:
            raise DriverError("stream_destroy failed: the default stream cannot be destroyed")
        del self._streams[stream]  # its pending work still runs

    @_recorded
    def stream_synchronize(self, stream: StreamHandle) -> None:
        self.simulation.finish_queue(self.queue_of(stream))

    @_recorded
    def stream_query(self, stream: StreamHandle) -> bool:
        queue = self.queue_of(stream)
        if not queue.pending:
            self.simulation.observe(queue.clock)
        return not queue.pending

    @_recorded
    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        queue, last = self.queue_of(stream), self.event_of(event).last
        if last is not None:
            self.simulation.submit("wait", queue, awaits=last)

    @_recorded
    def stream_device(self, stream: StreamHandle) -> int:
        self.queue_of(stream)
        return self._foreign.get(stream, self.ordinal)

    @_recorded
    def synchronize(self) -> None:
        self.simulation.finish_all()

    # events

    @_recorded
    def event_create(self, *, timing: bool) -> EventHandle:
        return EventHandle(numbered(0x5000, self._events, Event(timing)))

    @_recorded
    def event_destroy(self, event: EventHandle) -> None:
        self.event_of(event)
        del self._events[event]

    @_recorded
    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        self.event_of(event).last = self.simulation.submit("record", self.queue_of(stream))

    @_recorded
    def event_synchronize(self, event: EventHandle) -> None:
        last = self.event_of(event).last
        if last is not None:
            self.simulation.finish(last)
            self.simulation.observe(last.clock)

    @_recorded
    def event_query(self, event: EventHandle) -> bool:
        last = self.event_of(event).last
        if last is not None and last.moment:
            self.simulation.observe(last.clock)
        return last is None or last.moment > 0

    @_recorded
    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        first, second = self.event_of(start), self.event_of(end)
        if not (first.timing and second.timing and first.last and second.last):
            raise DriverError("event_elapsed failed: an event has no timing, or was never recorded")
        if not (first.last.moment and second.last.moment):
            raise DriverError("event_elapsed failed: not complete")
        return float(second.last.moment - first.last.moment)

    # memory

    @_recorded
    def alloc(self, nbytes: int) -> PlainPointer:
        return PlainPointer(self.memory.allocate(nbytes))

    @_recorded
    def free(self, pointer: PlainPointer) -> None:
        self.simulation.finish_all()  # like the vendors' plain free
        self.memory.release(pointer)

    @_recorded
    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer:
        queue, pointer = self.queue_of(stream), self.memory.allocate(nbytes)
        self.simulation.submit("alloc", queue, writes=[(pointer, nbytes)], after=self._freed)
        return PoolPointer(pointer)

    @_recorded
    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        if pointer:
            whole, of_graph = (pointer, self.memory.size(pointer)), self.graphs.free_held(pointer)
            queue = self.queue_of(stream)

            def run() -> None:
                if not of_graph:  # a graph keeps its memory for the next launch
                    self.memory.release(pointer)
                    merge(self._freed, op.clock)

            op = self.simulation.submit("free", queue, writes=[whole], action=run)

    @_recorded
    def trim_pool(self) -> None:
        """Does nothing: freed blocks are not kept."""

    @_recorded
    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        return PinnedPointer(self.memory.allocate(nbytes))

    @_recorded
    def free_pinned(self, pointer: PinnedPointer) -> None:
        self.simulation.finish_all()
        self.memory.release(pointer)

    @_recorded
    def memory_info(self) -> tuple[int, int]:
        return self.memory.capacity - self.memory.used, self.memory.capacity

    @_recorded
    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        self._copy(target, source, nbytes, stream)

    @_recorded
    def copy_out(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        self._copy(target, source, nbytes, stream)

    @_recorded
    def copy_within(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        self._copy(target, source, nbytes, stream)

    @_recorded
    def fill(self, target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
        def run() -> None:
            self.memory.require(target, nbytes)
            ctypes.memset(target, value, nbytes)

        self.simulation.submit("fill", self.queue_of(stream), writes=[(target, nbytes)], action=run)

    # code

    @_recorded
    def module_load(self, image: bytes) -> ModuleHandle:
        if not image.startswith((b"\x7fELF", b"//")):  # PTX begins with a comment
            raise DriverError("module_load failed: the image is not a code object")
        return ModuleHandle(numbered(0xA000, self._modules, object()))

    @_recorded
    def module_function(self, module: ModuleHandle, name: str) -> FunctionHandle:
        if module not in self._modules or name not in self.kernels:
            raise DriverError(f"module_function failed: there is no {name!r} in module {module:#x}")
        self._functions.append(self.kernels[name])
        return FunctionHandle(len(self._functions))

    @_recorded
    def module_unload(self, module: ModuleHandle) -> None:
        if module not in self._modules:
            raise DriverError(f"module_unload failed: there is no module {module:#x}")
        del self._modules[module]

    def launch_arguments(self, address: int, nbytes: int) -> object:
        return address, nbytes

    @_recorded
    def launch(
        self, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle,
        arguments: tuple[int, int],
    ) -> None:  # fmt: skip
        self._launch(function, stream, arguments)

    def max_blocks(self, function: FunctionHandle, threads: int, shared: int) -> int:
        return self.info.units * (_THREADS // threads)

    def cooperative_arguments(self, address: int, offsets: Sequence[int]) -> object:
        return address, max(offsets, default=0) + 8

    @_recorded
    def launch_cooperative(
        self, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle,
        arguments: tuple[int, int],
    ) -> None:  # fmt: skip
        most = self.max_blocks(function, block[0], shared)
        if (units := self.queue_of(stream).units) is not None:
            most = most // self.info.units * units
        if grid[0] > most:
            raise DriverError(f"launch_cooperative failed: {grid[0]} blocks, and the limit is {most}")
        self._launch(function, stream, arguments)

    def native_launch(self) -> NativeLaunch | None:
        return None

    def _launch(self, function: FunctionHandle, stream: StreamHandle, arguments: tuple[int, int]) -> None:
        run, reads, writes = self.kernel_action(function, ctypes.string_at(*arguments))
        self.simulation.submit("launch", self.queue_of(stream), reads=reads, writes=writes, action=run)

    def _copy(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        """The host's end of a copy may be any memory of the process; the device's must still exist when it runs."""
        ends = [(address, nbytes) for address in (target, source) if self.memory.holds(address, nbytes)]
        if nbytes and not ends:
            raise DriverError(f"a copy from {source:#x} to {target:#x} touches no memory of this device")

        def run() -> None:
            for end in ends:
                self.memory.require(*end)
            ctypes.memmove(target, source, nbytes)

        queue = self.queue_of(stream)
        self.simulation.submit("copy", queue, reads=[(source, nbytes)], writes=[(target, nbytes)], action=run)
