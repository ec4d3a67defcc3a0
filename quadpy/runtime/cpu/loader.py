"""Kernels' machine code loaded into this process, with the symbols that kernels may use."""

from __future__ import annotations

from quadpy.runtime.cpu.compiler_rt import HELPERS, helper_address
from quadpy.runtime.cpu.elf_symbols import read_symbols
from quadpy.runtime.cpu.libc import KERNEL_FUNCTIONS, c_address
from quadpy.runtime.cpu.orc import LoadedObject, link
from quadpy.runtime.cpu.pool import ENTRY, pool_address

__all__ = ["LoadedObject", "load_object"]


def load_object(image: bytes) -> LoadedObject:
    """Loads the relocatable object ``image``; safe from any thread.

    It may use exact functions of the C library, quadpy's helpers and the thread pool's entry, nothing else: CodegenError
    names any other symbol.  Keep the result as long as the code may run.
    """
    found = ((name, _address(name)) for name in read_symbols(image).undefined)
    return link(image, {name: address for name, address in found if address is not None})


def _address(name: str) -> int | None:
    if name == ENTRY:
        return pool_address()
    if name in HELPERS:
        return helper_address(name)
    return c_address(name) if name in KERNEL_FUNCTIONS else None
