"""What a crash inside a kernel says: which kernel, and how to find the access that was out of range.

A fault in machine code ends the process, and Python's own message knows no kernel.  A handler in front of the one that is
there (Python's ``faulthandler``, the user's, or none) recognises the kernel by the address of the instruction, so a launch
has nothing to do with it.
"""

from __future__ import annotations

import ctypes
from typing import Final

from quadpy.runtime.cpu.elf_symbols import section_around
from quadpy.runtime.cpu.libc import c_address
from quadpy.runtime.cpu.orc import LoadedObject
from quadpy.runtime.cpu.pool import native_symbols
from quadpy.runtime.cpu.pool_native.crash import ENTRY, HEAD, PREVIOUS
from quadpy.runtime.device.locks import new_lock
from quadpy.settings import settings
from quadpy.source import Span

__all__ = ["name_in_crashes"]


class _Note(ctypes.Structure):
    """As ``pool_native.crash`` has it."""

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
        f"\nquadpy: the process crashed in kernel {name}{where}, which accessed memory that is not its own.\n"
        "    The cause is most likely an index out of range. To see the line and the index, run it with checks:\n"
        "    qp.init(debug=True), @qp.kernel(debug=True), or QUADPY_DEBUG=1 in the environment.\n\n"
    ).encode(errors="replace")


def _install(handler: int, previous: int) -> None:
    """Put ``handler`` in front of what handles each signal now, unless it is there already."""
    sigaction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        c_address("sigaction") or 0
    )
    for number, signal in enumerate(_SIGNALS):
        now, own = _Action(), _Action(handler, flags=_SIGINFO_ON_STACK)
        if sigaction(signal, None, ctypes.addressof(now)) or now.handler == handler:
            continue
        ctypes.memmove(previous + number * ctypes.sizeof(_Action), ctypes.addressof(now), ctypes.sizeof(_Action))
        sigaction(signal, ctypes.addressof(own), None)
