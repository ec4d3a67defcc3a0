"""The targets whose code runs on this machine's CPU, and machine code that is a shared object."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import os
import platform
import sys
from pathlib import Path
from typing import Final

from quadpy.core.target import machine_of
from quadpy.errors import SavedGraphError
from quadpy.runtime.device.current import current_config

_V2: Final = {"cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3: Final = {*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4: Final = {*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
_LEVELS: Final = {"cpu:x86-64-v4": _V4, "cpu:x86-64-v3": _V3, "cpu:x86-64-v2": _V2, "cpu:x86-64": set[str]()}
"""What Linux calls the features of each level (x86-64 psABI, "Microarchitecture levels")."""

_SLASHES: Final = itertools.count(2)
"""How many stand in the path of the next library: to the C library, a path that it has seen is the library of then.

The reader in C uses one, with files that it keeps open."""


@functools.cache
def here() -> tuple[str, ...]:
    """The CPU targets that run here, the best one first."""
    if machine_of("native") == "aarch64":
        return ("cpu:arm64",)
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return tuple(target for target, needed in _LEVELS.items() if needed.issubset(flags))


def usual() -> str:
    """The CPU target of a file for which none is asked: that of most machines that are alike."""
    return "cpu:x86-64-v3" if "cpu:x86-64-v3" in here() else here()[-1]


def load_library(image: bytes) -> ctypes.CDLL:
    """The shared object ``image``, which stays loaded until the process ends, with the number of threads of ``qp.init``.

    Raises:
        SavedGraphError: the system refuses it.
    """
    loaded = _loaded(image)
    ctypes.c_int32.in_dll(loaded, "qpg_threads").value = current_config().num_threads or 0
    return loaded


@functools.cache
def _loaded(image: bytes) -> ctypes.CDLL:
    if sys.platform != "linux":
        raise SavedGraphError(f"saved graphs run on the CPU of Linux only, not of {platform.system()}")
    handle = os.memfd_create(f"quadpy-{hashlib.sha256(image).hexdigest()[:12]}")
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(image)
        return ctypes.CDLL(f"/proc/self/fd{'/' * next(_SLASHES)}{handle}")
    except OSError as error:
        raise SavedGraphError(f"the system does not load the code of the saved graph: {error}") from error
    finally:
        os.close(handle)
