"""Decides whether all tasks of a kernel can be one GPU kernel, and its block size."""

from __future__ import annotations

from typing import Final

from quadpy.codegen.plans.privatise import block_copies, scalar_count
from quadpy.codegen.reduction import WIDTH
from quadpy.codegen.targets.rules import GpuRules
from quadpy.core.light import dataclass
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, uses_block
from quadpy.ir.walk import walk

_MOST_TASKS: Final = 64
"""Beyond that, code of one kernel takes long to compile, and its registers are those of the worst task."""


class NotFusable(CodegenError):
    """The tasks of a kernel cannot be one launch; the message says why."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """One launch of all tasks: threads per block, and whether there is memory for block copies."""

    block_dim: int
    copies: bool


def fusion_of(kernel: ir.Kernel, gpu: GpuRules | None) -> Fusion:
    """How one launch runs all tasks of ``kernel``; NotFusable if it cannot."""
    if gpu is None:
        raise NotFusable("a CPU runs all tasks in one call anyway", kernel.span)
    asked, shared = _asked(kernel), _shared_by_tasks(kernel)
    if why := _why_not(kernel, asked, shared, gpu):
        raise NotFusable(why, kernel.span)
    return Fusion(next(iter(asked), DEFAULT_BLOCK), shared + _copied(kernel) <= gpu.shared_bytes)


def _why_not(kernel: ir.Kernel, asked: set[int], shared: int, gpu: GpuRules) -> str:
    if any(isinstance(node, ir.Return) for task in kernel.tasks for node in walk(task)):
        return "it returns a result"
    if len(kernel.tasks) > _MOST_TASKS:
        return f"it has {len(kernel.tasks)} tasks; {_MOST_TASKS} are the most"
    if len(asked) > 1:
        return f"its loops ask for blocks of {' and '.join(map(str, sorted(asked)))} threads"
    if shared > gpu.shared_bytes:
        return f"its tasks together need {shared} bytes of shared memory; {gpu.shared_bytes} are the most"
    return ""


def _asked(kernel: ir.Kernel) -> set[int]:
    """The block sizes that tasks ask for."""
    loops = _loops(kernel)
    blocks = {loop.block_dim or DEFAULT_BLOCK for loop in loops if uses_block(loop)}
    return blocks | {WIDTH for loop in loops if loop.reductions}


def _copied(kernel: ir.Kernel) -> int:
    """Bytes of the copies of all loops that accumulate into small arrays."""
    copies = {(copy.array.name, copy.cells): copy for task in kernel.tasks for copy in block_copies(kernel, task)}
    return sum(copy.cells * copy.array.type.elem.nbytes for copy in copies.values())


def _shared_by_tasks(kernel: ir.Kernel) -> int:
    """Bytes of shared memory that LLVM lays out besides copies; it ends the process if they are too many."""
    loops = _loops(kernel)
    arrays = {array.name: array for loop in loops for array in loop.shared}
    results = 8 * WIDTH if any(loop.reductions for loop in loops) else 0
    return results + sum(-(-shared_bytes(array) // 16) * 16 for array in arrays.values())


def shared_bytes(array: ir.SharedArray) -> int:
    """The size of a shared array."""
    return scalar_count(array.type) * array.type.elem.nbytes


def _block_bytes(task: ir.ParallelTask) -> int:
    """Bytes of a block's shared memory that the shared arrays of a loop take."""
    return sum(-(-shared_bytes(array) // 16) * 16 for array in task.shared)


def dynamic_shared(task: ir.ParallelTask, gpu: GpuRules) -> int:
    """Bytes of shared memory that a launch of the loop asks for: all of its arrays, if they are too large to be declared."""
    used = _block_bytes(task)
    return used if used > gpu.shared_bytes else 0


def _loops(kernel: ir.Kernel) -> list[ir.ParallelTask]:
    return [task for task in kernel.tasks if isinstance(task, ir.ParallelTask)]
