"""Streams and graphs on a part of an NVIDIA GPU, by CUDA's green contexts.

A green context is the primary context on some of its multiprocessors: memory, code and events are shared.  A stream of one
runs its kernels there.  The kernels of a graph run in the contexts that were current when their nodes were made, whatever
the stream of the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.vendor_calls import Call, named

_DEFAULT_STREAM: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM, which older drivers require
_ALONE: Final = (
    1  # CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING: smaller groups, whose clusters of blocks are smaller
)
_SINCE: Final = 12_040
_MOST: Final = 16
"""Contexts that are kept for the next stream: each takes about 5 MiB of the device and, on an H200, 1.3 ms to make."""

_Key = tuple[int, ...]
"""The ordinal of a device, and the numbers of groups."""


class Parts:
    """See ``GpuApi``.

    groups   ordinal -> how many multiprocessors each group has: as few as CUDA allows, and the rest
    create   ordinal, flags, priority, numbers of groups, their units -> stream
    destroy  a stream, of any kind
    """

    groups: Call
    create: Call
    destroy: Call

    def __init__(self, cuda: Any) -> None:
        self._cuda, self._ok = cuda, cuda.CUresult.CUDA_SUCCESS
        self._resources: dict[int, list[Any]] = {}
        self._contexts: dict[_Key, Any] = {}  # the last one made last
        self._streams: dict[int, _Key] = {}
        self._lasting: set[_Key] = set()  # graphs have nodes in them
        self._lock = new_lock()
        self.groups = named("cuDevSmResourceSplitByCount", Parts._groups, self)
        self.create = named("cuGreenCtxStreamCreate", Parts._create, self)
        self.destroy = named(cuda.cuStreamDestroy, Parts._destroy, self)

    @staticmethod
    def known(cuda: Any) -> bool:
        """Whether the binding and the driver have green contexts: CUDA 12.4."""
        status, version = cuda.cuDriverGetVersion()
        there = hasattr(cuda, "cuGreenCtxStreamCreate") and status == cuda.CUresult.CUDA_SUCCESS
        return bool(there and version >= _SINCE)

    def _groups(self, ordinal: int) -> tuple[Any, ...]:
        if (found := self._resources.get(ordinal)) is None:
            status, found = self._split(ordinal)
            if status != self._ok:
                return (status,)
            found = self._resources.setdefault(ordinal, found)  # a context combines only groups of one split
        return self._ok, [each.sm.smCount for each in found]

    def _split(self, ordinal: int) -> tuple[Any, list[Any]]:
        """The groups of one split of the whole device; what does not make a whole group is the last one."""
        cuda = self._cuda
        status, device = cuda.cuDeviceGet(ordinal)
        if status == self._ok:
            status, whole = cuda.cuDeviceGetDevResource(device, cuda.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
        if status != self._ok:
            return status, []
        status, groups, count, rest = cuda.cuDevSmResourceSplitByCount(whole.sm.smCount, whole, _ALONE, 1)
        if status != self._ok:
            return status, []
        return status, [*groups[:count], *([rest] if rest.sm.smCount else [])]

    def _create(
        self, ordinal: int, flags: int, priority: int, groups: Sequence[int], _units: object
    ) -> tuple[Any, ...]:
        with self._lock:
            status, context = self._context((ordinal, *groups))
            if status != self._ok:
                return (status,)
            status, stream = self._cuda.cuGreenCtxStreamCreate(context, flags, priority)
            if status == self._ok:
                self._streams[int(stream)] = ordinal, *groups
        return status, stream

    def _destroy(self, stream: int) -> tuple[Any, ...]:
        with self._lock:
            answer = tuple(self._cuda.cuStreamDestroy(stream))
            self._streams.pop(stream, None)
        return answer

    def _context(self, key: _Key) -> tuple[Any, Any]:
        """The green context of ``key``; the caller has the lock."""
        if (found := self._contexts.get(key)) is not None:
            return self._ok, found
        cuda, (ordinal, *groups) = self._cuda, key
        self._make_room()
        chosen = [self._resources[ordinal][number] for number in groups]
        status, device = cuda.cuDeviceGet(ordinal)
        if status == self._ok:
            status, described = cuda.cuDevResourceGenerateDesc(chosen, len(chosen))
        if status != self._ok:
            return status, None
        status, found = cuda.cuGreenCtxCreate(described, device, _DEFAULT_STREAM)
        if status == self._ok:
            self._contexts[key] = found
        return status, found

    def _make_room(self) -> None:
        """Destroy contexts that nothing uses while there are too many; work that is pending in them completes."""
        used = {*self._streams.values(), *self._lasting}
        for key in [key for key in self._contexts if key not in used]:
            if len(self._contexts) >= _MOST:
                self._cuda.cuGreenCtxDestroy(self._contexts.pop(key))

    def inside(self, groups: Sequence[int] | None, call: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The answer of ``call``, which makes or changes a node of a graph whose kernels run on ``groups``, or on all units."""
        if groups is None:
            return call()
        cuda = self._cuda
        status, device = cuda.cuCtxGetDevice()
        if status != self._ok:
            return (status,)
        key = int(device), *groups
        with self._lock:
            status, context = self._context(key)
            if status == self._ok:
                self._lasting.add(key)
                status, context = cuda.cuCtxFromGreenCtx(context)
        if status == self._ok:
            (status,) = cuda.cuCtxPushCurrent(context)
        if status != self._ok:
            return (status,)
        try:
            return call()
        finally:
            cuda.cuCtxPopCurrent()
