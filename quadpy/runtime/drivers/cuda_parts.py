"""Streams on a part of an NVIDIA GPU: streams of CUDA's green contexts.

A green context is the primary context on some of its multiprocessors: memory, code and events are shared.  quadpy makes one
for each set of groups that a stream asks for, and keeps it: streams, and graphs, of a context that was destroyed are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quadpy.runtime.drivers.vendor_calls import Call, named

_DEFAULT_STREAM: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM, which older drivers require
_SINCE: Final = 12_040


class Parts:
    """See ``GpuApi``.

    groups  ordinal -> how many multiprocessors each group has: as few as CUDA allows, and the rest
    create  ordinal, flags, priority, numbers of groups, their units -> stream
    """

    groups: Call
    create: Call

    def __init__(self, cuda: Any) -> None:
        self._cuda, self._ok = cuda, cuda.CUresult.CUDA_SUCCESS
        self._resources: dict[int, list[Any]] = {}
        self._contexts: dict[tuple[int, ...], Any] = {}
        self.groups = named("cuDevSmResourceSplitByCount", Parts._groups, self)
        self.create = named("cuGreenCtxStreamCreate", Parts._create, self)

    @staticmethod
    def known(cuda: Any) -> bool:
        """Whether the binding and the driver have green contexts: CUDA 12.4."""
        status, version = cuda.cuDriverGetVersion()
        return bool(
            hasattr(cuda, "cuGreenCtxStreamCreate") and status == cuda.CUresult.CUDA_SUCCESS and version >= _SINCE
        )

    def _groups(self, ordinal: int) -> tuple[Any, ...]:
        if (found := self._resources.get(ordinal)) is None:
            status, found = self._split(ordinal)
            if status != self._ok:
                return (status,)
            found = self._resources.setdefault(ordinal, found)  # contexts combine only groups of one split
        return self._ok, [each.sm.smCount for each in found]

    def _split(self, ordinal: int) -> tuple[Any, list[Any]]:
        """The groups of one split of the whole device; what does not make a whole group is the last one."""
        cuda = self._cuda
        status, device = cuda.cuDeviceGet(ordinal)
        if status == self._ok:
            status, whole = cuda.cuDeviceGetDevResource(device, cuda.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
        if status != self._ok:
            return status, []
        status, groups, count, rest = cuda.cuDevSmResourceSplitByCount(whole.sm.smCount, whole, 0, 1)
        if status != self._ok:
            return status, []
        return status, [*groups[:count], *([rest] if rest.sm.smCount else [])]

    def _create(
        self, ordinal: int, flags: int, priority: int, groups: Sequence[int], _units: object
    ) -> tuple[Any, ...]:
        key = ordinal, *groups
        if (context := self._contexts.get(key)) is None:
            status, context = self._context(ordinal, groups)
            if status != self._ok:
                return (status,)
            context = self._contexts.setdefault(key, context)  # a second one, of another thread, stays unused
        return tuple(self._cuda.cuGreenCtxStreamCreate(context, flags, priority))

    def _context(self, ordinal: int, groups: Sequence[int]) -> tuple[Any, Any]:
        cuda = self._cuda
        chosen = [self._resources[ordinal][number] for number in groups]
        status, device = cuda.cuDeviceGet(ordinal)
        if status == self._ok:
            status, described = cuda.cuDevResourceGenerateDesc(chosen, len(chosen))
        if status != self._ok:
            return status, None
        return tuple(cuda.cuGreenCtxCreate(described, device, _DEFAULT_STREAM))
