"""The launches of a kernel on a GPU, and how a call puts them on streams.

Owns: TaskLaunch, task_launches, Submission, the limits of grids.  Imports: leaves, ``artifact`` and ``runtime``.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quadpy.artifact import CodeObject, Formula, TaskInfo
from quadpy.errors import DeviceError, DriverError
from quadpy.flow import Flow, Fork, Loop, has_loop
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.modules import Module
from quadpy.runtime.drivers.driver import Driver, FunctionHandle
from quadpy.runtime.launch.launch import MemoryRange
from quadpy.runtime.streams.timeline import Timeline
from quadpy.source import Span

__all__ = ["MOST_BLOCKS", "MOST_THREADS", "SPARE_BLOCKS", "Submission", "TaskLaunch", "task_launches"]

MOST_BLOCKS: Final = (1 << 31) - 1
"""CUDA's and HIP's limit for the blocks of a grid."""
MOST_THREADS: Final = (1 << 32) - 1
"""HIP's limit for its threads; and code with a thread for each iteration numbers them in 32 bits on every GPU."""
MANY_ITERATIONS: Final = 2048
"""For each of a device's units: from there on a thread may do several, and the device is still busy."""
_USUAL_UNITS: Final = 128
"""Of a device that does not say how many it has."""
SPARE_BLOCKS: Final = 8
"""Such a thread may number iterations behind the last one, and must not come round to the first."""
_STRIDING_BLOCKS: Final = 2048
"""Blocks of a loop that takes any number of them, where nobody knows how many the device runs at once."""


@dataclass(frozen=True, slots=True)
class TaskLaunch:
    """One kernel of the code object.

    ``extent`` counts its iterations by ``formula``, None where it is one block or only the device can count them.  One
    that ``strides`` has ``most`` blocks: as many as the device runs at once, since more would only come after them.  From
    ``many`` blocks on, ``tiled`` counts the threads, where it is there.
    The blocks of a ``cooperative`` one wait for each other.
    """

    name: str
    function: FunctionHandle
    block: tuple[int, int, int]
    parallel: bool
    strides: bool
    most: int
    formula: Formula | None
    extent: Evaluator | None
    span: Span | None
    tiled_formula: Formula | None = None
    tiled: Evaluator | None = None
    many: int = 0
    cooperative: bool = False

    def blocks(self, values: list[Any]) -> int | None:
        """How many blocks to launch; None where the grid cannot be that large."""
        if not self.parallel:
            return 1
        if self.extent is None:
            return self.most
        threads = self.block[0]
        blocks = -(-self.extent(values) // threads)
        if self.strides:
            return min(blocks, self.most)
        if blocks > MOST_BLOCKS or blocks * threads > MOST_THREADS:
            return None
        if self.tiled is not None and self.many <= blocks <= MOST_THREADS // threads - SPARE_BLOCKS:
            blocks = min(blocks, -(-self.tiled(values) // threads))  # it counts more of axes that are short
        return blocks

    def named(self, error: DeviceError) -> DeviceError:
        """``error`` of a driver that refused this launch, with the kernel's name and place."""
        place = f" ({self.span.file}:{self.span.line})" if self.span else ""
        found = copy.copy(error)
        found.message = f"kernel `{self.name}`{place}: {error.message}"
        found.args = (found.message,)
        return found


def task_launches(
    code: CodeObject, driver: Driver, module: Module, name: str, spans: Sequence[Span | None]
) -> Iterator[TaskLaunch]:
    """What each task of ``code`` asks of ``driver``; ``spans`` are their places, none for none known."""
    known = spans or [None] * len(code.tasks)
    many = MANY_ITERATIONS * (driver.info.units or _USUAL_UNITS)
    for task, span in zip(code.tasks, known, strict=True):
        extent = None if task.extent is None else compile_formula(task.extent)
        tiled = None if task.tiled is None else compile_formula(task.tiled)
        function, any_number = module.function(task.symbol), task.grid_stride or extent is None
        most = _at_once(driver, function, task.block_dim) if task.parallel and any_number else 1
        yield TaskLaunch(
            _title(name, task), function, (task.block_dim, 1, 1), task.parallel, task.grid_stride, most, task.extent,
            extent, span, task.tiled, tiled, many // task.block_dim, task.cooperative,
        )  # fmt: skip


def _at_once(driver: Driver, function: FunctionHandle, threads: int) -> int:
    """How many blocks of ``function`` the device runs at once.  No result depends on it."""
    try:
        return driver.max_blocks(function, threads, 0) or _STRIDING_BLOCKS
    except DriverError:  # an older library has no such call; what else is wrong, the launch says
        return _STRIDING_BLOCKS


def _title(kernel: str, task: TaskInfo) -> str:
    return f"{kernel}, {task.symbol}" if kernel else task.symbol


@dataclass(slots=True)
class Submission:
    """The launches of one call on their way to the driver, each with the same ``arguments``.

    ``conditions`` are where the conditions of the flow's loops lie on the device.
    """

    device: Device
    launches: tuple[TaskLaunch, ...]
    grids: Sequence[int]
    arguments: object
    conditions: dict[str, MemoryRange]

    def run(self, flow: Flow, on: Timeline) -> None:
        """The steps of ``flow``, in order, on ``on``: whatever comes on it next comes after all of them."""
        for step in flow:
            match step:
                case int():
                    self.launch(step, on)
                case Fork(branches=branches):
                    self._fork(branches, on)
                case Loop(condition=condition, body=body):
                    self._loop(condition, body, on)
                case _:
                    raise AssertionError(step)

    def launch(self, number: int, on: Timeline) -> None:
        blocks, task = self.grids[number], self.launches[number]
        if not blocks:
            return
        try:
            driver = self.device.driver
            launch = driver.launch_cooperative if task.cooperative else driver.launch
            launch(task.function, (blocks, 1, 1), task.block, 0, on.handle, self.arguments)
        except DeviceError as error:
            raise task.named(error) from error

    def _fork(self, branches: Sequence[Flow], on: Timeline) -> None:
        """One branch stays on the stream: the last, and one in which the host waits where there is one.

        Memory need not know the streams of the others: it belongs to this call until that returns, and by then they
        are joined, so that what comes after the launch's stream comes after them, too; a free as well as a read.
        """
        if not branches:
            return
        *others, last = sorted(branches, key=has_loop)
        with self.device.branches.fork(on, len(others)) as streams:
            for branch, stream in zip(others, streams, strict=True):
                self.run(branch, stream)
            self.run(last, on)

    def _loop(self, condition: str, body: Flow, on: Timeline) -> None:
        """The host reads the condition behind each iteration."""
        address, nbytes = self.conditions[condition]
        found = (ctypes.c_char * nbytes)()
        while True:
            self.run(body, on)
            self.device.staging.download(ctypes.addressof(found), address, nbytes, on.handle)
            if not any(found.raw):
                return
