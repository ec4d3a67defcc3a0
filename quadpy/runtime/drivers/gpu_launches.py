"""Modules and launches on a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from quadpy.runtime.drivers.driver import DeviceInfo, Dim3, FunctionHandle, ModuleHandle, NativeLaunch, StreamHandle
from quadpy.runtime.drivers.gpu_api import GpuApi
from quadpy.runtime.drivers.gpu_calls import GpuCalls, address_of_function, direct

_MAX_POINTERS: Final = 256
"""Streams whose pointers are kept for the next launch."""


class GpuLaunches(GpuCalls):
    """Loads code and launches it, without the binding if the library can be called directly."""

    info: DeviceInfo

    def __init__(self, api: GpuApi, ordinal: int) -> None:
        super().__init__(api, ordinal)
        self._launch = direct(api, api.launch_symbol)
        self._launch_cooperative = direct(api, api.cooperative_symbol)
        self._functions: dict[int, ctypes.c_void_p] = {}
        self._streams: dict[int, ctypes.c_void_p] = {}

    def module_load(self, image: bytes) -> ModuleHandle:
        self._select()
        load = self._api.module_load
        status, (*handle, log) = self._ask(load, image)
        if status != self._api.ok:
            raise self._error(load, status, log)
        return ModuleHandle(int(handle[0]))

    def module_function(self, module: ModuleHandle, name: str) -> FunctionHandle:
        function = FunctionHandle(int(self.call(self._api.module_function, module, name.encode())))
        if self._launch is not None:
            self._functions[function] = ctypes.c_void_p(function)
        return function

    def module_unload(self, module: ModuleHandle) -> None:
        self.call(self._api.module_unload, module)

    def launch_arguments(self, address: int, nbytes: int) -> object:
        if not nbytes:
            return 0
        block, size, end = self._api.launch_markers
        extent = ctypes.c_size_t(nbytes)
        words = (ctypes.c_void_p * 5)(block, address, size, ctypes.addressof(extent), end)
        return _Words.of(words, extent)

    def launch(
        self, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle, arguments: object
    ) -> None:
        """A direct call takes less than half the time of the binding.

        Numbers are passed as C ints, which ctypes converts the fastest, and pointers as objects that are created once.
        """
        if (called := self._functions.get(function)) is None or self._launch is None:
            self.call(self._api.launch, function, *grid, *block, shared, stream, None, arguments)
            return
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        on = (self._streams.get(stream) or self._stream_pointer(stream)) if stream else None
        extra = arguments.pointer if isinstance(arguments, _Words) else None
        status = self._launch(called, *grid, *block, shared, on, None, extra)
        if status:
            self._launch_refused(status, function, grid, block, shared, stream, arguments)

    def max_blocks(self, function: FunctionHandle, threads: int, shared: int) -> int:
        return self.info.units * int(self.call(self._api.blocks_at_once, function, threads, shared))

    def cooperative_arguments(self, address: int, offsets: Sequence[int]) -> object:
        """The address of each argument: HIP takes no argument block here."""
        return _Words.of((ctypes.c_void_p * max(len(offsets), 1))(*(address + offset for offset in offsets)))

    def launch_cooperative(
        self, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle, arguments: object
    ) -> None:
        call, called = self._api.launch_cooperative, self._functions.get(function)
        if called is None or self._launch_cooperative is None or not isinstance(arguments, _Words):
            self.call(call, function, *grid, *block, shared, stream, arguments)
            return
        if self._fault is not None or not self._ready.selected:
            self._prepare()
        on = (self._streams.get(stream) or self._stream_pointer(stream)) if stream else None
        if status := self._launch_cooperative(called, *grid, *block, shared, on, arguments.pointer):
            self._again_by_binding(status, call, function, *grid, *block, shared, stream, arguments)

    def native_launch(self) -> NativeLaunch | None:
        self._select()
        symbol, which = self._api.selection(self.ordinal)
        select = direct(self._api, symbol)
        if self._launch is None or select is None:
            return None
        lost = ctypes.addressof(self._lost)
        return NativeLaunch(
            lost, address_of_function(select), which, address_of_function(self._launch), self._launch_refused
        )

    def _launch_refused(
        self, number: int, function: FunctionHandle, grid: Dim3, block: Dim3, shared: int, stream: StreamHandle,
        arguments: object,
    ) -> None:  # fmt: skip
        """Raise the error for ``number``; or, if the thread had another device, select this one and launch again."""
        call = self._api.launch
        self._again_by_binding(number, call, function, *grid, *block, shared, stream, None, arguments)

    def _stream_pointer(self, stream: StreamHandle) -> ctypes.c_void_p:
        if len(self._streams) >= _MAX_POINTERS:
            self._streams.clear()
        found = self._streams[stream] = ctypes.c_void_p(stream)
        return found


class _Words(int):
    """The address of a launch's ``extra`` words, which it keeps alive."""

    memory: tuple[object, ...]
    pointer: ctypes.c_void_p

    @classmethod
    def of(cls, words: ctypes.Array[ctypes.c_void_p], *more: object) -> _Words:
        """The address of ``words``, which point to ``more``."""
        found = cls(ctypes.addressof(words))
        found.memory, found.pointer = (words, *more), ctypes.c_void_p(found)
        return found
