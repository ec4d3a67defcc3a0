"""Named parts of a program, in profiles and in the vendors' own profilers."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from quadpy.core.importing import import_late
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.profiler.recorder import RECORDER
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.drivers.rocm_library import open_rocm_library

if TYPE_CHECKING:
    from typing_extensions import Self


def _of_rocm(name: str) -> ctypes.CDLL:
    return open_rocm_library(name).library


_LIBRARIES: Final = (
    (ctypes.CDLL, ("libnvToolsExt.so.1", "libnvToolsExt.so"), "nvtxRangePushA", "nvtxRangePop"),
    (_of_rocm, ("rocprofiler-sdk-roctx", "roctx64"), "roctxRangePushA", "roctxRangePop"),
)
"""NVTX and roctx: what opens them, their names, of which the first that exists is used, and the functions that begin and
end a range."""


class Markers(NamedTuple):
    """The functions that tell another profiler that a range begins and ends, on the calling thread."""

    push: Callable[[bytes], object]
    pop: Callable[[], object]


@functools.cache
def markers() -> tuple[Markers, ...]:
    """The markers of the libraries that are installed."""
    found = []
    for opened, names, push, pop in _LIBRARIES:
        for name in names:
            with contextlib.suppress(OSError, AttributeError):
                library = opened(name)
                begin, end = getattr(library, push), getattr(library, pop)
                begin.argtypes = [ctypes.c_char_p]
                found.append(Markers(begin, end))
                break
    return (*found, *_of_package())


def _of_package() -> tuple[Markers, ...]:
    """NVIDIA's Python package ``nvtx``, for CUDA 13, which no longer has its own library."""
    try:
        nvtx = import_late("nvtx")
    except ImportError:
        return ()
    return (Markers(lambda name: nvtx.push_range(name.decode()), nvtx.pop_range),)


class range(Block, contextlib.ContextDecorator):  # noqa: A001, N801 - used as ``qp.profiler.range``, like a statement
    """``with qp.profiler.range("step"):`` names a part of the program; it also works as a decorator of a function.

    Open profiles show it on the thread's track, and each record lists the ranges in which its work was requested.  It
    is passed on to NVTX and roctx if these libraries are installed, so that Nsight Systems and rocprofv3 show it, too.
    """

    @public
    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"a range needs a name, not {name!r}", hint='with qp.profiler.range("step"):')
        self.name = name

    def __enter__(self) -> Self:
        ranges = RECORDER.thread.ranges
        _mark(len(ranges))  # an interrupt may have come before the end of a block could do so
        ranges.add(self._begin(time.perf_counter_ns()), self.name)
        _mark(len(ranges), self.name)
        return self

    def _end(self, about: int, *exception: object) -> None:
        _mark(len(RECORDER.thread.ranges) - 1)
        if RECORDER.logs:
            work = RECORDER.made("range", self.name)
            work.ranges = work.ranges[:-1]
            RECORDER.timed(work, about, work.submitted)

    def _recreate_cm(self) -> Self:
        return type(self)(self.name)


def _mark(count: int, name: str = "") -> None:
    """Let other profilers know ``count`` ranges of this thread, the last of which is called ``name`` if it is new."""
    thread = RECORDER.thread
    while thread.marked > count:
        thread.marked -= 1
        for each in reversed(markers()):
            each.pop()
    if thread.marked < count:
        for each in markers():
            each.push(name.encode())
        thread.marked = count
