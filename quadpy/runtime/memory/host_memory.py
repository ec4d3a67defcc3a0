"""Host memory for arrays."""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from quadpy.errors import OutOfDeviceMemory
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.elements.numpy_types import address_of
from quadpy.runtime.memory.accounting import Accounting

if TYPE_CHECKING:
    import numpy.typing as npt

ALIGNMENT: Final = 64
"""Bytes of a cache line and of the widest vector register, so that aligned vectors never straddle two lines."""
RESERVED: Final = 1 << 30
"""Sparse trees of this many bytes have reserved memory; smaller ones have the same as other arrays, with huge pages."""
_NO_RESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""The number is that of Linux on x86 and Arm, for versions of Python that have no name for it."""


@dataclass(slots=True, eq=False)  # not frozen: those are slow to make
class Buffer:
    """``nbytes`` bytes at the address ``pointer``, valid as long as this object lives.

    ``bytes`` is a view for the host, which also keeps them alive.  Of ``reserved`` bytes, only pages that were written
    take memory.
    """

    pointer: int
    nbytes: int
    bytes: npt.NDArray[np.uint8]
    reserved: mmap.mmap | None = None

    def forget(self) -> None:
        """Make all bytes 0; reserved memory is given back."""
        assert self.reserved is not None
        self.reserved.madvise(mmap.MADV_DONTNEED)


class HostAllocator:
    """Plain memory of the process; the system provides zero pages on first access."""

    def allocate(self, nbytes: int) -> Buffer:
        """``nbytes`` zero bytes, aligned to ``ALIGNMENT``; OutOfDeviceMemory if there are too few."""
        try:
            block = np.zeros(nbytes + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError) as error:  # ValueError: more than the address space
            raise OutOfDeviceMemory(
                f"the host has no {nbytes / 2**30:.1f} GiB left for an array", hint="use a smaller shape or dtype"
            ) from error
        base = ctypes.addressof(ctypes.c_char.from_buffer(block))  # type: ignore[arg-type]  # faster than NumPy's ways
        skip = -base % ALIGNMENT
        if (told := Accounting.told) is not None:
            told(None, nbytes, DEFAULT_STREAM)
            weakref.finalize(block, _given_back, nbytes).atexit = False
        return Buffer(base + skip, nbytes, block[skip : skip + nbytes])

    def reserve(self, nbytes: int) -> Buffer:
        """Like ``allocate``, for memory of which little will be written: there need not be as much."""
        if nbytes < RESERVED or sys.platform != "linux":
            return self.allocate(nbytes)
        try:
            block = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        except (OSError, ValueError, OverflowError) as error:
            raise OutOfDeviceMemory(
                f"the system has no addresses for {nbytes / 2**30:.1f} GiB", hint="use smaller extents"
            ) from error
        block.madvise(mmap.MADV_NOHUGEPAGE)  # a huge page of 2 MiB for a cell would be too much
        view = np.frombuffer(block, np.uint8)
        return Buffer(address_of(view), nbytes, view, block)


def _given_back(nbytes: int) -> None:
    if (told := Accounting.told) is not None:
        told(None, -nbytes, DEFAULT_STREAM)


HOST: Final = HostAllocator()
