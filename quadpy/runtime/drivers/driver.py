"""The Driver protocol: what quadpy needs from a vendor's runtime.

Each kind of handle has its own type, so a stream cannot be passed as an event, nor one allocator's memory to another.
Handle 0 is the default stream; address 0 is memory of size 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NewType, Protocol, TypeAlias

StreamHandle = NewType("StreamHandle", int)
EventHandle = NewType("EventHandle", int)
ModuleHandle = NewType("ModuleHandle", int)
FunctionHandle = NewType("FunctionHandle", int)

Dim3: TypeAlias = tuple[int, int, int]
"""Extents of a grid or a block: x, y, z."""

Address = int
"""Memory that a copy or fill may access, from any allocator."""
PlainPointer = NewType("PlainPointer", int)
"""From ``alloc``; only ``free`` takes it."""
PoolPointer = NewType("PoolPointer", int)
"""From ``alloc_async``; only ``free_async`` takes it: ``hipFree`` would not wait for its users."""
PinnedPointer = NewType("PinnedPointer", int)
"""From ``alloc_pinned``; only ``free_pinned`` takes it."""

DEFAULT_STREAM: Final = StreamHandle(0)

AllocatorName = Literal["cache", "pool"]
"""quadpy's own cache over ``alloc``, or the driver's pool through ``alloc_async``."""

Feature = Literal[
    "host", "handles", "timing", "pool", "modules", "stream-device", "cooperative", "cooperative-apart", "mapped", "parts",
]  # fmt: skip
"""``host``           work runs at once, in host memory: copies need no staging
``handles``        streams and events are the driver's; without it, every handle is 0
``timing``         events measure time on the device
``pool``           has ``alloc_async`` and ``free_async``
``modules``        code objects can be loaded and launched
``cooperative``    has ``launch_cooperative``: launches whose blocks may wait for each other
``cooperative-apart``  such launches run on a separate queue: an event recorded right after one does not wait for it
``mapped``         kernels can write pinned memory at the host's address
``stream-device``  ``stream_device`` knows the device of another library's stream
``parts``          a stream can have a part of the compute units: ``unit_groups`` and ``stream_create_on``
"""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device: its product name, its full architecture (the target of its code) and its memory in bytes.

    ``units`` is the number of multiprocessors, CUs or RDNA's WGPs; 0 if it is unknown.
    ``ticks`` is the frequency, in Hz, of the counter that kernels can read; 0 if it is unknown.
    ``library`` is the vendor's library and its version.
    """

    name: str
    arch: str
    total_memory: int
    units: int = 0
    ticks: int = 0
    library: str = ""


@dataclass(frozen=True, slots=True)
class NativeLaunch:
    """The addresses that machine code needs to launch without the driver's ``launch``.

    lost     of an ``int`` that is not 0 once the device is lost, when nothing may be called any more
    select   of ``int select(selects)``, which selects the device for the calling thread
    launch   of ``int launch(function, grid x, y, z, block x, y, z, shared bytes, stream, NULL, extra words)``
    refused  takes a status of ``launch`` and the arguments of ``Driver.launch``, and raises the error; if only the
    thread's device selection had changed, it launches instead
    """

    lost: int
    select: int
    selects: int
    launch: int
    refused: Callable[..., None] = field(repr=False, compare=False)


class Driver(Protocol):
    """One vendor API on one device.  Safe from any thread; selects its device itself.

    It does not check handles; the StreamManager does.  It raises only DriverError, with the call, the error and the
    likely cause; OutOfDeviceMemory; and NoDeviceError on creation.  A size of 0 is legal everywhere.
    """

    name: str
    ordinal: int
    features: frozenset[Feature]
    info: DeviceInfo
    default_allocator: AllocatorName

    # streams

    def stream_create(self, priority: int) -> StreamHandle:
        """Create a stream without implicit order.  Lower ``priority`` runs first; values out of range are clamped."""

    def unit_groups(self) -> Sequence[range]:
        """The smallest parts of the device that a stream can have: the numbers of their units, each unit in one group."""

    def stream_create_on(self, priority: int, groups: Sequence[int]) -> StreamHandle:
        """Like ``stream_create``, for a stream whose kernels run only on the units of ``groups``, numbers in ascending order.

        HIP gives such a stream the normal priority, and orders it with the default stream.
        """

    def stream_destroy(self, stream: StreamHandle) -> None:
        """Destroy a stream; work on it still completes."""

    def stream_synchronize(self, stream: StreamHandle) -> None: ...

    def stream_query(self, stream: StreamHandle) -> bool:
        """Whether all work on ``stream`` is complete."""

    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        """Order later work on ``stream`` after the last record of ``event``; the host does not wait."""

    def stream_device(self, stream: StreamHandle) -> int:
        """The ordinal of the device that ``stream`` belongs to; DriverError if there is no such stream."""

    def synchronize(self) -> None:
        """Wait for all work on the device."""

    # events

    def event_create(self, *, timing: bool) -> EventHandle: ...

    def event_destroy(self, event: EventHandle) -> None:
        """Destroy an event; streams that wait for it stay ordered."""

    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        """Record ``event`` after the work on ``stream``; earlier waits keep the record that they saw."""

    def event_synchronize(self, event: EventHandle) -> None: ...

    def event_query(self, event: EventHandle) -> bool:
        """Whether the last record of ``event`` is complete; True if there is none."""

    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        """Milliseconds between two complete records."""

    # memory

    def alloc(self, nbytes: int) -> PlainPointer: ...

    def free(self, pointer: PlainPointer) -> None:
        """May wait for the whole device."""

    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer: ...

    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        """Legal only if every use, on any stream, is ordered before it on ``stream``."""

    def trim_pool(self) -> None:
        """Return unused pool memory to the system."""

    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        """Allocate host memory for asynchronous copies."""

    def free_pinned(self, pointer: PinnedPointer) -> None: ...

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the device."""

    # work

    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        """Host to device; ``source`` is pinned and unchanged until the copy is complete."""

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
        """Does not wait: the caller has waited for every launch of the module's functions."""

    def launch_arguments(self, address: int, nbytes: int) -> object:
        """The form in which ``launch`` takes the argument block of ``nbytes`` bytes at ``address``, for many launches.

        The block must stay where it is while this object is used, and may be overwritten once a launch has returned.
        """

    def launch(
        self, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle, arguments: object
    ) -> None:
        """Launch ``grid`` blocks of ``block`` threads; no extent is 0; ``shared`` is the bytes of shared memory."""

    def max_blocks(self, function: FunctionHandle, threads: int, shared: int) -> int:
        """How many blocks of ``threads`` threads an otherwise idle device can run at once."""

    def cooperative_arguments(self, address: int, offsets: Sequence[int]) -> object:
        """Like ``launch_arguments``, for ``launch_cooperative``; ``offsets`` are the argument offsets in the block."""

    def launch_cooperative(
        self, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle, arguments: object
    ) -> None:
        """Like ``launch``, with all blocks resident at once; refused if there are more than ``max_blocks``."""

    def native_launch(self) -> NativeLaunch | None:
        """The addresses for launches by machine code, whose arguments are the ``extra`` words; None if unsupported."""
