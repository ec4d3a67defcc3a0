"""Tasks on a GPU: a kernel for each launch, around the frame that the task's schedule asks for."""

from __future__ import annotations

from collections.abc import Callable

from quadpy.codegen.frames import BlockCopies, Blocks, Coarsened, GridStride, Reduced, Serial, ThreadEach
from quadpy.codegen.lower.arguments import arguments_of, new_function
from quadpy.codegen.lower.axes import bind_axes, lower_axes, total_count, wide_total
from quadpy.codegen.lower.gpu.blocks import lower_blocks
from quadpy.codegen.lower.gpu.coarsened import lower_coarsened
from quadpy.codegen.lower.gpu.copies import lower_copies
from quadpy.codegen.lower.gpu.entry import RETURNED, finish_kernel
from quadpy.codegen.lower.gpu.latch import return_unless, return_unless_turn
from quadpy.codegen.lower.gpu.reduce import lower_chunks, lower_merge
from quadpy.codegen.lower.gpu.threads import grid_size, thread_from_share, thread_number
from quadpy.codegen.lower.loops import strided
from quadpy.codegen.lower.memory import is_open
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import lower_iteration
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.schedule import KernelSchedule, Schedule
from quadpy.ir import nodes as ir


def lower_gpu_task(module: ModuleText, kernel: KernelSchedule, schedule: Schedule) -> None:
    """Write the kernels of a task; none for one that has joined another."""
    arguments = arguments_of(kernel)
    scopes = [new_function(module, kernel.kernel, kernel.rules, arguments) for _ in schedule.launches]
    for s in scopes:
        s.constants = schedule.constants
        s.returned = RETURNED if kernel.takes_results else ""
        if schedule.segment is not None:
            return_unless_turn(s, kernel, schedule.segment)
        if schedule.task.gate is not None:
            return_unless(s, is_open(s, schedule.task.gate))
    match schedule.task, schedule.frame:
        case _ if not scopes:
            pass
        case ir.SerialTask() as task, Serial():
            lower_iteration(scopes[0], task.body)()
        case ir.ParallelTask() as task, Reduced() as frame:
            lower_chunks(scopes[0], task, frame)
            if schedule.before or schedule.after:
                scopes[1].constants = frozenset()
            lower_merge(scopes[1], task, frame, schedule.before, schedule.after)
        case ir.ParallelTask() as task, _:
            lower_loop(scopes[0], schedule, task, schedule.launches[0].block_dim)
    for s, launch in zip(scopes, schedule.launches, strict=True):
        finish_kernel(s, kernel, launch.symbol, launch.block_dim, schedule.exchanged)


def lower_loop(
    s: Scope, schedule: Schedule, task: ir.ParallelTask, block_dim: int, share: tuple[int, int] = (0, 1)
) -> None:
    """Write the iterations of ``task``, which has no reductions, for a grid in blocks of ``block_dim`` threads.

    A loop in steps of the grid begins with a ``share`` of the blocks: see ``FusedSchedule``.
    """
    iteration = lower_iteration(s, task.body)
    match schedule.frame:
        case Blocks() as frame:
            dynamic = any(launch.shared_bytes for launch in schedule.launches)
            lower_blocks(s, task, frame, block_dim, iteration, dynamic=dynamic)
        case BlockCopies(copies=copies):
            lower_copies(s, task, copies, block_dim, iteration)
        case GridStride(bits=bits):
            _grid_stride(s, task, thread_from_share(s, block_dim, bits, share), block_dim, iteration, bits)
        case Coarsened() as frame:
            lower_coarsened(s, task, frame, block_dim, iteration)
        case ThreadEach():
            _thread_each(s, task, block_dim, iteration)
        case frame:
            raise AssertionError(f"{frame} is not a frame of a GPU's loop")


def _thread_each(s: Scope, task: ir.ParallelTask, block_dim: int, iteration: Callable[[], None]) -> None:
    out = s.text
    inside, done = out.label("inside"), out.label("done")
    axes = lower_axes(s, task.axes, 32)
    at = thread_number(s, block_dim, 32)
    if len(axes) == 1:
        exists = out.op(f"icmp ult i32 {at}, {axes[0].count}")
    else:  # the product of several counts needs 64 bits
        total = wide_total(s, axes)
        exists = out.op(f"icmp ult i64 {out.op(f'zext i32 {at} to i64')}, {total}")
    out.branch(exists, inside, done)
    out.start(inside)
    bind_axes(s, axes, at, 32)
    s.iteration = done
    iteration()
    out.start(done)


def _grid_stride(
    s: Scope, task: ir.ParallelTask, first: str, block_dim: int, iteration: Callable[[], None], bits: int
) -> None:
    """In 64 bits, adding the grid's size cannot wrap; 32 bits are used if the host has counted the iterations."""
    axes = lower_axes(s, task.axes, bits)
    total = total_count(s, axes, f"i{bits}")
    size = grid_size(s, block_dim)

    def one(k: str, following: str) -> None:
        bind_axes(s, axes, k, bits)
        s.iteration = following
        iteration()

    step = size if bits == 64 else s.text.op(f"trunc i64 {size} to i32")
    strided(s.text, first, total, step, one, bits=bits)
