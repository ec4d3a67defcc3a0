"""``qp.profiler``: the work of a program on its devices, and how long each piece of it takes."""

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.profiler.kernel_profiler import (
    KernelTimes,
    clear_kernel_profiler_info,
    clear_scoped_profiler_info,
    get_kernel_profiler_total_time,
    print_kernel_profiler_info,
    print_memory_profiler_info,
    print_scoped_profiler_info,
    query_kernel_profiler_info,
    set_kernel_profiler,
    set_kernel_profiler_toolkit,
    timeline_clear,
    timeline_save,
)
from quadpy.profiler.profile import profile
from quadpy.profiler.ranges import range  # noqa: A004 - its name, which is written ``qp.profiler.range``
from quadpy.profiler.records import Record

__all__ = [
    "KernelTimes", "Record", "clear_kernel_profiler_info", "clear_scoped_profiler_info", "get_kernel_profiler_total_time",
    "print_kernel_profiler_info", "print_memory_profiler_info", "print_scoped_profiler_info", "profile",
    "query_kernel_profiler_info", "range", "set_kernel_profiler", "set_kernel_profiler_toolkit", "timeline_clear", "timeline_save",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
