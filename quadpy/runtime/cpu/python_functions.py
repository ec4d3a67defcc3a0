"""Machine code that Python calls as built-in functions, for calls that take too long through ctypes.

The code uses only functions of Python's stable ABI.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from quadpy.runtime.cpu.orc import LoadedObject, link

NO_ARGUMENTS: Final = 0x0004
"""METH_NOARGS: ``ptr (ptr self, ptr null)``."""
FAST: Final = 0x0080
"""METH_FASTCALL: ``ptr (ptr self, ptr arguments, i64 count)``."""


class _Method(ctypes.Structure):
    """``PyMethodDef``: how Python describes a C function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class PythonFunctions:
    """The object ``image``; Python calls its ``symbol`` as ``flags`` say; ``uses`` are functions of Python."""

    def __init__(self, image: bytes, uses: tuple[str, ...], symbols: dict[str, int]) -> None:
        self._code: LoadedObject = link(image, {name: address_of_python(name) for name in uses})
        self._methods = {
            symbol: _Method(symbol.encode(), self._code.address(symbol), flags, None)
            for symbol, flags in symbols.items()
        }
        made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
        self._new = made(("PyCFunction_NewEx", ctypes.pythonapi))

    def function(self, symbol: str, given: int, keep: object) -> Callable[..., int]:
        """A Python function that calls ``symbol`` with ``given`` as its ``self``, and keeps the code and ``keep`` alive."""
        found: Callable[..., int] = self._new(ctypes.addressof(self._methods[symbol]), given, (self, keep))
        return found


def address_of_python(name: str) -> int:
    """The address of a function of Python's C API."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
