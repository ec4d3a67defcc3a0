"""The most frequent calls of a vendor's library, without the binding.

For most of these calls, a binding takes longer to convert arguments and results than the driver takes to run.  ctypes
passes numbers as they are: all as pointers, which it converts fastest, and of which the call reads the bits it needs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeAlias

from quadpy.runtime.drivers.gpu_api import GpuApi
from quadpy.runtime.drivers.vendor_calls import Call

__all__ = ["DirectCalls"]

Ask: TypeAlias = Callable[..., int]

_WORD: Final = ctypes.c_void_p


class DirectCalls:
    """Each call returns the number of the vendor's status, 0 for success; ``alloc_async`` stores the address in a c_uint64.

    A call that the library lacks goes through the binding, by ``call`` and ``done``, which raise errors.
    """

    __slots__ = (
        "alloc_async", "copy_in", "copy_out", "event_query", "event_record", "event_synchronize", "fill", "free_async",
        "not_ready", "stream_query", "stream_synchronize", "stream_wait",
    )  # fmt: skip

    def __init__(self, api: GpuApi, call: Callable[..., Any], done: Callable[[Call, int], bool]) -> None:
        find = _finder(api)
        self.not_ready = int(api.not_ready)  # type: ignore[call-overload]

        def asked(binding: Call) -> Ask:
            def ask(*arguments: int) -> int:
                call(binding, *arguments)
                return 0

            return ask

        def queried(binding: Call) -> Ask:
            return lambda handle: 0 if done(binding, handle) else self.not_ready

        def allocated(found: ctypes.c_uint64, nbytes: int, stream: int) -> int:
            found.value = int(call(api.alloc_async, nbytes, stream))
            return 0

        self.stream_synchronize = find(api.stream_synchronize, _WORD) or asked(api.stream_synchronize)
        self.stream_query = find(api.stream_query, _WORD) or queried(api.stream_query)
        self.stream_wait = find(api.stream_wait, _WORD, _WORD, _WORD) or asked(api.stream_wait)
        self.event_record = find(api.event_record, _WORD, _WORD) or asked(api.event_record)
        self.event_synchronize = find(api.event_synchronize, _WORD) or asked(api.event_synchronize)
        self.event_query = find(api.event_query, _WORD) or queried(api.event_query)
        self.alloc_async = find(api.alloc_async, ctypes.POINTER(ctypes.c_uint64), _WORD, _WORD) or allocated
        self.free_async = find(api.free_async, _WORD, _WORD) or asked(api.free_async)
        self.copy_in = find(api.copy_in, *[_WORD] * 4, version=api.copy_version) or asked(api.copy_in)
        self.copy_out = find(api.copy_out, *[_WORD] * 4, version=api.copy_version) or asked(api.copy_out)
        self.fill = find(api.fill, _WORD, _WORD, _WORD, _WORD) or asked(api.fill)


def _finder(api: GpuApi) -> Callable[..., Ask | None]:
    """A function that looks up a call of the table in the vendor's library, by its name and ``version``, or returns None.

    A call that is written in Python does more than the library's, and is not looked up.
    """
    try:
        library = api.library()
    except (OSError, AttributeError, ImportError):
        return lambda call, *words, version="": None

    def find(call: Call, *words: Any, version: str = "") -> Ask | None:
        if isinstance(call, FunctionType):
            return None
        try:
            found = library[call.__name__ + version]
        except AttributeError:
            return None
        found.argtypes = words
        return found

    return find
