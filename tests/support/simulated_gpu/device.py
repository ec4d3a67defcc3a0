"""The state of a simulated device: its memory, streams, events and kernels, and the log of its calls."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from quadpy.errors import DriverError, OutOfDeviceMemory
from quadpy.runtime.drivers.driver import DEFAULT_STREAM, EventHandle, FunctionHandle, StreamHandle
from quadpy.runtime.memory.host_memory import HOST, Buffer
from simulated_gpu.simulation import Op, Queue, Range, Simulation

__all__ = ["Call", "Event", "RecordedKernel", "SimulatedDevice", "numbered"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the driver: the verb and its arguments."""

    verb: str
    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class RecordedKernel:
    """A kernel in Python: ``run(block)`` does its work, ``touches(block)`` returns the ranges that it reads and writes."""

    run: Callable[[bytes], None]
    touches: Callable[[bytes], tuple[Iterable[Range], Iterable[Range]]] = lambda _block: ((), ())


@dataclass(slots=True, eq=False)
class Event:
    """An event and its last record."""

    timing: bool
    last: Op | None = None


class SimulatedDevice:
    """The state that the driver and its graphs share.

    calls      every call so far; empty without ``history``
    failures   verb -> the error that its next call raises
    kernels    name -> the kernel of that name, in any module
    """

    def __init__(self, capacity: int, *, history: bool, beside: SimulatedDevice | None) -> None:
        """``beside`` is another device of the same process, whose events this device's streams can wait for."""
        self.lock: contextlib.AbstractContextManager[object] = beside.lock if beside else threading.RLock()
        self.history = history
        self.calls: list[Call] = []
        self.failures: dict[str, Exception] = {}
        self.kernels: dict[str, RecordedKernel] = {}
        self.simulation: Simulation = beside.simulation if beside else Simulation(history=history)
        self.memory = SimulatedMemory(capacity)
        self._streams: dict[int, Queue] = {DEFAULT_STREAM: self.simulation.queue()}
        self._events: dict[int, Event] = beside._events if beside else {}
        self._functions: list[RecordedKernel] = []

    def log(self, verb: str, *arguments: object) -> None:
        """Log a call, and raise its failure if the test set one; the caller holds the lock."""
        if self.history:
            self.calls.append(Call(verb, arguments))
        if (error := self.failures.pop(verb, None)) is not None:
            raise error

    @contextlib.contextmanager
    def recorded(self, verb: str, *arguments: object) -> Iterator[None]:
        """Log a call, and admit one thread at a time."""
        with self.lock:
            self.log(verb, *arguments)
            yield

    def kernel_action(
        self, function: FunctionHandle, arguments: bytes
    ) -> tuple[Callable[[], None], list[Range], list[Range]]:
        """The work of a launch, what it reads, and what it writes."""
        kernel = self._functions[function - 1]
        reads, writes = map(list, kernel.touches(arguments))

        def run() -> None:
            for touched in (*reads, *writes):
                self.memory.require(*touched)
            kernel.run(arguments)

        return run, reads, writes

    def queue_of(self, stream: StreamHandle) -> Queue:
        if (queue := self._streams.get(stream)) is None:
            raise DriverError(f"there is no stream {stream:#x}: it was destroyed, or never created")
        return queue

    def event_of(self, event: EventHandle) -> Event:
        if (found := self._events.get(event)) is None:
            raise DriverError(f"there is no event {event:#x}: it was destroyed, or never created")
        return found


def numbered(base: int, kept: dict[int, T], thing: T) -> int:
    """The first free number, under which ``kept`` has ``thing`` now: drivers reuse those of destroyed objects at once.

    One step finds it and takes it, since the collector may run a finalizer here that makes an object, too.
    """
    return next(handle for handle in itertools.count(base, 16) if kept.setdefault(handle, thing) is thing)


class SimulatedMemory:
    """Blocks of at most ``capacity`` bytes in total; access outside of them is an error, not a crash."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used = capacity, 0
        self._blocks: dict[int, Buffer] = {}
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def allocate(self, nbytes: int) -> int:
        if not nbytes:
            return 0
        if self.used + nbytes > self.capacity:
            raise OutOfDeviceMemory(f"alloc of {nbytes} bytes failed: {self.used} of {self.capacity} are in use")
        block = HOST.allocate(nbytes)
        self._blocks[block.pointer] = block
        bisect.insort(self._starts, block.pointer)
        self.used += nbytes
        return block.pointer

    def size(self, pointer: int) -> int:
        """Bytes of the block that begins at ``pointer``."""
        if (block := self._blocks.get(pointer)) is None:
            raise DriverError(f"{pointer:#x} is not memory of this device: it was freed, or never allocated")
        return block.nbytes

    def release(self, pointer: int) -> None:
        if pointer:
            nbytes = self.size(pointer)  # before ``used`` is read: see ``numbered``
            self.used -= nbytes
            del self._blocks[pointer]
            self._starts.remove(pointer)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether one block contains all the bytes."""
        position = bisect.bisect_right(self._starts, address) - 1
        if position < 0:
            return False
        start = self._starts[position]
        return address + nbytes <= start + self._blocks[start].nbytes

    def require(self, address: int, nbytes: int) -> None:
        if nbytes and not self.holds(address, nbytes):
            raise DriverError(
                f"work accessed {nbytes} bytes at {address:#x}, which are not allocated: a use after free"
            )
