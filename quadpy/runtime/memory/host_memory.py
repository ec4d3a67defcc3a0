"""Host memory for arrays."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from quadpy.errors import OutOfDeviceMemory
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.memory.accounting import Accounting

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ALIGNMENT", "HOST", "Buffer", "HostAllocator"]

ALIGNMENT: Final = 64
"""Bytes of a cache line and of the widest vector register, so that aligned vectors never straddle two lines."""


@dataclass(slots=True, eq=False)  # not frozen: those are slow to make
class Buffer:
    """``nbytes`` bytes at the address ``pointer``, valid as long as this object lives.

    ``bytes`` is a view for the host, which also keeps them alive.
    """

    pointer: int
    nbytes: int
    bytes: npt.NDArray[np.uint8]


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


def _given_back(nbytes: int) -> None:
    if (told := Accounting.told) is not None:
        told(None, -nbytes, DEFAULT_STREAM)


HOST: Final = HostAllocator()
