"""Kernels' machine code in this process: loading it, and reporting a crash inside it.

A fault in machine code ends the process, and Python's own message names no kernel.  A handler that runs before the
existing one (Python's ``faulthandler``, the user's, or none) recognises the kernel by the address of the instruction,
so this costs a launch nothing.
"""

from __future__ import annotations

import ctypes
from typing import Final

from quadpy.core.source import Span
from quadpy.runtime.cpu.compiler_rt import HELPERS, helper_address
from quadpy.runtime.cpu.elf_symbols import read_symbols, section_around
from quadpy.runtime.cpu.libc import KERNEL_FUNCTIONS, c_address
from quadpy.runtime.cpu.orc import LoadedObject, link
from quadpy.runtime.cpu.pool import native_symbols, pool_symbol
from quadpy.runtime.cpu.pool_native.crash import ENTRY, HEAD, PREVIOUS
from quadpy.runtime.device.locks import new_lock
from quadpy.settings import settings

__all__ = ["LoadedObject", "load_object", "name_in_crashes"]


class _Note(ctypes.Structure):
    """Like ``pool_native.crash`` has it."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("begin", "end", "text", "length", "next")]


class _Action(ctypes.Structure):
    """``struct sigaction`` of glibc and musl on 64-bit Linux."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


_SIGNALS: Final = (11, 7)
"""SIGSEGV and SIGBUS on Linux."""
_SIGINFO_ON_STACK: Final = 0x4 | 0x0800_0000

_lock: Final = new_lock()
_kept: Final[list[object]] = []
"""Notes and their texts, which the handler may read at any time."""


def load_object(image: bytes) -> LoadedObject:
    """Loads the relocatable object ``image``; safe from any thread.

    It may use exact functions of the C library, quadpy's helpers and two functions of the thread pool, nothing else: CodegenError
    names any other symbol.  Keep the result as long as the code may run.
    """
    found = ((name, _address(name)) for name in read_symbols(image).undefined)
    return link(image, {name: address for name, address in found if address is not None})


def _address(name: str) -> int | None:
    if name.startswith("qp_pool_"):
        return pool_symbol(name)
    if name in HELPERS:
        return helper_address(name)
    return c_address(name) if name in KERNEL_FUNCTIONS else None


def name_in_crashes(loaded: LoadedObject, image: bytes, symbol: str, name: str, span: Span | None) -> None:
    """Let a crash inside the code around ``symbol`` name the kernel ``name``, until the process ends."""
    if not settings().crash_message:
        return
    native = native_symbols()
    if (handler := native.get(ENTRY)) is None:
        return
    before, size = section_around(image, symbol)
    begin = loaded.address(symbol) - before
    text = _text(name, span)
    with _lock:
        head = ctypes.c_uint64.from_address(native[HEAD])
        buffer = ctypes.create_string_buffer(text)
        note = _Note(begin, begin + size, ctypes.addressof(buffer), len(text), head.value)
        _kept.append((note, buffer))
        head.value = ctypes.addressof(note)
        _install(handler, native[PREVIOUS])


def _text(name: str, span: Span | None) -> bytes:
    where = f" ({span.file}:{span.line})" if span else ""
    return (
        f"\nquadpy: the process crashed in kernel {name}{where}, which accessed invalid memory.\n"
        "    The cause is most likely an index out of range. To see the line and the index, run it with checks:\n"
        "    qp.init(debug=True), @qp.kernel(debug=True), or QUADPY_DEBUG=1 in the environment.\n\n"
    ).encode(errors="replace")


def _install(handler: int, previous: int) -> None:
    """Install ``handler`` before the current handler of each signal, unless it is installed already."""
    sigaction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        c_address("sigaction") or 0
    )
    for number, signal in enumerate(_SIGNALS):
        now, own = _Action(), _Action(handler, flags=_SIGINFO_ON_STACK)
        if sigaction(signal, None, ctypes.addressof(now)) or now.handler == handler:
            continue
        ctypes.memmove(previous + number * ctypes.sizeof(_Action), ctypes.addressof(now), ctypes.sizeof(_Action))
        sigaction(signal, ctypes.addressof(own), None)
