"""What quadpy asks of a vendor's runtime.  Owns: the Driver protocol, its handles and features.

A handle is a number of a type of its own, so that a stream cannot pass for an event, nor memory of one allocator for
that of another.  Handle 0 is the default stream; address 0 is memory of size 0.  Imports: the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NewType, Protocol

__all__ = [
    "DEFAULT_STREAM",
    "Address",
    "AllocatorName",
    "DeviceInfo",
    "Driver",
    "EventHandle",
    "Feature",
    "FunctionHandle",
    "ModuleHandle",
    "NativeLaunch",
    "PinnedPointer",
    "PlainPointer",
    "PoolPointer",
    "StreamHandle",
]

StreamHandle = NewType("StreamHandle", int)
EventHandle = NewType("EventHandle", int)
ModuleHandle = NewType("ModuleHandle", int)
FunctionHandle = NewType("FunctionHandle", int)

Address = int
"""Memory that a copy or fill may touch, whoever allocated it."""
PlainPointer = NewType("PlainPointer", int)
"""From ``alloc``; goes back through ``free`` and nothing else."""
PoolPointer = NewType("PoolPointer", int)
"""From ``alloc_async``; goes back through ``free_async`` and nothing else: ``hipFree`` would not wait for its users."""
PinnedPointer = NewType("PinnedPointer", int)
"""From ``alloc_pinned``; goes back through ``free_pinned``."""

DEFAULT_STREAM: Final = StreamHandle(0)

AllocatorName = Literal["cache", "pool"]
"""quadpy's own cache over ``alloc``, or the driver's pool through ``alloc_async``."""

Feature = Literal["host", "handles", "timing", "pool", "modules", "stream-device", "cooperative", "cooperative-apart"]
"""``host``           work runs at once, in memory of the host: a copy needs no staging
``handles``        streams and events are things of the driver; without it every handle is 0
``timing``         events measure time on the device
``pool``           ``alloc_async`` and ``free_async``
``modules``        code objects can be loaded and launched
``cooperative``    ``launch_cooperative``: launches whose blocks may wait for each other
``cooperative-apart``  they run on a queue of their own: an event recorded right behind one does not wait for it
``stream-device``  ``stream_device`` knows the device of a stream that another library made
"""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device: its product name, its full architecture (the key of code for it) and its memory in bytes.

    ``units`` are what blocks are spread over: multiprocessors, CUs, WGPs of RDNA; 0 where nobody knows.
    """

    name: str
    arch: str
    total_memory: int
    units: int = 0


@dataclass(frozen=True, slots=True)
class NativeLaunch:
    """What machine code needs to launch without the driver's ``launch``: addresses, in this process.

    lost     of an ``int`` that is not 0 when the device is lost and nothing may be called any more
    select   of ``int select(selects)``, which makes the device the calling thread's
    launch   of ``int launch(function, grid x, y, z, block x, y, z, shared bytes, stream, NULL, extra words)``
    refused  raises what a status of ``launch`` means, called with it and the arguments of ``Driver.launch``; where
             that is no more than that the thread has lost its device, it launches instead
    """

    lost: int
    select: int
    selects: int
    launch: int
    refused: Callable[..., None] = field(repr=False, compare=False)


class Driver(Protocol):
    """One vendor API, one device.  Safe from any thread; selects its device itself.

    It checks no handle: that is the StreamManager's work.  It raises only DriverError, with the call, the error and the
    likely cause; OutOfDeviceMemory; and NoDeviceError when it is made.  A size of 0 is legal everywhere.
    """

    name: str
    ordinal: int
    features: frozenset[Feature]
    info: DeviceInfo
    default_allocator: AllocatorName

    # streams

    def stream_create(self, priority: int) -> StreamHandle:
        """A stream that waits for no other by itself; a lower ``priority`` goes first, one out of range is clamped."""

    def stream_destroy(self, stream: StreamHandle) -> None:
        """Give a stream back; work on it still completes."""

    def stream_synchronize(self, stream: StreamHandle) -> None: ...

    def stream_query(self, stream: StreamHandle) -> bool:
        """Whether all work on ``stream`` is complete."""

    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        """Order later work on ``stream`` after the last record of ``event``; the host does not wait."""

    def stream_device(self, stream: StreamHandle) -> int:
        """The ordinal of the device that ``stream`` belongs to; DriverError where there is no such stream."""

    def synchronize(self) -> None:
        """Wait for all work on the device."""

    # events

    def event_create(self, *, timing: bool) -> EventHandle: ...

    def event_destroy(self, event: EventHandle) -> None:
        """Give an event back; streams that wait for it stay ordered."""

    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        """Put ``event`` behind the work on ``stream``; waits that were made before keep the place they saw."""

    def event_synchronize(self, event: EventHandle) -> None: ...

    def event_query(self, event: EventHandle) -> bool:
        """Whether the last record of ``event`` is complete; True where there is none."""

    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        """Milliseconds between two complete records."""

    # memory

    def alloc(self, nbytes: int) -> PlainPointer: ...

    def free(self, pointer: PlainPointer) -> None:
        """May wait for the whole device."""

    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer: ...

    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        """Legal only when every use, on any stream, is ordered before it on ``stream``."""

    def trim_pool(self) -> None:
        """Return pool memory that nobody uses to the system."""

    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        """Host memory that copies can be asynchronous with."""

    def free_pinned(self, pointer: PinnedPointer) -> None: ...

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the device."""

    # work

    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        """Host to device; ``source`` is pinned and stays as it is until the copy is complete."""

    def copy_out(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        """Device to host; ``target`` is pinned."""

    def copy_within(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        """Device to device; the ranges do not overlap."""

    def fill(self, target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
        """Set ``nbytes`` bytes to ``value``, 0 to 255."""

    # code

    def module_load(self, image: bytes) -> ModuleHandle: ...

    def module_function(self, module: ModuleHandle, name: str) -> FunctionHandle: ...

    def module_unload(self, module: ModuleHandle) -> None:
        """Waits for nothing: the caller has waited for every launch of the module's functions."""

    def launch_arguments(self, address: int, nbytes: int) -> object:
        """What ``launch`` takes for the argument block of ``nbytes`` bytes at ``address``; serves many launches.

        The block stays where it is as long as this object is used, and may be overwritten when a launch has returned.
        """

    def launch(
        self,
        function: FunctionHandle,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: StreamHandle,
        arguments: object,
    ) -> None:
        """Run ``grid`` blocks of ``block`` threads, none of them 0."""

    def max_blocks(self, function: FunctionHandle, threads: int, shared_bytes: int) -> int:
        """How many blocks of ``threads`` threads the device can run at once, where it runs nothing else."""

    def cooperative_arguments(self, address: int, offsets: Sequence[int]) -> object:
        """As ``launch_arguments``, for ``launch_cooperative``: ``offsets`` are those of the arguments in the block."""

    def launch_cooperative(
        self,
        function: FunctionHandle,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: StreamHandle,
        arguments: object,
    ) -> None:
        """As ``launch``, with all blocks resident at once; refused where they are more than ``max_blocks``."""

    def native_launch(self) -> NativeLaunch | None:
        """The same for machine code, where ``launch_arguments`` are the address of the ``extra`` words; or None."""
