"""The Driver over a vendor's name table.  Owns: GpuDriver.  Imports: errors, the driver protocol, the tables' shape.

There is no branch on the vendor here: what differs between HIP and CUDA is in the table.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from quadpy.errors import DeviceError, DriverError, NoDeviceError, OutOfDeviceMemory
from quadpy.runtime.drivers.driver import (
    Address,
    AllocatorName,
    EventHandle,
    FunctionHandle,
    ModuleHandle,
    NativeLaunch,
    PinnedPointer,
    PlainPointer,
    PoolPointer,
    StreamHandle,
)
from quadpy.runtime.drivers.gpu_api import Call, GpuApi
from quadpy.runtime.drivers.gpu_calls import QuickCalls
from quadpy.runtime.drivers.gpu_graphs import GpuGraphs
from quadpy.runtime.drivers.graph_driver import GraphDriver

__all__ = ["GpuDriver"]

_NON_BLOCKING: Final = 1  # a stream that the null stream does not wait for, and that does not wait for it
_DISABLE_TIMING: Final = 2
_Address: Final = ctypes.c_uint64
_MOST_POINTERS: Final = 256
"""Streams whose pointers are kept for the next launch."""


class _Selected(threading.local):
    """The device that this thread selected last, by API: a new thread has selected none."""

    def __init__(self) -> None:
        self.device: dict[str, int] = {}


_selected: Final = _Selected()


class _Ready(threading.local):
    """Whether this thread has selected a driver's device, and nothing else selects another."""

    selected = False


class GpuDriver:
    """A ``Driver`` for device ``ordinal`` of ``api``; NoDeviceError where there is none."""

    def __init__(self, api: GpuApi, ordinal: int = 0) -> None:
        self.name, self.ordinal, self._api = api.name, ordinal, api
        self._fault: DriverError | None = None
        self._ready = _Ready()
        (count,) = self._answer(api.device_count)
        if not 0 <= ordinal < count:
            devices = "1 device, 0" if count == 1 else f"{count} devices, 0 to {count - 1}"
            raise NoDeviceError(f"there is no {api.name} device {ordinal}: this process sees {devices}")
        # Another library may select a device between two calls of ours; where there is one device, it cannot.
        self._alone = count == 1
        self.info, self.features = api.describe(ordinal)
        self.default_allocator: AllocatorName = api.default_allocator if "pool" in self.features else "cache"
        try:  # the first calls that the device itself must answer
            least, greatest = self._call(api.priority_range)
            if "pool" in self.features:
                self._call(api.keep_pool, ordinal)
        except DeviceError as error:
            raise NoDeviceError(f"{self.info.name} cannot be used: {error.message}", hint=error.hint) from error
        self._priorities = range(min(least, greatest), max(least, greatest) + 1)
        self._lost = ctypes.c_int(0)
        self._direct = _direct(api, api.launch_symbol)
        self._cooperative = _direct(api, api.cooperative_symbol)
        self._quick = QuickCalls(api, self._call, self._done)
        self._functions: dict[int, ctypes.c_void_p] = {}
        self._streams: dict[int, ctypes.c_void_p] = {}

    # calls

    def _call(self, call: Call, *arguments: object) -> Any:
        """The value of ``call`` on this device: ``None``, one, or a tuple of several."""
        if not self._ready.selected:
            self._select()
        values = self._answer(call, *arguments)
        return values[0] if len(values) == 1 else values

    call = _call
    """For the parts of this driver that stand in other modules."""

    def attempt(self, refused: frozenset[object], call: Call, *arguments: object) -> bool:
        """Whether ``call`` was done; False for a status of ``refused``."""
        self._select()
        status, _ = self._ask(call, *arguments)
        if status != self._api.ok and status not in refused:
            raise self._error(call, status)
        return bool(status == self._api.ok)

    @functools.cached_property
    def graphs(self) -> GraphDriver:
        """Graphs on this device."""
        return GpuGraphs(self, self._api.graphs())

    def _select(self) -> None:
        if not (self._alone and _selected.device.get(self.name) == self.ordinal):
            self._answer(self._api.select, self.ordinal)
            _selected.device[self.name] = self.ordinal
        self._ready.selected = self._alone

    def _prepare(self) -> None:
        """What comes before a quick call: the device is there, and the thread's."""
        self._check_fault()
        self._select()

    def _answer(self, call: Call, *arguments: object) -> Sequence[Any]:
        """What ``call`` answers after its status, which is looked at first: beside an error, values are garbage."""
        if self._fault is not None:
            self._check_fault()
        try:
            status, *values = call(*arguments)
        except (RuntimeError, ValueError) as error:
            raise _unanswered(call, error) from error
        if status != self._api.ok:
            status, values = self._again((status, values), call, *arguments)
            if status != self._api.ok:
                raise self._error(call, status)
        return values

    def _done(self, call: Call, handle: int) -> bool:
        """What a query says: complete, or not ready, which is no error."""
        self._select()
        status, _ = self._ask(call, handle)
        if status not in (self._api.ok, self._api.not_ready):
            raise self._error(call, status)
        return bool(status == self._api.ok)

    def _ask(self, call: Call, *arguments: object) -> tuple[Any, list[Any]]:
        """The status and the values of ``call``, whatever they are."""
        self._check_fault()
        reply = _reply(call, *arguments)
        return reply if reply[0] == self._api.ok else self._again(reply, call, *arguments)

    def _again(self, reply: tuple[Any, list[Any]], call: Call, *arguments: object) -> tuple[Any, list[Any]]:
        """``reply``, or where it says that the thread had lost its device, what ``call`` answers after a selection."""
        if reply[0] not in self._api.deselected:
            return reply
        _reply(self._api.select, self.ordinal)
        return _reply(call, *arguments)

    def _check_fault(self) -> None:
        """DriverError where the device is lost, with the first fault as its cause."""
        if (fault := self._fault) is not None:
            raise DriverError(
                f"device {self.ordinal} of {self.name} is lost since an earlier fault: {fault.message}",
                hint="a GPU does not recover within a process: start the program again",
                call=fault.call, name=fault.name, code=fault.code,
            ) from fault  # fmt: skip

    def _error(self, call: Call, status: Any, said: str = "") -> DriverError | OutOfDeviceMemory:
        """What to raise for ``status``; ``said`` is the vendor's own explanation.  A fault loses the device."""
        text = f"{_name(call)} failed: {status.name} ({int(status)})" + (f": {said}" if said else "")
        if status == self._api.out_of_memory:
            return OutOfDeviceMemory(text)
        hint = self._api.causes.get(status.name, "")
        error = DriverError(text, hint=hint, call=_name(call), name=status.name, code=int(status))
        launches = (self._api.launch, self._api.launch_cooperative)
        refused = call in launches and status in self._api.refusals
        if status in self._api.fatal and not refused:
            self._fault, self._lost.value = error, 1
        return error

    # streams

    def stream_create(self, priority: int) -> StreamHandle:
        clamped = min(max(priority, self._priorities[0]), self._priorities[-1])
        return StreamHandle(int(self._call(self._api.stream_create, _NON_BLOCKING, clamped)))

    def stream_destroy(self, stream: StreamHandle) -> None:
        self._call(self._api.stream_destroy, stream)

    def stream_synchronize(self, stream: StreamHandle) -> None:
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.stream_synchronize(stream):
            self._again_by_binding(status, self._api.stream_synchronize, stream)

    def stream_query(self, stream: StreamHandle) -> bool:
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if not (status := self._quick.stream_query(stream)):
            return True
        return self._not_ready(status, self._api.stream_query, stream)

    def stream_wait(self, stream: StreamHandle, event: EventHandle) -> None:
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.stream_wait(stream, event, 0):
            self._again_by_binding(status, self._api.stream_wait, stream, event, 0)

    def stream_device(self, stream: StreamHandle) -> int:
        return int(self._call(self._api.stream_device, stream))

    def synchronize(self) -> None:
        self._call(self._api.synchronize)

    # events

    def event_create(self, *, timing: bool) -> EventHandle:
        return EventHandle(int(self._call(self._api.event_create, 0 if timing else _DISABLE_TIMING)))

    def event_destroy(self, event: EventHandle) -> None:
        self._call(self._api.event_destroy, event)

    def event_record(self, event: EventHandle, stream: StreamHandle) -> None:
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.event_record(event, stream):
            self._again_by_binding(status, self._api.event_record, event, stream)

    def event_synchronize(self, event: EventHandle) -> None:
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.event_synchronize(event):
            self._again_by_binding(status, self._api.event_synchronize, event)

    def event_query(self, event: EventHandle) -> bool:
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if not (status := self._quick.event_query(event)):
            return True
        return self._not_ready(status, self._api.event_query, event)

    def event_elapsed(self, start: EventHandle, end: EventHandle) -> float:
        return float(self._call(self._api.event_elapsed, start, end))

    # memory: a size of 0 never reaches the driver, which gives no address for it and refuses to fill it

    def alloc(self, nbytes: int) -> PlainPointer:
        return PlainPointer(int(self._call(self._api.alloc, nbytes)) if nbytes else 0)

    def free(self, pointer: PlainPointer) -> None:
        if pointer:
            self._call(self._api.free, pointer)

    def alloc_async(self, nbytes: int, stream: StreamHandle) -> PoolPointer:
        if not nbytes:
            return PoolPointer(0)
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        found: Any = _Address()
        if status := self._quick.alloc_async(found, nbytes, stream):
            return PoolPointer(int(self._again_by_binding(status, self._api.alloc_async, nbytes, stream)))
        pointer: PoolPointer = found.value
        return pointer

    def free_async(self, pointer: PoolPointer, stream: StreamHandle) -> None:
        if not pointer:
            return
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.free_async(pointer, stream):
            self._again_by_binding(status, self._api.free_async, pointer, stream)

    def trim_pool(self) -> None:
        self._call(self._api.trim_pool, self.ordinal)

    def alloc_pinned(self, nbytes: int) -> PinnedPointer:
        return PinnedPointer(int(self._call(self._api.alloc_pinned, nbytes, 0)) if nbytes else 0)

    def free_pinned(self, pointer: PinnedPointer) -> None:
        if pointer:
            self._call(self._api.free_pinned, pointer)

    def memory_info(self) -> tuple[int, int]:
        free, total = self._call(self._api.memory_info)
        return free, total

    def copy_in(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.copy_in(target, source, nbytes, stream):
            self._again_by_binding(status, self._api.copy_in, target, source, nbytes, stream)

    def copy_out(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.copy_out(target, source, nbytes, stream):
            self._again_by_binding(status, self._api.copy_out, target, source, nbytes, stream)

    def copy_within(self, target: Address, source: Address, nbytes: int, stream: StreamHandle) -> None:
        if nbytes:
            self._call(self._api.copy_within, target, source, nbytes, stream)

    def fill(self, target: Address, value: int, nbytes: int, stream: StreamHandle) -> None:
        if not nbytes:
            return
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        if status := self._quick.fill(target, value, nbytes, stream):
            self._again_by_binding(status, self._api.fill, target, value, nbytes, stream)

    # code

    def module_load(self, image: bytes) -> ModuleHandle:
        self._select()
        load = self._api.module_load
        status, (*handle, said) = self._ask(load, image)
        if status != self._api.ok:
            raise self._error(load, status, said)
        return ModuleHandle(int(handle[0]))

    def module_function(self, module: ModuleHandle, name: str) -> FunctionHandle:
        function = FunctionHandle(int(self._call(self._api.module_function, module, name.encode())))
        if self._direct is not None:
            self._functions[function] = ctypes.c_void_p(function)
        return function

    def module_unload(self, module: ModuleHandle) -> None:
        self._call(self._api.module_unload, module)

    def launch_arguments(self, address: int, nbytes: int) -> object:
        if not nbytes:
            return 0
        block, size, end = self._api.launch_markers
        extent = ctypes.c_size_t(nbytes)
        words = (ctypes.c_void_p * 5)(block, address, size, ctypes.addressof(extent), end)
        found = _Words(ctypes.addressof(words))
        found.memory, found.pointer = (words, extent), ctypes.c_void_p(found)
        return found

    def launch(
        self,
        function: FunctionHandle,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: StreamHandle,
        arguments: object,
    ) -> None:
        """Without the binding where the library can be asked directly: that takes less than half of the time.

        Numbers go as C's int, by which ctypes passes them quickest, and pointers as objects that are made once.
        """
        if (called := self._functions.get(function)) is None or self._direct is None:
            self._call(self._api.launch, function, *grid, *block, shared_bytes, stream, None, arguments)
            return
        if self._fault is not None or not self._ready.selected:
            self._check_fault()
            self._select()
        on = (self._streams.get(stream) or self._stream_pointer(stream)) if stream else None
        extra = arguments.pointer if isinstance(arguments, _Words) else None
        status = self._direct(called, *grid, *block, shared_bytes, on, None, extra)
        if status:
            self._refused(status, function, *grid, *block, shared_bytes, stream, None, arguments)

    def max_blocks(self, function: FunctionHandle, threads: int, shared_bytes: int) -> int:
        return self.info.units * int(self._call(self._api.blocks_at_once, function, threads, shared_bytes))

    def cooperative_arguments(self, address: int, offsets: Sequence[int]) -> object:
        """Their addresses, one by one: HIP takes no block here."""
        words = (ctypes.c_void_p * max(len(offsets), 1))(*(address + offset for offset in offsets))
        found = _Words(ctypes.addressof(words))
        found.memory, found.pointer = (words,), ctypes.c_void_p(found)
        return found

    def launch_cooperative(
        self,
        function: FunctionHandle,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream: StreamHandle,
        arguments: object,
    ) -> None:
        call, called = self._api.launch_cooperative, self._functions.get(function)
        if called is None or self._cooperative is None or not isinstance(arguments, _Words):
            self._call(call, function, *grid, *block, shared_bytes, stream, arguments)
            return
        if self._fault is not None or not self._ready.selected:
            self._check_fault()
            self._select()
        on = (self._streams.get(stream) or self._stream_pointer(stream)) if stream else None
        if status := self._cooperative(called, *grid, *block, shared_bytes, on, arguments.pointer):
            self._again_by_binding(status, call, function, *grid, *block, shared_bytes, stream, arguments)

    def native_launch(self) -> NativeLaunch | None:
        self._select()
        symbol, which = self._api.selection(self.ordinal)
        select = _direct(self._api, symbol)
        if self._direct is None or select is None:
            return None
        lost = ctypes.addressof(self._lost)
        return NativeLaunch(lost, _address(select), which, _address(self._direct), self._launch_refused)

    def _launch_refused(self, number: int, *arguments: Any) -> None:
        """As ``_refused``, with the arguments of ``launch``."""
        function, grid, block, shared_bytes, stream, extra = arguments
        self._refused(number, function, *grid, *block, shared_bytes, stream, None, extra)

    def _stream_pointer(self, stream: StreamHandle) -> ctypes.c_void_p:
        if len(self._streams) >= _MOST_POINTERS:
            self._streams.clear()
        found = self._streams[stream] = ctypes.c_void_p(stream)
        return found

    def _refused(self, number: int, *arguments: object) -> None:
        """Raise what ``number`` means for a launch; where the thread had lost its device, launch once more."""
        self._again_by_binding(number, self._api.launch, *arguments)

    def _again_by_binding(self, number: int, call: Call, *arguments: object) -> Any:
        """Raise what ``number`` means; where the thread had lost its device, the value of ``call`` after a selection."""
        self._refuse(number, call)
        return self._call(call, *arguments)

    def _not_ready(self, number: int, call: Call, handle: int) -> bool:
        """What a query with this answer says, which is not that all is complete."""
        if number == self._quick.not_ready:
            return False
        self._refuse(number, call)
        return self._done(call, handle)

    def _refuse(self, number: int, call: Call) -> None:
        """Raise what ``number`` means, unless it is that the thread had lost its device, which the binding finds too."""
        try:
            status = self._api.status(number)
        except ValueError as error:
            raise DriverError(f"{_name(call)} failed: {number}, which the binding does not know") from error
        if status not in self._api.deselected:
            raise self._error(call, status)


class _Words(int):
    """The address of a launch's ``extra`` words, which live as long as it does."""

    memory: tuple[object, ...]
    pointer: ctypes.c_void_p


def _direct(api: GpuApi, symbol: str) -> Callable[..., int] | None:
    """A call of the vendor's without its binding; None where the library or the function is not found."""
    try:
        found: Callable[..., int] = api.library()[symbol]
    except (OSError, AttributeError, ImportError):
        return None
    return found


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _reply(call: Call, *arguments: object) -> tuple[Any, list[Any]]:
    try:
        status, *values = call(*arguments)
    except (RuntimeError, ValueError) as error:
        raise _unanswered(call, error) from error
    return status, values


def _unanswered(call: Call, error: Exception) -> DriverError:
    """For what a binding raises: there is no such symbol, or it has no name for the status."""
    hint = "is the driver as new as the binding?"
    return DriverError(f"{_name(call)} failed: {error}", hint=hint, call=_name(call))


def _name(call: Call) -> str:
    return getattr(call, "__name__", repr(call))
