"""Tasks on a GPU: one kernel each, two where there are reductions.  Owns: ``lower_gpu_task``, ``launches_of``, ``strides_grid``.

A thread runs one iteration, the number of which is its place in the grid, or a few (``gpu_tiles``).  Where the host cannot know how many
iterations there are (an axis depends on a slot), or threads might be too few (64-bit loops), threads go on in steps of
the whole grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quadpy.codegen.lower.arguments import arguments_of
from quadpy.codegen.lower.axes import AxisOperands, lower_axes, total_count
from quadpy.codegen.lower.gpu.blocks import lower_blocks
from quadpy.codegen.lower.gpu.coarsened import lower_tiles, wants_tiles
from quadpy.codegen.lower.gpu.indirect import constant_arrays
from quadpy.codegen.lower.gpu.kernel import bind_axes, finish_kernel, grid_size, strided, thread_number
from quadpy.codegen.lower.gpu.latch import guard
from quadpy.codegen.lower.gpu.private import lower_private, private_arrays
from quadpy.codegen.lower.gpu.reduce import MERGE_BLOCK, lower_chunks, lower_merge
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, zero_variables
from quadpy.codegen.lower.task import task_name, task_scope
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.targets.rules import TargetRules
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, has_barrier, uses_block
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Access
from quadpy.ir.walk import walk

__all__ = ["Launch", "launches_of", "lower_gpu_task", "strides_grid"]

MERGE: Final = "_merge"
_SMALL_BLOCK: Final = 64
"""For loops that would leave units idle: mpm88's step over 8,192 particles takes 10.4 us in blocks of 64, 11.8 of 256."""
_SMALL_LOOP: Final = 256 * DEFAULT_BLOCK


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel of a task; see ``artifact.TaskInfo``."""

    symbol: str
    block_dim: int
    parallel: bool
    grid_stride: bool = False
    tiled: bool = False


def launches_of(kernel: ir.Kernel, number: int) -> tuple[Launch, ...]:
    """The kernels that run task ``number``, in order; what is not parallel is one block."""
    task, name = kernel.tasks[number], task_name(kernel, number)
    if isinstance(task, ir.SerialTask):
        return (Launch(name, 1, parallel=False),)
    if task.reductions:
        chunks = Launch(name, MERGE_BLOCK, parallel=True, grid_stride=True)
        return chunks, Launch(name + MERGE, MERGE_BLOCK, parallel=False)
    strides = strides_grid(task, kernel) or bool(private_arrays(kernel, task))
    tiled = not (strides or uses_block(task)) and wants_tiles(task, kernel)
    block = task.block_dim or (DEFAULT_BLOCK if strides or uses_block(task) or not _is_small(task) else _SMALL_BLOCK)
    return (Launch(name, block, parallel=True, grid_stride=strides, tiled=tiled),)


def _is_small(task: ir.ParallelTask) -> bool:
    """Whether it is known that a large GPU has more units than the loop has blocks of DEFAULT_BLOCK threads."""
    count = 1
    for axis in task.axes:
        ends = [e.value for e in (axis.start, axis.stop, axis.step) if isinstance(e, ir.Const)]
        if len(ends) < 3 or not ends[2]:
            return False
        count *= len(range(*map(int, ends)))
    return count <= _SMALL_LOOP


def lower_gpu_task(module: ModuleText, kernel: ir.Kernel, number: int, rules: TargetRules) -> None:
    """Write task ``number`` of ``kernel``."""
    task, launches = kernel.tasks[number], launches_of(kernel, number)
    scopes = [task_scope(module, kernel, rules, arguments_of(kernel), "%scratch") for _ in launches]
    for s in scopes:
        s.constants = constant_arrays(kernel, task, rules)
        guard(s, kernel, number)
    if isinstance(task, ir.ParallelTask) and task.reductions:
        lower_chunks(scopes[0], kernel, task)
        lower_merge(scopes[1], kernel, task)
    else:
        _plain_task(scopes[0], kernel, task, launches[0])
    for s, launch in zip(scopes, launches, strict=True):
        finish_kernel(s, kernel, launch.symbol, launch.block_dim, _exchanged(task))


def _exchanged(task: ir.Task) -> frozenset[str]:
    """The arrays through which the threads of a block may hand each other values: read and written, with barriers."""
    if not has_barrier(task.body):
        return frozenset()
    return frozenset(name for name, access in effects_of(task) if Access.READ in access and access != Access.READ)


def _plain_task(s: Scope, kernel: ir.Kernel, task: ir.Task, launch: Launch) -> None:
    variables = declare_variables(s, task.body)

    def iteration() -> None:
        zero_variables(s, variables)
        lower_block(s, task.body)

    if isinstance(task, ir.SerialTask):
        iteration()
    elif uses_block(task):
        lower_blocks(s, task, launch.block_dim, iteration, grid_stride=launch.grid_stride)
    elif private_arrays(kernel, task):
        lower_private(s, kernel, task, launch.block_dim, iteration)
    elif launch.grid_stride:
        _grid_loop(s, task, launch.block_dim, iteration)
    elif launch.tiled:
        lower_tiles(s, kernel, task, launch.block_dim, iteration)
    else:
        _one_each(s, task, launch.block_dim, iteration)


def strides_grid(task: ir.ParallelTask, kernel: ir.Kernel) -> bool:
    """Whether iterations are counted in 64 bits, since the host cannot count them or there may be that many."""
    reads_slot = any(isinstance(node, ir.SlotRead) for axis in task.axes for node in walk(axis))
    return reads_slot or max(kernel.index.bits, *(axis.var.type.bits for axis in task.axes)) == 64


def _one_each(s: Scope, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None]) -> None:
    out = s.text
    inside, done = out.label("inside"), out.label("done")
    axes = lower_axes(s, task.axes, 32)
    at = thread_number(s, block_dim, 32)
    out.branch(_below_total(s, at, axes), inside, done)
    out.start(inside)
    bind_axes(s, axes, at, 32)
    s.iteration = done
    iteration()
    out.start(done)


def _below_total(s: Scope, at: str, axes: list[AxisOperands]) -> str:
    """Whether thread ``at`` has an iteration; the product of several counts needs 64 bits."""
    if len(axes) == 1:
        return s.text.op(f"icmp ult i32 {at}, {axes[0].count}")
    total = "1"
    for axis in axes:
        total = s.text.op(f"mul i64 {total}, {s.text.op(f'zext i32 {axis.count} to i64')}")
    return s.text.op(f"icmp ult i64 {s.text.op(f'zext i32 {at} to i64')}, {total}")


def _grid_loop(s: Scope, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None]) -> None:
    """In 64 bits, where adding the grid's size cannot wrap."""
    axes = lower_axes(s, task.axes, 64)
    first, total = thread_number(s, block_dim, 64), total_count(s, axes, "i64")

    def one(k: str, following: str) -> None:
        bind_axes(s, axes, k, 64)
        s.iteration = following
        iteration()

    strided(s.text, first, total, grid_size(s, block_dim), one)
