"""The form of a vendor's name table.

Both vendors' bindings return ``(status, *values)``, and their calls correspond to each other.  A table holds the calls
of one vendor, with the argument order that HIP and CUDA share: ``CALLS`` names those that take the same arguments, and
calls that differ are small functions in the vendor's module.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quadpy.runtime.drivers.driver import AllocatorName, DeviceInfo, Feature
from quadpy.runtime.drivers.graph_api import GraphApi
from quadpy.runtime.drivers.vendor_calls import Call

CALLS: Final = {
    "device_count": ("hipGetDeviceCount", "cuDeviceGetCount"),
    "synchronize": ("hipDeviceSynchronize", "cuCtxSynchronize"),
    "memory_info": ("hipMemGetInfo", "cuMemGetInfo"),
    "priority_range": ("hipDeviceGetStreamPriorityRange", "cuCtxGetStreamPriorityRange"),
    "stream_create": ("hipStreamCreateWithPriority", "cuStreamCreateWithPriority"),
    "stream_destroy": ("hipStreamDestroy", "cuStreamDestroy"),
    "stream_synchronize": ("hipStreamSynchronize", "cuStreamSynchronize"),
    "stream_query": ("hipStreamQuery", "cuStreamQuery"),
    "stream_wait": ("hipStreamWaitEvent", "cuStreamWaitEvent"),
    "event_create": ("hipEventCreateWithFlags", "cuEventCreate"),
    "event_destroy": ("hipEventDestroy", "cuEventDestroy"),
    "event_record": ("hipEventRecord", "cuEventRecord"),
    "event_synchronize": ("hipEventSynchronize", "cuEventSynchronize"),
    "event_query": ("hipEventQuery", "cuEventQuery"),
    "event_elapsed": ("hipEventElapsedTime", "cuEventElapsedTime"),
    "alloc": ("hipMalloc", "cuMemAlloc"),
    "free": ("hipFree", "cuMemFree"),
    "alloc_async": ("hipMallocAsync", "cuMemAllocAsync"),
    "free_async": ("hipFreeAsync", "cuMemFreeAsync"),
    "alloc_pinned": ("hipHostMalloc", "cuMemHostAlloc"),
    "free_pinned": ("hipHostFree", "cuMemFreeHost"),
    "copy_in": ("hipMemcpyHtoDAsync", "cuMemcpyHtoDAsync"),
    "copy_out": ("hipMemcpyDtoHAsync", "cuMemcpyDtoHAsync"),
    "copy_within": ("hipMemcpyDtoDAsync", "cuMemcpyDtoDAsync"),
    "fill": ("hipMemsetD8Async", "cuMemsetD8Async"),
    "module_unload": ("hipModuleUnload", "cuModuleUnload"),
    "launch": ("hipModuleLaunchKernel", "cuLaunchKernel"),
    "launch_cooperative": ("hipModuleLaunchCooperativeKernel", "cuLaunchCooperativeKernel"),
    "blocks_at_once": (
        "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    ),
}  # fmt: skip
"""Calls whose arguments are the same in both bindings: by purpose, HIP's name and CUDA's."""


@dataclass(frozen=True, slots=True)
class GpuApi:
    """One vendor's calls, named by purpose.  Handles are ints in both directions; ``None`` is handle 0.

    status       the vendor's number -> the binding's status
    ok, not_ready, out_of_memory    the statuses with these meanings
    fatal        statuses after which the process can no longer use the device
    refusals     fatal statuses by which a launch may also refuse its arguments, without harm
    deselected   statuses for a thread whose device another library has changed
    causes       status name -> likely cause and remedy
    library      opens the vendor's library, the one that the binding uses; ``launch_symbol`` is its ``launch``,
                 ``cooperative_symbol`` its ``launch_cooperative``
    copy_version    suffix of the library's names for ``copy_in`` and ``copy_out``
    blocks_at_once  function, threads, shared bytes -> the blocks that fit on one of the device's units
    selection    device ordinal -> the library's symbol that selects it, and its argument; the device can be used
    describe     device ordinal -> its description and its features
    unit_groups  device ordinal -> how many units each group has; see ``Driver.unit_groups``
    stream_create_on  device ordinal, flags, priority, numbers of groups, their units -> stream
    module_load  image -> the module, and the log of the vendor's compiler, also for a refused image
    """

    name: str
    default_allocator: AllocatorName
    status: Callable[[int], Any]
    ok: object
    not_ready: object
    out_of_memory: object
    fatal: frozenset[object]
    refusals: frozenset[object]
    deselected: frozenset[object]
    causes: Mapping[str, str]

    library: Callable[[], ctypes.CDLL]
    launch_symbol: str
    cooperative_symbol: str
    selection: Callable[[int], tuple[str, int]]

    device_count: Call
    describe: Callable[[int], tuple[DeviceInfo, frozenset[Feature]]]
    select: Call
    synchronize: Call
    memory_info: Call
    keep_pool: Call
    trim_pool: Call
    priority_range: Call

    stream_create: Call
    stream_destroy: Call
    stream_synchronize: Call
    stream_query: Call
    stream_wait: Call
    stream_device: Call
    unit_groups: Call
    stream_create_on: Call

    event_create: Call
    event_destroy: Call
    event_record: Call
    event_synchronize: Call
    event_query: Call
    event_elapsed: Call

    alloc: Call
    free: Call
    alloc_async: Call
    free_async: Call
    alloc_pinned: Call
    free_pinned: Call
    copy_in: Call
    copy_out: Call
    copy_within: Call
    fill: Call

    module_load: Call
    module_function: Call
    module_unload: Call
    launch: Call
    launch_cooperative: Call
    blocks_at_once: Call
    launch_markers: tuple[int, int, int]
    """The markers before the argument block, before its size, and at the end of a launch's ``extra`` words."""
    graphs: Callable[[], GraphApi]
    """Makes the table of graph calls, for the first graph."""
    copy_version: str = ""
