"""Tasks on a GPU: a kernel for each launch, around the frame that the task's schedule asks for.

In loops whose iterations know their block, an iteration is a thread, a block of iterations a thread block.  If iterations meet at barriers, all blocks are
complete: the launch has refused other numbers of iterations, so each thread has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.codegen.frames import BlockCopies, Blocks, Coarsened, GridStride, Reduced, Serial, ThreadEach
from quadpy.codegen.lower.arguments import arguments_of, new_function
from quadpy.codegen.lower.axes import bind_axes, lower_axes, total_count, wide_total
from quadpy.codegen.lower.gpu.coarsened import lower_coarsened
from quadpy.codegen.lower.gpu.copies import lower_copies
from quadpy.codegen.lower.gpu.entry import RETURNED, finish_kernel
from quadpy.codegen.lower.gpu.latch import return_unless, return_unless_turn
from quadpy.codegen.lower.gpu.reduce import lower_chunks, lower_merge
from quadpy.codegen.lower.gpu.threads import (
    barrier,
    block_number,
    gpu_rules,
    grid_size,
    thread_from_share,
    thread_in_block,
    thread_number,
)
from quadpy.codegen.lower.loops import strided
from quadpy.codegen.lower.memory import is_open
from quadpy.codegen.lower.scope import ArrayOperands, Scope
from quadpy.codegen.lower.statements import lower_iteration
from quadpy.codegen.lower.text import ModuleText, memory_type, symbol
from quadpy.codegen.plans.fusion import shared_bytes
from quadpy.codegen.plans.privatise import scalar_count
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadpy.codegen.schedule import KernelSchedule, Schedule


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


_DYNAMIC: Final = "@dynamic_shared"
"""The shared memory that a launch asks for."""


def lower_blocks(
    s: Scope, task: ir.ParallelTask, frame: Blocks, block_dim: int, iteration: Callable[[], None], *, dynamic: bool
) -> None:
    """``iteration`` writes the statements; shared arrays, the block and the loop variables are bound for it.

    ``dynamic`` says whether the launch asks for the shared memory; if not, the code declares it.
    """
    _define_shared(s, task, dynamic=dynamic)
    s.thread = thread_in_block(s)
    if frame.grid_stride:
        _stride(s, task, frame, block_dim, iteration)
        return
    out = s.text
    s.block = block_number(s)
    axes = lower_axes(s, task.axes, 32)
    wraps = "nuw nsw" if _counts_naturals(task) else "nuw"  # with nsw, LLVM recovers block and thread from the number
    k = out.op(f"add {wraps} i32 {out.op(f'mul {wraps} i32 {s.block}, {block_dim}')}, {s.thread}")
    inside, s.iteration = out.label("inside"), out.label("done")
    if not frame.is_whole:
        wide = lower_axes(s, task.axes, 64)
        here = out.op(f"icmp ult i64 {out.op(f'zext i32 {k} to i64')}, {total_count(s, wide, 'i64')}")
        out.branch(here, inside, s.iteration)
    out.start(inside)
    bind_axes(s, axes, k, 32)
    iteration()
    out.start(s.iteration)


def _counts_naturals(task: ir.ParallelTask) -> bool:
    """Whether the iterations are known to be fewer than 2**31: one signed axis from 0 or more."""
    axis = task.axes[0]
    starts = isinstance(axis.start, ir.Const) and axis.start.value >= 0
    return (
        len(task.axes) == 1
        and starts
        and axis.var.type.kind == "int"
        and isinstance(axis.step, ir.Const)
        and axis.step.value > 0
    )


def _stride(s: Scope, task: ir.ParallelTask, frame: Blocks, block_dim: int, iteration: Callable[[], None]) -> None:
    """A thread block takes one block of iterations after another; no thread writes what another still reads."""
    out = s.text
    axes = lower_axes(s, task.axes, 64)
    total, thread = total_count(s, axes, "i64"), out.op(f"zext i32 {s.thread} to i64")
    blocks = out.op(f"udiv i64 {out.op(f'add nuw i64 {total}, {block_dim - 1}')}, {block_dim}")
    launched = out.op(f"udiv i64 {grid_size(s, block_dim)}, {block_dim}")

    def one(block: str, following: str) -> None:
        s.block = out.op(f"trunc i64 {block} to i32")
        k = out.op(f"add nuw i64 {out.op(f'mul nuw i64 {block}, {block_dim}')}, {thread}")
        s.iteration = last = out.label("last")
        if not frame.is_whole:
            inside = out.label("inside")
            out.branch(out.op(f"icmp ult i64 {k}, {total}"), inside, last)
            out.start(inside)
        bind_axes(s, axes, k, 64)
        iteration()
        out.start(last)
        if frame.is_whole:
            barrier(s)
        out.jump(following)

    strided(out, out.op(f"zext i32 {block_number(s)} to i64"), blocks, launched, one)


def _define_shared(s: Scope, task: ir.ParallelTask, *, dynamic: bool) -> None:
    """Each shared array is a variable of the module, or a part of the memory that the launch asks for.

    LLVM ends the process if variables are too large for the target.
    """
    used, gpu = 0, gpu_rules(s)
    if dynamic:
        s.text.module.define(_DYNAMIC, "external addrspace(3) global [0 x i8], align 16")
    for array in task.shared:
        first, used = used, used + -(-shared_bytes(array) // 16) * 16
        if used > gpu.most_shared_bytes:
            raise CodegenError(
                f"the shared arrays of this loop need {used} bytes up to this one; {s.rules.family} has "
                f"{gpu.most_shared_bytes} per block", array.span, hint="make them smaller, or use a narrower type",
            )  # fmt: skip
        name, t = symbol(array.name), array.type
        if dynamic:
            name = s.text.op(f"getelementptr i8, ptr addrspace(3) {_DYNAMIC}, i32 {first}")
        else:
            cells = f"[{scalar_count(t)} x {memory_type(t.elem)}]"
            s.text.module.define(name, f"internal addrspace(3) global {cells} undef, align 16")
        extents = tuple(map(str, t.shape or ()))
        s.arrays[array.name] = ArrayOperands(t, name, extents, extents)
