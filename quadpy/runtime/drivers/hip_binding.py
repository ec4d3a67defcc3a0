"""The binding of HIP that quadpy uses: hip-python where it is installed, and ctypes otherwise."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple

from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.drivers.hip_ctypes import HipByCtypes
from quadpy.runtime.drivers.rocm_library import Opened, open_rocm_library

_answering: Final = new_lock()


class Binding(NamedTuple):
    """``hip`` has the calls; ``name`` is the package and its version, or ``ctypes``; ``opened`` is what both call."""

    hip: Any
    name: str
    opened: Opened


@functools.cache
def hip_binding() -> Binding:
    """The binding of this process.  Only success is cached.

    Raises:
        LibraryMissing: there is no HIP library that can be opened.
    """
    opened = open_rocm_library("amdhip64")
    try:
        from hip import hip

        with hip_python_opens("amdhip64", opened.file):
            hip.has_symbol("hipInit")
    except (ImportError, AttributeError):  # AttributeError: older than hip-python 10
        return Binding(HipByCtypes(opened.library), "ctypes", opened)
    try:
        return Binding(hip, f"hip-python {version('hip-python')}", opened)
    except PackageNotFoundError:
        return Binding(hip, "hip-python", opened)


@contextlib.contextmanager
def hip_python_opens(name: str, file: str) -> Iterator[None]:
    """Let hip-python, which looks in fewer places, open ``file`` as library ``name`` at its first call, made inside."""
    from rocm.bindings.util import paths

    with _answering:
        own = paths.get_library_path
        paths.get_library_path = lambda wanted, *more: os.fsencode(file) if wanted == name else own(wanted, *more)
        try:
            yield
        finally:
            paths.get_library_path = own
