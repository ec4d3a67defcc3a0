"""A Driver for tests.  Owns: RecordingDriver, which logs each call and runs work only when it is told to.

It obeys the rules of a GPU: work on streams is asynchronous, a handle that was destroyed is refused and its number is
used again at once, memory is freed where its stream gets to the free.  ``races`` finds the orders that are missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from quadpy.errors import DriverError
from quadpy.runtime.drivers.driver import (
    DEFAULT_STREAM,
    Address,
    AllocatorName,
    DeviceInfo,
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
from quadpy.runtime.drivers.simulated.graphs import RecordingGraphs
from quadpy.runtime.drivers.simulated.memory import SimulatedMemory
from quadpy.runtime.drivers.simulated.simulation import Clock, Lane, Op, Range, Simulation, merge

__all__ = ["Call", "RecordedKernel", "RecordingDriver"]

F = TypeVar("F", bound=Callable[..., Any])

_THREADS: Final = 2048
"""That one unit can hold."""
_FEATURES: Final[frozenset[Feature]] = frozenset(
    ("handles", "timing", "pool", "modules", "stream-device", "cooperative")
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the driver: the verb and its arguments."""

    verb: str
    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """A kernel in Python: ``run(block)`` does its work, ``touches(block)`` says what it reads and what it writes."""

    run: Callable[[bytes], None]
    touches: Callable[[bytes], tuple[Iterable[Range], Iterable[Range]]] = lambda _block: ((), ())


@dataclass(slots=True, eq=False)
class _Event:
    timing: bool
    last: Op | None = None


def _recorded(verb: F) -> F:
    """Log the call, fail it where the test said so, and let one thread at a time in."""

    @functools.wraps(verb)
    def wrapper(self: RecordingDriver, *arguments: object, **options: object) -> object:
        with self.lock:
            if self.history:
                self.calls.append(Call(verb.__name__, (*arguments, *options.values())))
            if (error := self.failures.pop(verb.__name__, None)) is not None:
                raise error
            return verb(self, *arguments, **options)

    return wrapper  # type: ignore[return-value]


class RecordingDriver:
    """A simulated device of ``capacity`` bytes: one of AMD's, or with ``loops`` one of NVIDIA's, whose graphs have loops.

    calls      every call so far; empty without ``history``
    failures   verb -> the error that its next call raises
    kernels    name -> what a function of that name, in any module, does
    """

    def __init__(
        self, ordinal: int = 0, *, capacity: int = 1 << 30, history: bool = True, loops: bool = False,
        beside: RecordingDriver | None = None,
    ) -> None:  # fmt: skip
        """Device ``ordinal``; its streams wait for events of ``beside``, another device of the same process."""
        self.name, self.ordinal, self.features = "recording", ordinal, _FEATURES
        self.default_allocator: AllocatorName = "cache"
        arch = "sm_90" if loops else "gfx942:sramecc+:xnack-"
        self.info = DeviceInfo("recorded device", arch, capacity, units=304)
        self.lock: contextlib.AbstractContextManager[object] = beside.lock if beside else threading.RLock()
        self.history = history
        self.calls: list[Call] = []
        self.failures: dict[str, Exception] = {}
        self.kernels: dict[str, RecordedKernel] = {}
        self.simulation: Simulation = beside.simulation if beside else Simulation(history=history)
        self.memory = SimulatedMemory(capacity)
        self._streams: dict[int, Lane] = {DEFAULT_STREAM: self.simulation.lane()}
        self._foreign: dict[int, int] = {}
        self._events: dict[int, _Event] = beside._events if beside else {}  # noqa: SLF001 - another one of this kind
        self._modules: set[int] = set()
        self._freed: Clock = {}  # the frees that have run: only then is their memory given out again
        self._functions: list[RecordedKernel] = []

        self.graphs = RecordingGraphs(self, loops=loops)

    # what a test asks

    def races(self) -> list[tuple[Op, Op]]:
        """Two ops on the same bytes that nothing orders; memory that is allocated or freed in order counts, too."""
        return [*self.simulation.races(), *self.graphs.races]

    def left_open(self) -> dict[str, int]:
        """How many things of each kind nobody has given back."""
        counts = {"streams": len(self._streams) - 1, "events": len(self._events), "memory": len(self.memory)}
        return counts | {"modules": len(self._modules)} | self.graphs.left_open()

    def foreign_stream(self, device: int | None = None) -> StreamHandle:
        """A stream that another library made, on device ``device``."""
        handle = StreamHandle(_unused(0x9000, self._streams))
        self._streams[handle] = self.simulation.lane()
        self._foreign[handle] = self.ordinal if device is None else device
        return handle

    # what the graphs of this driver use

    @contextlib.contextmanager
    def recorded(self, verb: str, *arguments: object) -> Iterator[None]:
        """As ``_recorded``, for a verb that stands elsewhere."""
        with self.lock:
            if self.history:
                self.calls.append(Call(verb, arguments))
            if (error := self.failures.pop(verb, None)) is not None:
                raise error
            yield

    def kernel_action(
        self, function: FunctionHandle, arguments: bytes
    ) -> tuple[Callable[[], None], list[Range], list[Range]]:
        """What a launch does, what it reads, and what it writes."""
        kernel = self._functions[function - 1]
        reads, writes = map(list, kernel.touches(arguments))

        def run() -> None:
            for touched in (*reads, *writes):
                self.memory.require(*touched)
            kernel.run(arguments)

        return run, reads, writes

    # streams

    @_recorded
    def stream_create(self, priority: int) -> StreamHandle:
        handle = StreamHandle(_unused(0x1000, self._streams))
        self._streams[handle] = self.simulation.lane()
        return handle

    @_recorded
    def stream_destroy(self, stream: StreamHandle) -> None:
        self.lane_of(stream)
        if stream == DEFAULT_STREAM:
            raise DriverError("stream_destroy failed: the default stream cannot be destroyed")
        del self._streams[stream]  # its work stays pending and runs with the rest

    @_recorded
    def stream_synchronize(self, stream: StreamHandle) -> None:
        self.simulation.finish_lane(self.lane_of(stream))

    @_recorded
    def stream_query(self, stream: StreamHandle) -> bool:
        lane = self.lane_of(stream)
        if not lane.pending:
            self.simulation.observe(lane.clock)
        return not lane.pending

    @_recorded
    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        lane, last = self.lane_of(stream), self.event_of(event).last
        if last is not None:
            self.simulation.submit("wait", lane, awaits=last)

    @_recorded
    def stream_device(self, stream: StreamHandle) -> int:
        self.lane_of(stream)
        return self._foreign.get(stream, self.ordinal)

    @_recorded
    def synchronize(self) -> None:
        self.simulation.finish_all()

    # events

    @_recorded
    def event_create(self, *, timing: bool) -> EventHandle:
        handle = EventHandle(_unused(0x5000, self._events))
        self._events[handle] = _Event(timing)
        return handle

    @_recorded
    def event_destroy(self, event: EventHandle) -> None:
        self.event_of(event)
        del self._events[event]

    @_recorded
    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        self.event_of(event).last = self.simulation.submit("record", self.lane_of(stream))

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
            raise DriverError("event_elapsed failed: an event without timing, or never recorded")
        if not (first.last.moment and second.last.moment):
            raise DriverError("event_elapsed failed: not complete")
        return float(second.last.moment - first.last.moment)

    # memory

    @_recorded
    def alloc(self, nbytes: int) -> PlainPointer:
        return PlainPointer(self.memory.allocate(nbytes))

    @_recorded
    def free(self, pointer: PlainPointer) -> None:
        self.simulation.finish_all()  # as the vendors' plain free does
        self.memory.release(pointer)

    @_recorded
    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer:
        lane, pointer = self.lane_of(stream), self.memory.allocate(nbytes)
        self.simulation.submit("alloc", lane, writes=[(pointer, nbytes)], after=self._freed)
        return PoolPointer(pointer)

    @_recorded
    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        if pointer:
            whole, of_graph = (pointer, self.memory.size(pointer)), self.graphs.free_held(pointer)
            lane = self.lane_of(stream)

            def run() -> None:
                if not of_graph:  # which keeps it for its next launch
                    self.memory.release(pointer)
                    merge(self._freed, op.clock)

            op = self.simulation.submit("free", lane, writes=[whole], action=run)

    @_recorded
    def trim_pool(self) -> None:
        """Nothing is kept: a block that was freed is gone."""

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

        self.simulation.submit("fill", self.lane_of(stream), writes=[(target, nbytes)], action=run)

    # code

    @_recorded
    def module_load(self, image: bytes) -> ModuleHandle:
        if not image.startswith((b"\x7fELF", b"//")):  # PTX begins with a comment
            raise DriverError("module_load failed: the image is no code object")
        handle = ModuleHandle(_unused(0xA000, self._modules))
        self._modules.add(handle)
        return handle

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
        self._modules.remove(module)

    def launch_arguments(self, address: int, nbytes: int) -> object:
        return address, nbytes

    @_recorded
    def launch(
        self,
        function: FunctionHandle,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: StreamHandle,
        arguments: tuple[int, int],
    ) -> None:
        run, reads, writes = self.kernel_action(function, ctypes.string_at(*arguments))
        self.simulation.submit("launch", self.lane_of(stream), reads=reads, writes=writes, action=run)

    def max_blocks(self, function: FunctionHandle, threads: int, shared_bytes: int) -> int:
        return self.info.units * (_THREADS // threads)

    def cooperative_arguments(self, address: int, offsets: Sequence[int]) -> object:
        return address, max(offsets, default=0) + 8

    @_recorded
    def launch_cooperative(
        self,
        function: FunctionHandle,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: StreamHandle,
        arguments: tuple[int, int],
    ) -> None:
        most = self.max_blocks(function, block[0], shared_bytes)
        if grid[0] > most:
            raise DriverError(f"launch_cooperative failed: {grid[0]} blocks, and {most} are the most")
        run, reads, writes = self.kernel_action(function, ctypes.string_at(*arguments))
        self.simulation.submit("launch", self.lane_of(stream), reads=reads, writes=writes, action=run)

    def native_launch(self) -> NativeLaunch | None:
        return None

    # what is there

    def lane_of(self, stream: StreamHandle) -> Lane:
        if (lane := self._streams.get(stream)) is None:
            raise DriverError(f"there is no stream {stream:#x}: destroyed, or never made")
        return lane

    def event_of(self, event: EventHandle) -> _Event:
        if (found := self._events.get(event)) is None:
            raise DriverError(f"there is no event {event:#x}: destroyed, or never made")
        return found

    def _copy(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        """The host's end of a copy may be any memory of the process; the device's must still be there when it runs."""
        ends = [(address, nbytes) for address in (target, source) if self.memory.holds(address, nbytes)]
        if nbytes and not ends:
            raise DriverError(f"a copy from {source:#x} to {target:#x} touches no memory of this device")

        def run() -> None:
            for end in ends:
                self.memory.require(*end)
            ctypes.memmove(target, source, nbytes)

        lane = self.lane_of(stream)
        self.simulation.submit("copy", lane, reads=[(source, nbytes)], writes=[(target, nbytes)], action=run)


def _unused(base: int, used: Iterable[int]) -> int:
    """The first free number: drivers use the numbers of destroyed things again at once."""
    taken = set(used)
    return next(handle for handle in itertools.count(base, 16) if handle not in taken)
