"""Chooses the frame and the block size of each task, and which loops on the CPU LLVM must not vectorise.

It must not vectorise those whose vectors would be taken apart to be stored: ``p[i].v *= f`` stores three scalars of a record and leaves gaps.  A vector of such a scalar of several iterations is stored
element by element, and one is loaded by rearranging whole records; LLVM's estimates of both are low.  It pays only
if the iterations compute much with what they load.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from quadpy.codegen import frames
from quadpy.codegen.plans.coarsen import coarsened_frame
from quadpy.codegen.plans.cost import grain_of, is_slow, lines_of, private_cost
from quadpy.codegen.plans.privatise import block_copies, plan_privates
from quadpy.codegen.plans.rows import row_guard
from quadpy.codegen.plans.sections import plan_sections
from quadpy.codegen.plans.vectorise import Closeness, plan_vector, step_of
from quadpy.codegen.reduction import WIDTH, are_many, groups_of
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, done_by_waves, done_together, needs_whole_blocks, uses_block
from quadpy.ir.touches import touches
from quadpy.ir.uniform import varying
from quadpy.ir.walk import walk

if TYPE_CHECKING:
    from quadpy.codegen.frames import CpuFrame, GpuFrame

_SMALL_BLOCK: Final = 64
"""For loops that would leave units idle: mpm88's step over 8,192 particles takes 10.4 us in blocks of 64, 11.8 of 256."""
_SMALL_LOOP: Final = 256 * DEFAULT_BLOCK


def cpu_frame(kernel: ir.Kernel, task: ir.Task) -> CpuFrame:
    """The frame of ``task`` on the CPU."""
    if isinstance(task, ir.SerialTask):
        return frames.Serial()
    if uses_block(task):
        return _sectioned_blocks(task)
    if task.reductions:
        return frames.Reduced(groups_of(task.reductions), are_many(task.reductions), guard=row_guard(task))
    if (plan := plan_privates(kernel, task)) is not None:
        return frames.Privatised(plan, private_cost(task, _functions(kernel)), row_guard(task))
    vector = plan_vector(kernel, task)
    return frames.Iterations(vector, row_guard(task) if vector is None else None, is_scattered(kernel, task))


def _sectioned_blocks(task: ir.ParallelTask) -> frames.SectionedBlocks:
    wave = next((n.size for n in walk(task.body) if isinstance(n, ir.Wave)), 0)
    together = done_together(task.body)
    sections = plan_sections(task, done_by_waves(task.body) if wave else together)
    dim = task.block_dim or DEFAULT_BLOCK
    return frames.SectionedBlocks(dim, needs_whole_blocks(task.body), sections, together, wave)


def cpu_grain(kernel: ir.Kernel, task: ir.Task, frame: CpuFrame) -> int:
    """The amount of ``task`` that is worth giving to another thread: iterations, groups of them, or blocks."""
    if isinstance(task, ir.SerialTask):
        return 1
    match frame:
        case frames.SectionedBlocks(block_dim=size):
            pass
        case frames.Iterations(vector=vector) if vector is not None:
            size = vector.width
        case _:
            size = 1
    return max(1, grain_of(task, _functions(kernel)) // size)


def gpu_frame(kernel: ir.Kernel, task: ir.Task, first_cell: int) -> GpuFrame:
    """The frame of ``task`` as a separate kernel; ``first_cell`` is the first cell for results of its chunks."""
    if isinstance(task, ir.SerialTask):
        return frames.Serial()
    if task.reductions:
        return frames.Reduced(groups_of(task.reductions), are_many(task.reductions), first_cell)
    if uses_block(task):
        return frames.Blocks(needs_whole_blocks(task.body), _counts_in_64_bits(kernel, task))
    if copies := block_copies(kernel, task):
        return frames.BlockCopies(copies)
    if _counts_in_64_bits(kernel, task):
        return frames.GridStride(64)
    if _is_small(task):
        return frames.ThreadEach()
    return coarsened_frame(task, kernel) or frames.ThreadEach()


def fused_frame(kernel: ir.Kernel, task: ir.Task, first_cell: int, *, copies: bool) -> GpuFrame:
    """The frame of ``task`` where all tasks are one launch; ``copies`` says that there is memory for block copies."""
    match gpu_frame(kernel, task, first_cell):
        case frames.Serial() | frames.Reduced() | frames.GridStride() as frame:
            return frame
        case frames.Blocks(is_whole=is_whole):
            return frames.Blocks(is_whole, grid_stride=True)
        case frames.BlockCopies() as frame if copies:
            return frame
        case _:
            assert isinstance(task, ir.ParallelTask)
            return frames.GridStride(64 if _counts_in_64_bits(kernel, task) else 32)


def block_of(task: ir.Task, frame: GpuFrame) -> int:
    """Threads per block if the task is a kernel by itself."""
    if isinstance(task, ir.SerialTask):
        return 1
    if isinstance(frame, frames.Reduced):
        return WIDTH
    per_thread = isinstance(frame, (frames.ThreadEach, frames.Coarsened))
    return task.block_dim or (_SMALL_BLOCK if per_thread and _is_small(task) else DEFAULT_BLOCK)


def _counts_in_64_bits(kernel: ir.Kernel, task: ir.ParallelTask) -> bool:
    """Whether the host cannot count the iterations, or there may be 2**32 of them."""
    reads_slot = any(isinstance(node, ir.SlotRead) for axis in task.axes for node in walk(axis))
    return reads_slot or max(kernel.index.bits, *(axis.var.type.bits for axis in task.axes)) == 64


def _is_small(task: ir.ParallelTask) -> bool:
    """Whether it is known that a large GPU has more units than the loop has blocks of DEFAULT_BLOCK threads."""
    count = 1
    for axis in task.axes:
        ends = [e.value for e in (axis.start, axis.stop, axis.step) if isinstance(e, ir.Const)]
        if len(ends) < 3 or not ends[2]:
            return False
        count *= len(range(*map(int, ends)))
    return count <= _SMALL_LOOP


def _functions(kernel: ir.Kernel) -> dict[str, ir.Function]:
    return {f.name: f for f in kernel.functions}


_MOST_WHOLE: Final = 6
"""Scalars of records that are stored as a whole, by permutations of vectors."""
_WORTH: Final = 2
"""Operations for each scalar that is loaded or stored, from which on a vectorised loop is as fast (ADR 0037)."""
_SLOW: Final = 8


def is_scattered(kernel: ir.Kernel, task: ir.ParallelTask) -> bool:
    """Whether ``task`` stores to parts of records, one after another, and computes little in between."""
    nodes = list(walk(task.body))
    if any(isinstance(n, (ir.For, ir.While)) for n in nodes) or not _leaves_gaps(kernel, task, nodes):
        return False
    accesses = [each for n in nodes for each in touches(n) if each[1] is not ir.Access.ATOMIC]
    lines = lines_of(task.body, {f.name: f for f in kernel.functions})
    work = lines - 2 * len(accesses) + _SLOW * sum(map(is_slow, nodes))
    return work < _WORTH * len(set(accesses))


def _leaves_gaps(kernel: ir.Kernel, task: ir.ParallelTask, nodes: list[ir.Node]) -> bool:
    closeness = Closeness(kernel, task, varying(task, task.axes[-1].var, noalias=kernel.noalias))
    stored = {place for n in nodes for place, access in touches(n) if access is ir.Access.WRITE}
    records = {p for p in stored if isinstance(p, ir.Element) and p.array in closeness.types and closeness.follows(p)}
    written: Counter[tuple[object, ...]] = Counter()
    for place in records:
        written[place.array, place.index] += place.type.nbytes
    for place in records:
        array, size = closeness.types[place.array], place.type.nbytes
        step, whole = step_of(array, place), written[place.array, place.index]
        if not array.strided and step > size and not step == whole <= _MOST_WHOLE * size:
            return True
    return False
