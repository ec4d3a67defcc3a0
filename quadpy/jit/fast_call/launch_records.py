"""The records by which a kernel's tasks are launched together."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from quadpy.errors import DeviceError
from quadpy.jit.fast_call.native_launch import HEAD, native_tasks
from quadpy.jit.gpu_launch import TaskLaunch
from quadpy.runtime.drivers.driver import Driver, StreamHandle

Record: TypeAlias = tuple[bytearray, Callable[[], int], object]
"""The record, a function that launches its tasks, and the driver's form of the arguments, which it keeps alive.

The record is HEAD bytes, the stream, the blocks of each task and the argument block.  The function returns 0 when the
driver took all tasks.  One call at a time has a record: a finalizer may launch the same kernel between any two of
Python's steps.
"""


class LaunchRecords:
    """The records of one plan; ``spare`` are not in use.  An exception loses one.

    ``start`` is where the argument block of ``nbytes`` bytes begins.
    """

    def __init__(self, driver: Driver, tasks: Sequence[TaskLaunch], nbytes: int) -> None:
        self._driver, self._tasks, self._nbytes = driver, tasks, nbytes
        self._native = native_tasks(driver, tasks)
        self.head = struct.Struct(f"=Q{len(tasks)}I")
        self.start = HEAD + -(-self.head.size // 8) * 8
        self.spare: list[Record] = []

    def make(self) -> Record:
        """A new record."""
        block = bytearray(self.start + self._nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(block)) + self.start
        arguments = self._driver.launch_arguments(address, self._nbytes)
        if self._native is not None:
            assert isinstance(arguments, int)
            return block, self._native.record(block, arguments), arguments
        return block, lambda: self._launch(block, arguments), arguments

    def settle(self, record: Record, code: int) -> bool:
        """Launches the remaining tasks after the function returned a nonzero ``code``; False if nothing was launched.

        Raises:
            DeviceError: the driver refuses a task, with the name and line of the kernel.
        """
        if code < 0 or self._native is None:
            return False
        block, _, arguments = record
        self._launch(block, arguments, first=(code >> 32) - 1, status=code & 0xFFFFFFFF)
        return True

    def launch(self, record: Record) -> None:
        """Launches all tasks without machine code, as where ``settle`` returned False."""
        self._launch(record[0], record[2])

    def _launch(self, block: bytearray, arguments: object, first: int = 0, status: int = 0) -> int:
        """Launches the tasks from ``first`` on by the driver; ``status`` is what it returned for the first."""
        stream, *grids = self.head.unpack_from(block, HEAD)
        for number, (task, blocks) in enumerate(zip(self._tasks, grids, strict=True)):
            if number < first or not blocks:
                continue
            call = (task.function, (blocks, 1, 1), task.block, task.shared_bytes, StreamHandle(stream), arguments)
            try:
                if status and number == first and self._native is not None:
                    self._native.refused(status, *call)
                else:
                    self._driver.launch(*call)
            except DeviceError as error:
                raise task.named(error) from error
        return 0
