"""The shape of a vendor's name table.  Owns: GpuApi, bound.  Imports: the standard library and the driver protocol.

Both vendors' bindings answer ``(status, *values)``, and their calls pair off; the table holds one of each pair, in the
order of arguments that HIP and CUDA share.  Calls that differ are small functions in the vendor's module.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from quadpy.runtime.drivers.driver import AllocatorName, DeviceInfo, Feature

if TYPE_CHECKING:
    from quadpy.runtime.drivers.graph_api import GraphApi

__all__ = ["Call", "GpuApi", "bound"]

Call: TypeAlias = Callable[..., tuple[Any, ...]]


def bound(function: Callable[..., tuple[Any, ...]], binding: object, name: str) -> Call:
    """``function`` over ``binding``; in messages it goes by ``name``, the vendor's call that can fail in it."""
    call = functools.partial(function, binding)
    call.__dict__["__name__"] = name
    return call


@dataclass(frozen=True, slots=True)
class GpuApi:
    """One vendor's calls, by what they do.  Handles are ints both ways; ``None`` is a handle of 0.

    status       the vendor's number -> the status that the binding answers with
    ok, not_ready, out_of_memory    the statuses that mean these
    fatal        statuses after which the process can use the device no more
    refusals     those of them by which a launch may also refuse its arguments, and harm nothing
    deselected   statuses that say that the thread's device is not the one selected last: another library changed it
    causes       status name -> likely cause and what to do
    library      opens the vendor's library, the same that the binding uses, whose ``launch_symbol`` is ``launch``, and
                 ``cooperative_symbol`` is ``launch_cooperative``
    copy_version    what the library adds to the binding's names of ``copy_in`` and ``copy_out``
    blocks_at_once  function, threads, shared bytes -> the blocks that one of the device's units can hold
    selection    device ordinal -> the library's symbol that selects it, and with what number; asked after ``select``
    describe     device ordinal -> its description and its features
    module_load  image -> the module, and what the vendor's compiler said of the image: also where it is refused
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
    """What stands before the argument block, before its size, and at the end of a launch's ``extra`` words."""
    graphs: Callable[[], GraphApi]
    """The table of graph calls, made when the first graph is."""
    copy_version: str = ""
