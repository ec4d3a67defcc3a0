"""The launches of a kernel on a GPU, and how a call puts them on streams."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Iterator, Sequence
from typing import Final

from quadpy.core.artifact import CodeObject, TaskInfo
from quadpy.core.flow import Flow, Fork, Loop, has_loop
from quadpy.core.importing import import_late
from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.core.target import parse_target
from quadpy.errors import DeviceError, DriverError
from quadpy.jit.formula import Evaluator, compile_formula
from quadpy.jit.plan import ArgumentValue
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.modules import Label, Module
from quadpy.runtime.drivers.driver import Driver, FunctionHandle
from quadpy.runtime.launch.launch import MemoryRange
from quadpy.runtime.streams.timeline import Timeline

MOST_BLOCKS: Final = (1 << 31) - 1
"""CUDA's and HIP's limit for the blocks of a grid."""
MOST_THREADS: Final = (1 << 32) - 1
"""HIP's limit for its threads; and code with a thread for each iteration numbers them in 32 bits on every GPU."""
MANY_ITERATIONS: Final = 2048
"""Iterations per compute unit from which on a thread may run several while the device stays busy."""
_USUAL_UNITS: Final = 128
"""Compute units of a device that does not say how many it has."""
SPARE_BLOCKS: Final = 8
"""A thread of coarsened code may number iterations after the last one, and must not wrap round to the first."""
_GRID_STRIDE_BLOCKS: Final = 2048
"""Blocks of a grid-stride loop if the driver does not say how many the device runs at once."""


@dataclass(frozen=True, slots=True)
class TaskLaunch:
    """One kernel of the code object.

    name         for people: kernel and task
    block        threads of a block along three axes
    parallel     False for one block
    grid_stride  whether any number of blocks runs all iterations
    max_blocks   of a grid-stride loop: as many as the device runs at once, since more would only run after them
    extent       counts the iterations; None if only the device can
    span         where the task begins; None if that is unknown
    coarsened    counts the threads if each runs several iterations; None if none does
    coarsen_from from this many blocks on threads are coarsened
    cooperative  whether the blocks wait for each other
    shared_bytes shared memory that the launch asks for
    """

    name: str
    function: FunctionHandle
    block: tuple[int, int, int]
    parallel: bool
    grid_stride: bool
    max_blocks: int
    extent: Evaluator | None
    span: Span | None
    coarsened: Evaluator | None = None
    coarsen_from: int = 0
    cooperative: bool = False
    shared_bytes: int = 0

    def blocks(self, values: Sequence[ArgumentValue]) -> int | None:
        """How many blocks to launch; None if the grid cannot be that large."""
        if not self.parallel:
            return 1
        if self.extent is None:
            return self.max_blocks
        threads = self.block[0]
        blocks = -(-self.extent(values) // threads)
        if self.grid_stride:
            return min(blocks, self.max_blocks)
        if blocks > MOST_BLOCKS or blocks * threads > MOST_THREADS:
            return None
        if self.coarsened is not None and self.coarsen_from <= blocks <= MOST_THREADS // threads - SPARE_BLOCKS:
            blocks = min(blocks, -(-self.coarsened(values) // threads))  # it counts too many threads for short axes
        return blocks

    def named(self, error: DeviceError) -> DeviceError:
        """``error`` of a driver that refused this launch, with the name and line of the kernel."""
        line = f" ({self.span.file}:{self.span.line})" if self.span else ""
        found = copy.copy(error)
        found.message = f"kernel `{self.name}`{line}: {error.message}"
        found.args = (found.message,)
        return found


def task_launches(
    code: CodeObject, driver: Driver, module: Module, name: str, spans: Sequence[Span | None]
) -> Iterator[TaskLaunch]:
    """The launch of each task of ``code``; ``spans`` says where they begin, and is empty if that is unknown."""
    many = MANY_ITERATIONS * (driver.info.units or _USUAL_UNITS)
    several = len(code.tasks) > 1
    for number, (task, span) in enumerate(zip(code.tasks, spans or [None] * len(code.tasks), strict=True)):
        extent = None if task.extent is None else compile_formula(task.extent)
        coarsened = None if task.coarsened is None else compile_formula(task.coarsened)
        label = Label(name or task.symbol, number if several else None, span)
        function, any_number = module.function(task.symbol, label), task.grid_stride or extent is None
        most = _resident_blocks(driver, function, task) if task.parallel and any_number else 1
        yield TaskLaunch(
            f"{name}, {task.symbol}" if name else task.symbol, function, (task.block_dim, 1, 1), task.parallel,
            task.grid_stride, most, extent, span, coarsened, many // task.block_dim, task.cooperative, task.shared_bytes,
        )  # fmt: skip


def _resident_blocks(driver: Driver, function: FunctionHandle, task: TaskInfo) -> int:
    """How many blocks of ``function`` the device runs at once.  No result depends on it."""
    try:
        return driver.max_blocks(function, task.block_dim, task.shared_bytes) or _GRID_STRIDE_BLOCKS
    except DriverError:  # an older library has no such call; the launch reports any other error
        return _GRID_STRIDE_BLOCKS


def upload_kernels_on(device: Device) -> dict[int, FunctionHandle]:
    """The kernels that upload arguments, for ``ArgumentMemory``; DriverError if the driver refuses them."""
    upload = import_late("quadpy.codegen.support.argument_upload")  # which compiles them
    module = device.modules.load(upload.upload_code(parse_target(device.driver.info.arch)))
    return {size: module.function(upload.upload_name(size)) for size in upload.UPLOAD_SIZES}


@dataclass(slots=True)
class Submission:
    """The launches of one call, each with the same ``arguments``.

    ``conditions`` says where the conditions of the flow's loops are in the device's memory.
    """

    device: Device
    launches: tuple[TaskLaunch, ...]
    grids: Sequence[int]
    arguments: object
    conditions: dict[str, MemoryRange]

    def run(self, flow: Flow, on: Timeline) -> None:
        """Launches the steps of ``flow`` in order on ``on``; later work on it comes after all of them."""
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
            launch(task.function, (blocks, 1, 1), task.block, task.shared_bytes, on.handle, self.arguments)
        except DeviceError as error:
            raise task.named(error) from error

    def _fork(self, branches: Sequence[Flow], on: Timeline) -> None:
        """Runs one branch on the stream itself: one with a loop, for which the host waits, or the last one.

        Memory need not know the streams of the other branches: it belongs to this call until that returns, and by then
        they are joined, so later work on the stream, a free as well as a read, comes after them too.
        """
        if not branches:
            return
        *others, last = sorted(branches, key=has_loop)
        with self.device.branches.fork(on, len(others)) as streams:
            for branch, stream in zip(others, streams, strict=True):
                self.run(branch, stream)
            self.run(last, on)

    def _loop(self, condition: str, body: Flow, on: Timeline) -> None:
        """The host reads the condition after each iteration."""
        address, nbytes = self.conditions[condition]
        found = (ctypes.c_char * nbytes)()
        while True:
            self.run(body, on)
            self.device.staging.download(ctypes.addressof(found), address, nbytes, on.handle)
            if not any(found.raw):
                return
