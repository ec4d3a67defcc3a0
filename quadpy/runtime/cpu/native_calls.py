"""Calls of a vendor's library by machine code, which takes integers from Python and returns the status.

ctypes takes several times as long to convert two integers as the driver takes to record an event.  The code selects the
device before each call, as launches do, which takes less time than to look up whether the thread has it.  It releases
Python's lock meanwhile, as ctypes does.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, Final

from quadpy.runtime.cpu.orc import assemble
from quadpy.runtime.cpu.python_functions import FAST, PythonFunctions
from quadpy.runtime.drivers.gpu_calls import UNTRIED, address_of_function

_MOST: Final = 4
"""Arguments of a call."""
_PYTHON: Final = {
    "PyErr_BadArgument": "i32 @PyErr_BadArgument()",
    "PyErr_Occurred": "ptr @PyErr_Occurred()",
    "PyEval_RestoreThread": "void @PyEval_RestoreThread(ptr)",
    "PyEval_SaveThread": "ptr @PyEval_SaveThread()",
    "PyLong_AsVoidPtr": "ptr @PyLong_AsVoidPtr(ptr)",
    "PyLong_FromLongLong": "ptr @PyLong_FromLongLong(i64)",
}


_CALL: Final = struct.Struct("=QQQQ")
"""The addresses of the lost device's mark and of ``select``, the argument of ``select``, the function's address."""


class NativeCalls:
    """Calls of C functions on one device: ``lost`` is where the mark of a lost device is, ``select(selects)`` selects it."""

    def __init__(self, lost: int, select: int, selects: int) -> None:
        """CodegenError or RuntimeError if the machine code cannot be loaded."""
        self._device, self._code = (lost, select, selects), _code()

    def call(self, function: Any, count: int) -> Callable[..., int]:
        """A C function of ``count`` words that returns a status."""
        return self._made(f"qp_call{count}", function)

    def alloc(self, function: Any) -> Callable[..., int]:
        """Like ``call``, for two words after the address of a result: returns it, or the negative status."""
        return self._made("qp_alloc", function)

    def _made(self, symbol: str, function: Any) -> Callable[..., int]:
        words = ctypes.create_string_buffer(_CALL.pack(*self._device, address_of_function(function)))
        return self._code.function(symbol, ctypes.addressof(words), (words, function))


@functools.cache
def _code() -> PythonFunctions:
    symbols = ["qp_alloc", *(f"qp_call{count}" for count in range(1, _MOST + 1))]
    declared = "\n".join(f"declare {prototype}" for prototype in _PYTHON.values())
    image = assemble("\n".join([declared, _ir_alloc(), *map(_ir_call, range(1, _MOST + 1))]), opt=0)
    return PythonFunctions(image, tuple(_PYTHON), dict.fromkeys(symbols, FAST))


def _ir_call(count: int) -> str:
    words = ", ".join(f"ptr %word{n}" for n in range(count))
    return f"""{_ir_head(f"qp_call{count}", count)}
  %status = call i32 %function({words})
  call void @PyEval_RestoreThread(ptr %thread)
  %number = zext i32 %status to i64
  %result = call ptr @PyLong_FromLongLong(i64 %number)
  ret ptr %result
{_ir_untried(UNTRIED)}
}}"""


def _ir_alloc() -> str:
    return f"""{_ir_head("qp_alloc", 2, "%found = alloca i64")}
  %status = call i32 %function(ptr %found, ptr %word0, ptr %word1)
  call void @PyEval_RestoreThread(ptr %thread)
  %address = load i64, ptr %found
  %number = zext i32 %status to i64
  %refusal = sub i64 0, %number
  %failed = icmp ne i32 %status, 0
  %answer = select i1 %failed, i64 %refusal, i64 %address
  %result = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %result
{_ir_untried(-UNTRIED)}
}}"""


def _ir_untried(answer: int) -> str:
    return f"""unselected:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %untried
untried:
  %nothing = call ptr @PyLong_FromLongLong(i64 {answer})
  ret ptr %nothing"""


def _ir_head(name: str, count: int, start: str = "") -> str:
    """The function up to the call: ``%function`` and ``%word0`` … as pointers; only integers raise no TypeError."""
    words = "\n".join(
        f"""  %at{n} = getelementptr ptr, ptr %arguments, i64 {n}
  %given{n} = load ptr, ptr %at{n}
  %word{n} = call ptr @PyLong_AsVoidPtr(ptr %given{n})"""
        for n in range(count)
    )
    return f"""define ptr @{name}(ptr %self, ptr %arguments, i64 %count) {{
  {start}
  %counted = icmp eq i64 %count, {count}
  br i1 %counted, label %convert, label %miscounted
miscounted:
  call i32 @PyErr_BadArgument()
  ret ptr null
convert:
  %call = call ptr @PyLong_AsVoidPtr(ptr %self)
{words}
  %error = call ptr @PyErr_Occurred()
  %converted = icmp eq ptr %error, null
  br i1 %converted, label %look, label %refused
refused:
  ret ptr null
look:
  %lost.at = load ptr, ptr %call
  %lost = load i32, ptr %lost.at
  %usable = icmp eq i32 %lost, 0
  br i1 %usable, label %begin, label %untried
begin:
  %select.at = getelementptr i8, ptr %call, i64 8
  %select = load ptr, ptr %select.at
  %selects.at = getelementptr i8, ptr %call, i64 16
  %selects = load i64, ptr %selects.at
  %function.at = getelementptr i8, ptr %call, i64 24
  %function = load ptr, ptr %function.at
  %thread = call ptr @PyEval_SaveThread()
  %selected = call i32 %select(i64 %selects)
  %here = icmp eq i32 %selected, 0
  br i1 %here, label %run, label %unselected
run:"""
