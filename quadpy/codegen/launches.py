"""What the host and the report know about each launch: its symbol, its blocks and its effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from quadpy.codegen.extent import coarsened_extent, extent_of
from quadpy.codegen.frames import BlockCopies, Blocks, Coarsened, GpuFrame, GridStride, Reduced
from quadpy.codegen.plans.frame import block_of
from quadpy.codegen.plans.fusion import dynamic_shared
from quadpy.codegen.plans.joining import Joined
from quadpy.codegen.predication import Latch
from quadpy.codegen.targets.rules import GpuRules
from quadpy.core.artifact import AbiLayout, TaskInfo
from quadpy.core.flow import conditions_of
from quadpy.core.formula import Formula, Operation
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import needs_whole_blocks
from quadpy.ir.effects import effects_of, scratch_use
from quadpy.ir.nodes import Access
from quadpy.ir.printer import print_effects, print_expr

_MERGE: Final = "_merge"
_UNKNOWN: Final = 1 << 16
"""Assumed iterations of a loop that only the device can count, to choose the number of blocks."""


def entry_symbol(kernel: ir.Kernel) -> str:
    """The symbol of the CPU's entry point."""
    return f"{kernel.name}_entry"


def task_symbol(kernel: ir.Kernel, number: int) -> str:
    """The symbol of a task: the CPU's function over iterations [begin, end), the GPU's kernel.

    No symbol is just a name from the user: each ends in a suffix that quadpy adds (``_entry``, ``_t0``, …), so that
    none is a function that LLVM or the linker knows.  LLVM would call a user's ``memset`` for loops that fill memory.
    """
    return f"{kernel.name}_t{number}"


def symbols_of(kernel: ir.Kernel, number: int) -> tuple[str, ...]:
    """All symbols that launches of task ``number`` may have."""
    symbol = task_symbol(kernel, number)
    return symbol, symbol + _MERGE


def cpu_launch(kernel: ir.Kernel, number: int, layout: AbiLayout) -> TaskInfo:
    """Task ``number`` on the CPU, for a reader: the entry function calls it."""
    task, symbol = kernel.tasks[number], task_symbol(kernel, number)
    effects = print_effects(effects_of(task))
    if isinstance(task, ir.SerialTask):
        return TaskInfo(symbol, False, effects=effects)
    meets = needs_whole_blocks(task.body)
    dim, extent = (task.block_dim or 0, extent_of(task, layout)) if meets else (0, None)
    return TaskInfo(symbol, True, dim, _count(task), effects, extent=extent, has_barrier=meets)


def gpu_launches(
    kernel: ir.Kernel, number: int, frame: GpuFrame, layout: AbiLayout, gpu: GpuRules, joined: Joined
) -> tuple[TaskInfo, ...]:
    """The kernels that run task ``number`` and those that have ``joined`` it; one that is not parallel has one block."""
    task, symbol = kernel.tasks[number], task_symbol(kernel, number)
    effects, scratch, dim = print_effects(effects_of(task)), scratch_use(task), block_of(task, frame)
    if isinstance(task, ir.SerialTask):
        return (TaskInfo(symbol, False, dim, effects=effects, scratch=scratch),)
    strides = isinstance(frame, (Reduced, GridStride, BlockCopies)) or (isinstance(frame, Blocks) and frame.grid_stride)
    first = TaskInfo(
        symbol, True, dim, _count(task), effects, strides, extent_of(task, layout), needs_whole_blocks(task.body),
        coarsened_extent(task, layout, frame.axis, frame.size) if isinstance(frame, Coarsened) else None, scratch,
        shared_bytes=dynamic_shared(task, gpu),
    )  # fmt: skip
    if not isinstance(frame, Reduced):
        return (first,)
    others = [*joined.before, *joined.after]
    together = _print_together([task, *(kernel.tasks[other] for other in others)])
    symbols = tuple(task_symbol(kernel, other) for other in others)
    return first, TaskInfo(symbol + _MERGE, False, dim, effects=together, scratch=scratch, joined=symbols)


def _print_together(tasks: Iterable[ir.Task], conditions: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """The effects of a launch of several tasks, which also reads ``conditions``."""
    effects = dict.fromkeys(conditions, Access.READ)
    for task in tasks:
        for name, access in effects_of(task):
            effects[name] = effects.get(name, Access(0)) | access
    return print_effects(tuple(sorted(effects.items())))


def latch_launch(kernel: ir.Kernel, number: int, latch: Latch) -> TaskInfo:
    """The launch of latch ``number``."""
    asked = tuple((name, "r") for name in sorted({name for name, _ in latch.decisions}))
    return TaskInfo(f"{kernel.name}_latch{number}", False, 1, effects=asked, scratch="rw", latch=True)


def fused_launch(
    kernel: ir.Kernel, block_dim: int, layout: AbiLayout, at_once: Iterable[Sequence[int]], meetings: int
) -> TaskInfo:
    """The one launch of all tasks: its iterations are those of the tasks that run ``at_once``, in blocks of their own."""
    most: Formula = 1
    for numbers in at_once:
        together: Formula = (len(numbers) - 1) * (block_dim - 1)
        for task in (kernel.tasks[number] for number in numbers):
            extent = extent_of(task, layout) if isinstance(task, ir.ParallelTask) else 1
            extent = _UNKNOWN if extent is None else extent
            together = extent if together == 0 else Operation("add", (together, extent), 64)
        most = Operation("max", (most, together), 64)
    return TaskInfo(
        f"{kernel.name}_fused", True, block_dim, effects=_print_together(kernel.tasks, conditions_of(kernel.flow)),
        grid_stride=True, extent=most, scratch="rw", cooperative=True, meetings=meetings,
    )  # fmt: skip


def _count(task: ir.ParallelTask) -> str:
    """The number of iterations as text of the IR."""
    return " * ".join(
        f"range({', '.join(print_expr(e) for e in (axis.start, axis.stop, axis.step))})" for axis in task.axes
    )
