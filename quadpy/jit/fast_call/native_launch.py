"""The launches of a kernel in one call of machine code.

Python takes longer to pass a launch's eleven arguments to a C function than to call one that loads them itself.  Therefore, a
little LLVM IR loads them from a *record*, whose changing part one ``struct.pack_into`` fills.  It releases Python's lock
for the driver's calls, as ctypes does.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Final

from quadpy.errors import QuadpyError
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.runtime.cpu.orc import assemble
from quadpy.runtime.cpu.python_functions import NO_ARGUMENTS, PythonFunctions
from quadpy.runtime.drivers.driver import Driver, NativeLaunch

_HEAD: Final = struct.Struct("=QQQQ")
"""The addresses of the driver's calls and of the tasks, the number of tasks, the address of the ``extra`` words."""
_CALLS: Final = struct.Struct("=QQQQ")
"""The addresses of the mark of a lost device and of ``select``, the argument of that, the address of the launch."""
_TASK: Final = struct.Struct("=QIIII")
"""A function, the threads of a block along three axes, bytes of shared memory."""

HEAD: Final = _HEAD.size
"""Where the changing part of a record begins: the stream, the blocks of each task, the arguments."""


def _ir_load(name: str, type: str, base: str, offset: int) -> str:
    """``%name``, the value ``offset`` bytes after ``%base``."""
    return f"""%{name}.at = getelementptr i8, ptr %{base}, i64 {offset}
  %{name} = load {type}, ptr %{name}.at"""


_IR: Final = f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_AsVoidPtr(ptr)

define ptr @qp_launch(ptr %self, ptr %unused) {{
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %thread = call ptr @PyEval_SaveThread()
  %code = call i64 @qp_launch_tasks(ptr %record)
  call void @PyEval_RestoreThread(ptr %thread)
  %result = call ptr @PyLong_FromLongLong(i64 %code)
  ret ptr %result
}}

define i64 @qp_launch_tasks(ptr %record) {{
entry:
  %calls = load ptr, ptr %record
  %lost.at = load ptr, ptr %calls
  %lost = load i32, ptr %lost.at
  %usable = icmp eq i32 %lost, 0
  br i1 %usable, label %select, label %refused
select:
  {_ir_load("select.call", "ptr", "calls", 8)}
  {_ir_load("which", "i64", "calls", 16)}
  %selected = call i32 %select.call(i64 %which)
  %here = icmp eq i32 %selected, 0
  br i1 %here, label %begin, label %refused
refused:
  ret i64 -1
begin:
  {_ir_load("launch", "ptr", "calls", 24)}
  {_ir_load("tasks", "ptr", "record", 8)}
  {_ir_load("count", "i64", "record", 16)}
  {_ir_load("extra", "ptr", "record", 24)}
  {_ir_load("stream", "ptr", "record", 32)}
  %grids = getelementptr i8, ptr %record, i64 40
  br label %head
head:
  %n = phi i64 [0, %begin], [%next, %done]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %task, label %end
end:
  ret i64 0
task:
  %next = add i64 %n, 1
  %grid.at = getelementptr i32, ptr %grids, i64 %n
  %grid = load i32, ptr %grid.at
  %empty = icmp eq i32 %grid, 0
  br i1 %empty, label %done, label %one
one:
  %offset = mul i64 %n, 24
  %task.at = getelementptr i8, ptr %tasks, i64 %offset
  %function = load ptr, ptr %task.at
  {_ir_load("x", "i32", "task.at", 8)}
  {_ir_load("y", "i32", "task.at", 12)}
  {_ir_load("z", "i32", "task.at", 16)}
  {_ir_load("shared", "i32", "task.at", 20)}
  %status = call i32 %launch(ptr %function, i32 %grid, i32 1, i32 1, i32 %x, i32 %y, i32 %z, i32 %shared, ptr %stream,
    ptr null, ptr %extra)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %failed
done:
  br label %head
failed:
  %high = shl i64 %next, 32
  %low = zext i32 %status to i64
  %code = or i64 %high, %low
  ret i64 %code
}}
"""

_FUNCTIONS: Final = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLongLong", "PyLong_AsVoidPtr")


def native_tasks(driver: Driver, tasks: Sequence[TaskLaunch]) -> NativeTasks | None:
    """``tasks`` for the driver's own launch; None if that cannot be called, or no machine code can be made for it."""
    calls = driver.native_launch() if sys.implementation.name == "cpython" else None
    if calls is None:
        return None
    try:
        _entry()
    except (QuadpyError, OSError, RuntimeError):  # a system that forbids generating code
        return None
    return NativeTasks(calls, tasks)


class NativeTasks:
    """The tasks of one kernel, as machine code reads them."""

    def __init__(self, calls: NativeLaunch, tasks: Sequence[TaskLaunch]) -> None:
        self.refused = calls.refused
        self._calls = ctypes.create_string_buffer(_CALLS.pack(calls.lost, calls.select, calls.selects, calls.launch))
        table = b"".join(_TASK.pack(task.function, *task.block, task.shared_bytes) for task in tasks)
        self._tasks, self._count = ctypes.create_string_buffer(table), len(tasks)

    def record(self, block: bytearray, extra: int) -> Callable[[], int]:
        """A function that launches all tasks that have blocks, as the record ``block`` says, and keeps it alive.

        It returns 0 when the driver took all, and -1 if nothing was tried, since the device is lost or cannot be
        selected.  Otherwise it returns the driver's status, and from bit 32 on the number of the task that was refused,
        from 1; the tasks before that one are launched.
        """
        _HEAD.pack_into(block, 0, ctypes.addressof(self._calls), ctypes.addressof(self._tasks), self._count, extra)
        # Two threads may each make the code at the first launch: what the cache drops lives as its functions do.
        return _entry().function("qp_launch", ctypes.addressof(ctypes.c_char.from_buffer(block)), (self, block, extra))


@functools.cache
def _entry() -> PythonFunctions:
    return PythonFunctions(assemble(_IR, opt=0), _FUNCTIONS, {"qp_launch": NO_ARGUMENTS})
