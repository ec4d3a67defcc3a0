"""The most frequent calls of a vendor's library, without the binding.

For most of these calls, a binding takes longer to convert arguments and results than the driver takes to run.  Machine
code passes numbers as they are: all as 64 bits, and the call reads those that it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from quadpy.core.importing import import_late
from quadpy.errors import QuadpyError
from quadpy.runtime.drivers.gpu_api import GpuApi
from quadpy.runtime.drivers.gpu_calls import address_of_function, direct
from quadpy.runtime.drivers.vendor_calls import Call

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
