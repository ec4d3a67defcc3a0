"""The C library functions that machine code may call, and their addresses.

Those that compute have exact or correctly rounded results: the same bits with every C library.  Functions such as
``sin``, whose last bit depends on the library, are absent on purpose; kernels have quadpy's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import Final

_ROUNDING: Final = ("floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven")
_EXACT: Final = (*_ROUNDING, "fma", "fmod", "frexp", "ldexp")

_MEMORY: Final = ("malloc", "free", "memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen", "wcslen")

_OF_SYSTEM: Final = {"win32": ("__chkstk",), "darwin": ("bzero", "memset_pattern16")}.get(sys.platform, ())
"""What LLVM calls on Windows where a function has a large frame, and on macOS for loops that fill."""

KERNEL_FUNCTIONS: Final = frozenset((*_OF_SYSTEM, *_MEMORY, *_EXACT, *(f"{name}f" for name in _EXACT)))
"""Memory for private copies, and what LLVM calls in place of loops that copy, fill or compare, and on plain x86-64."""

POOL_FUNCTIONS: Final = (
    *_OF_SYSTEM, "clock_gettime", "memcpy", "pthread_create", "pthread_detach", "pthread_getspecific", "pthread_self",
    "pthread_setspecific", "pthread_sigmask", "syscall",
)  # fmt: skip


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """The process, which contains the C library, and glibc's math library where there is one; on Windows, both by name."""
    found = []
    for name in ("ucrtbase", "ntdll") if sys.platform == "win32" else (None, "libm.so.6"):
        with contextlib.suppress(OSError):
            found.append(ctypes.CDLL(name))
    return tuple(found)


@functools.cache
def c_address(name: str) -> int | None:
    """The address of C function ``name`` in this process; None if the C library lacks it."""
    for library in _libraries():
        if hasattr(library, name):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    return None
