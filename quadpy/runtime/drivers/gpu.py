"""The driver of a GPU, over a vendor's name table.

Nothing here depends on the vendor: the differences between HIP and CUDA are in the table.

The most frequent calls of a vendor's library go without the binding.  For most of them, a binding takes longer to convert arguments and results than the driver takes to run.  Machine
code passes numbers as they are: all as 64 bits, and the call reads those that it needs.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.core.importing import import_late
from quadpy.errors import DeviceError, NoDeviceError, QuadpyError
from quadpy.runtime.drivers.driver import (
    Address,
    AllocatorName,
    EventHandle,
    PinnedPointer,
    PlainPointer,
    PoolPointer,
    StreamHandle,
)
from quadpy.runtime.drivers.gpu_calls import address_of_function, direct
from quadpy.runtime.drivers.gpu_launches import GpuLaunches
from quadpy.runtime.drivers.graph_driver import (
    AllocWork,
    ConditionHandle,
    ExecHandle,
    GraphHandle,
    GraphMemory,
    Groups,
    NodeHandle,
    SemaphoreHandle,
    Work,
)

if TYPE_CHECKING:
    from quadpy.runtime.drivers.gpu_api import GpuApi
    from quadpy.runtime.drivers.gpu_calls import GpuCalls
    from quadpy.runtime.drivers.graph_api import GraphApi
    from quadpy.runtime.drivers.graph_driver import GraphDriver
    from quadpy.runtime.drivers.vendor_calls import Call


_NON_BLOCKING: Final = 1  # a stream without implicit order against the null stream
_DISABLE_TIMING: Final = 2


class GpuDriver(GpuLaunches):
    """A ``Driver`` for device ``ordinal`` of ``api``; NoDeviceError if there is no such device."""

    def __init__(self, api: GpuApi, ordinal: int = 0) -> None:
        super().__init__(api, ordinal)
        self.info, self.features = api.describe(ordinal)
        self.default_allocator: AllocatorName = api.default_allocator if "pool" in self.features else "cache"
        try:  # the first calls that the device itself must answer
            least, greatest = self.call(api.priority_range)
            if "pool" in self.features:
                self.call(api.keep_pool, ordinal)
        except DeviceError as error:
            raise NoDeviceError(f"{self.info.name} cannot be used: {error.message}", hint=error.hint) from error
        self._priorities = range(min(least, greatest), max(least, greatest) + 1)
        self._direct = DirectCalls(api, ordinal, ctypes.addressof(self._lost), self.call, self._done)

    @functools.cached_property
    def graphs(self) -> GraphDriver:
        """Graphs on this device."""
        return GpuGraphs(self, self._api.graphs())

    # streams

    def stream_create(self, priority: int) -> StreamHandle:
        return StreamHandle(int(self.call(self._api.stream_create, _NON_BLOCKING, self._clamped(priority))))

    @functools.cached_property
    def _groups(self) -> tuple[range, ...]:
        ends = list(itertools.accumulate(self.call(self._api.unit_groups, self.ordinal), initial=0))
        return tuple(itertools.starmap(range, itertools.pairwise(ends)))

    def unit_groups(self) -> Sequence[range]:
        return self._groups

    def stream_create_on(self, priority: int, groups: Sequence[int]) -> StreamHandle:
        call, units = self._api.stream_create_on, [self.unit_groups()[number] for number in groups]
        return StreamHandle(int(self.call(call, self.ordinal, _NON_BLOCKING, self._clamped(priority), groups, units)))

    def _clamped(self, priority: int) -> int:
        return min(max(priority, self._priorities[0]), self._priorities[-1])

    def stream_destroy(self, stream: StreamHandle) -> None:
        self.call(self._api.stream_destroy, stream)

    def stream_synchronize(self, stream: StreamHandle) -> None:
        if status := self._direct.stream_synchronize(stream):
            self._again_by_binding(status, self._api.stream_synchronize, stream)

    def stream_query(self, stream: StreamHandle) -> bool:
        if not (status := self._direct.stream_query(stream)):
            return True
        return self._not_ready(status, self._api.stream_query, stream)

    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        if status := self._direct.stream_wait(stream, event, 0):
            self._again_by_binding(status, self._api.stream_wait, stream, event, 0)

    def stream_device(self, stream: StreamHandle) -> int:
        return int(self.call(self._api.stream_device, stream))

    def synchronize(self) -> None:
        self.call(self._api.synchronize)

    # events

    def event_create(self, *, timing: bool) -> EventHandle:
        return EventHandle(int(self.call(self._api.event_create, 0 if timing else _DISABLE_TIMING)))

    def event_destroy(self, event: EventHandle) -> None:
        self.call(self._api.event_destroy, event)

    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        if status := self._direct.event_record(event, stream):
            self._again_by_binding(status, self._api.event_record, event, stream)

    def event_synchronize(self, event: EventHandle) -> None:
        if status := self._direct.event_synchronize(event):
            self._again_by_binding(status, self._api.event_synchronize, event)

    def event_query(self, event: EventHandle) -> bool:
        if not (status := self._direct.event_query(event)):
            return True
        return self._not_ready(status, self._api.event_query, event)

    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        return float(self.call(self._api.event_elapsed, start, end))

    # memory: a size of 0 never reaches the driver, which would refuse it

    def alloc(self, nbytes: int) -> PlainPointer:
        return PlainPointer(int(self.call(self._api.alloc, nbytes)) if nbytes else 0)

    def free(self, pointer: PlainPointer) -> None:
        if pointer:
            self.call(self._api.free, pointer)

    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer:
        if not nbytes:
            return PoolPointer(0)
        if (found := self._direct.alloc_async(nbytes, stream)) > 0:
            return PoolPointer(found)
        return PoolPointer(int(self._again_by_binding(-found, self._api.alloc_async, nbytes, stream)))

    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        if not pointer:
            return
        if status := self._direct.free_async(pointer, stream):
            self._again_by_binding(status, self._api.free_async, pointer, stream)

    def trim_pool(self) -> None:
        self.call(self._api.trim_pool, self.ordinal)

    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        return PinnedPointer(int(self.call(self._api.alloc_pinned, nbytes, 0)) if nbytes else 0)

    def free_pinned(self, pointer: PinnedPointer) -> None:
        if pointer:
            self.call(self._api.free_pinned, pointer)

    def memory_info(self) -> tuple[int, int]:
        free, total = self.call(self._api.memory_info)
        return free, total

    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if status := self._direct.copy_in(target, source, nbytes, stream):
            self._again_by_binding(status, self._api.copy_in, target, source, nbytes, stream)

    def copy_out(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if status := self._direct.copy_out(target, source, nbytes, stream):
            self._again_by_binding(status, self._api.copy_out, target, source, nbytes, stream)

    def copy_within(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if nbytes:
            self.call(self._api.copy_within, target, source, nbytes, stream)

    def fill(self, target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if status := self._direct.fill(target, value, nbytes, stream):
            self._again_by_binding(status, self._api.fill, target, value, nbytes, stream)

    def _not_ready(self, number: int, call: Call, handle: int) -> bool:
        """The result of a query whose status ``number`` is not success."""
        if number == self._direct.not_ready:
            return False
        self._refuse(number, call)
        return self._done(call, handle)


Ask: TypeAlias = Callable[..., int]


class DirectCalls:
    """Each call returns the number of the vendor's status, 0 for success; ``alloc_async`` the address, or the negative status.

    UNTRIED stands for the status of a call that was not made: the device is lost, or cannot be selected.  A call that the
    library lacks goes through the binding, by ``call`` and ``done``, which raise errors.
    """

    __slots__ = (
        "alloc_async", "copy_in", "copy_out", "event_query", "event_record", "event_synchronize", "fill", "free_async",
        "not_ready", "stream_query", "stream_synchronize", "stream_wait",
    )  # fmt: skip

    def __init__(
        self, api: GpuApi, ordinal: int, lost: int, call: Callable[..., Any], done: Callable[[Call, int], bool]
    ) -> None:
        """``lost`` is the address of the mark of a lost device."""
        find = _finder(api, ordinal, lost)
        self.not_ready = int(api.not_ready)  # type: ignore[call-overload]

        def asked(binding: Call) -> Ask:
            def ask(*arguments: int) -> int:
                call(binding, *arguments)
                return 0

            return ask

        def queried(binding: Call) -> Ask:
            return lambda handle: 0 if done(binding, handle) else self.not_ready

        def allocated(nbytes: int, stream: int) -> int:
            return int(call(api.alloc_async, nbytes, stream))

        self.stream_synchronize = find(api.stream_synchronize, 1) or asked(api.stream_synchronize)
        self.stream_query = find(api.stream_query, 1) or queried(api.stream_query)
        self.stream_wait = find(api.stream_wait, 3) or asked(api.stream_wait)
        self.event_record = find(api.event_record, 2) or asked(api.event_record)
        self.event_synchronize = find(api.event_synchronize, 1) or asked(api.event_synchronize)
        self.event_query = find(api.event_query, 1) or queried(api.event_query)
        self.alloc_async = find(api.alloc_async) or allocated
        self.free_async = find(api.free_async, 2) or asked(api.free_async)
        self.copy_in = find(api.copy_in, 4, api.copy_version) or asked(api.copy_in)
        self.copy_out = find(api.copy_out, 4, api.copy_version) or asked(api.copy_out)
        self.fill = find(api.fill, 4) or asked(api.fill)


def _finder(api: GpuApi, ordinal: int, lost: int) -> Callable[..., Ask | None]:
    """A function that looks up a call of the table in the vendor's library, by its name and ``version``, or returns None.

    The call takes ``count`` words; without a count, it allocates.  A call that is written in Python does more than the
    library's, and is not looked up.  On systems where no machine code can be made, it finds nothing.
    """
    symbol, selects = api.selection(ordinal)
    select = direct(api, symbol)
    if select is None or sys.implementation.name != "cpython":
        return lambda call, count=0, version="": None
    try:
        module = import_late("quadpy.runtime.cpu.native_calls")  # imports LLVM
        native = module.NativeCalls(lost, address_of_function(select), selects)
    except (QuadpyError, ImportError, OSError, RuntimeError):  # a system where no machine code can be made
        return lambda call, count=0, version="": None

    def find(call: Call, count: int = 0, version: str = "") -> Ask | None:
        found = None if isinstance(call, FunctionType) else direct(api, call.__name__ + version)
        if found is None:
            return None
        made: Ask = native.call(found, count) if count else native.alloc(found)
        return made

    return find


class GpuGraphs:
    """A ``GraphDriver`` for the device of ``driver``; it checks each status before it uses the values that come with it."""

    def __init__(self, driver: GpuCalls, api: GraphApi) -> None:
        self._call, self._attempt, self._ordinal = driver.call, driver.attempt, driver.ordinal
        self._api, self.features = api, api.features

    def graph_create(self) -> GraphHandle:
        return GraphHandle(int(self._call(self._api.create, 0)))

    def graph_destroy(self, graph: GraphHandle) -> None:
        self._call(self._api.destroy, graph)

    def add(self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: Work) -> NodeHandle:
        return NodeHandle(int(self._call(self._api.add[type(work)], graph, dependencies, work)))

    def add_alloc(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], work: AllocWork
    ) -> tuple[NodeHandle, Address]:
        node, pointer = self._call(self._api.add_alloc, self._ordinal, graph, dependencies, work)
        return NodeHandle(int(node)), int(pointer)

    def condition_create(self, graph: GraphHandle, groups: Groups = None) -> ConditionHandle:
        assert self._api.condition_create is not None
        return ConditionHandle(int(self._call(self._api.condition_create, graph, groups)))

    def add_loop(
        self, graph: GraphHandle, dependencies: Sequence[NodeHandle], condition: ConditionHandle, groups: Groups = None
    ) -> tuple[NodeHandle, GraphHandle]:
        assert self._api.add_loop is not None
        node, body = self._call(self._api.add_loop, graph, dependencies, condition, groups)
        return NodeHandle(int(node)), GraphHandle(int(body))

    def nodes(self, graph: GraphHandle) -> list[NodeHandle]:
        return [NodeHandle(node) for node in self._call(self._api.nodes, graph)]

    def edges(self, graph: GraphHandle) -> list[tuple[NodeHandle, NodeHandle]]:
        return [(NodeHandle(before), NodeHandle(after)) for before, after in self._call(self._api.edges, graph)]

    def instantiate(self, graph: GraphHandle, *, auto_free: bool = False, priorities: bool = False) -> ExecHandle:
        return ExecHandle(int(self._call(self._api.instantiate, graph, auto_free, priorities)))

    def exec_destroy(self, exec_: ExecHandle) -> None:
        self._call(self._api.exec_destroy, exec_)

    def upload(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        self._call(self._api.upload, exec_, stream)

    def launch(self, exec_: ExecHandle, stream: StreamHandle) -> None:
        self._call(self._api.launch, exec_, stream)

    def update(self, exec_: ExecHandle, node: NodeHandle, work: Work) -> bool:
        change = self._api.change.get(type(work))
        return change is not None and self._attempt(self._api.refused, change, exec_, node, work)

    def enable(self, exec_: ExecHandle, node: NodeHandle, *, enabled: bool) -> None:
        self._call(self._api.enable, exec_, node, int(enabled))

    def memory(self) -> GraphMemory:
        return GraphMemory(*self._call(self._api.memory, self._ordinal))

    def trim_memory(self) -> None:
        self._call(self._api.trim, self._ordinal)

    def semaphore_import(self, descriptor: int, kind: int) -> SemaphoreHandle:
        return SemaphoreHandle(int(self._call(self._api.semaphore_import, descriptor, kind)))

    def semaphore_destroy(self, semaphore: SemaphoreHandle) -> None:
        self._call(self._api.semaphore_destroy, semaphore)
