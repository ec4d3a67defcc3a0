"""All tasks of a kernel in one GPU kernel, for a cooperative launch.

Owns: ``lower_fused``, ``fused_slots``, ``fused_block``, ``fused_name``, ``why_not_fused``.

Every resident block takes part in every task: threads go through its iterations in steps of the whole grid, the chunks of
a reduction are merged by the first block, and the grid's first thread does what is serial.  The shapes of reductions are
those of separate launches, and so are the bits.  Between tasks that depend on each other all blocks meet, see
``gpu_fused_steps``; no array that any task writes is ``noalias``, since LLVM would move its loads across a meeting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from quadpy.codegen.lower.arguments import arguments_of
from quadpy.codegen.lower.axes import lower_axes, total_count
from quadpy.codegen.lower.gpu.blocks import lower_blocks
from quadpy.codegen.lower.gpu.grid_barrier import CELLS, GridBarrier
from quadpy.codegen.lower.gpu.kernel import (
    barrier,
    bind_axes,
    block_number,
    finish_kernel,
    grid_size,
    scratch_slots,
    strided,
    thread_number,
)
from quadpy.codegen.lower.gpu.private import copies_of, lower_private, private_arrays
from quadpy.codegen.lower.gpu.reduce import MERGE_BLOCK, lower_chunks, lower_merge
from quadpy.codegen.lower.gpu.tasks import strides_grid
from quadpy.codegen.lower.memory import load_at
from quadpy.codegen.lower.scope import Scope
from quadpy.codegen.lower.statements import declare_variables, lower_block, zero_variables
from quadpy.codegen.lower.task import task_scope
from quadpy.codegen.lower.text import ModuleText
from quadpy.codegen.plans.phases import Again, Meet, Phase, Step, steps_of
from quadpy.codegen.targets.rules import GpuRules, TargetRules
from quadpy.flow import loops_of
from quadpy.ir import nodes as ir
from quadpy.ir.blocks import DEFAULT_BLOCK, uses_block
from quadpy.ir.effects import effects_of
from quadpy.ir.nodes import Access
from quadpy.ir.walk import walk

__all__ = ["fused_block", "fused_name", "fused_slots", "lower_fused", "why_not_fused"]

_MOST_TASKS: Final = 64
"""Beyond that, code of one kernel takes long to compile, and its registers are those of the worst task."""


def fused_name(kernel: ir.Kernel) -> str:
    """The symbol of the GPU kernel."""
    return f"{kernel.name}_fused"


def fused_slots(kernel: ir.Kernel) -> int:
    """Cells of scratch memory: those of separate launches, and behind them the counter's and two for each loop."""
    return _answers(kernel) + 2 * sum(1 for _ in loops_of(kernel.flow))


def _answers(kernel: ir.Kernel) -> int:
    return _counter(kernel) + CELLS


def _counter(kernel: ir.Kernel) -> int:
    return -(-scratch_slots(kernel) // CELLS) * CELLS


def fused_block(kernel: ir.Kernel) -> int:
    """Threads of a block: as many as the tasks ask for that know their block, and so the same for all of these."""
    return next(iter(_asked(kernel)), DEFAULT_BLOCK)


def why_not_fused(kernel: ir.Kernel, gpu: GpuRules) -> str:
    """Why the tasks of ``kernel`` cannot be one launch; an empty string where they can."""
    if any(isinstance(node, ir.Return) for task in kernel.tasks for node in walk(task)):
        return "it returns a result"
    if len(kernel.tasks) > _MOST_TASKS:
        return f"it has {len(kernel.tasks)} tasks; {_MOST_TASKS} are the most"
    if len(asked := _asked(kernel)) > 1:
        return f"its loops ask for blocks of {' and '.join(map(str, sorted(asked)))} threads"
    if (used := _shared_bytes(kernel)) > gpu.shared_bytes:
        return f"its tasks together need {used} bytes of shared memory; {gpu.shared_bytes} are the most"
    return ""


def _asked(kernel: ir.Kernel) -> set[int]:
    loops = [task for task in kernel.tasks if isinstance(task, ir.ParallelTask)]
    blocks = {loop.block_dim or DEFAULT_BLOCK for loop in loops if uses_block(loop)}
    return blocks | {MERGE_BLOCK for loop in loops if loop.reductions}


def _shared_bytes(kernel: ir.Kernel) -> int:
    """What LLVM will lay out, but for copies; it ends the process where that is too much."""
    loops = [task for task in kernel.tasks if isinstance(task, ir.ParallelTask)]
    total = 8 * MERGE_BLOCK if any(loop.reductions for loop in loops) else 0
    for shared in {shared.name: shared for loop in loops for shared in loop.shared}.values():
        count = shared.type.components
        for extent in shared.type.shape or ():
            count *= extent
        total += -(-count * shared.type.elem.nbytes // 16) * 16
    return total


def _has_copies(kernel: ir.Kernel, gpu: GpuRules) -> bool:
    """Whether loops that accumulate into small arrays have copies of these, for which there may be no room."""
    copies: dict[str, int] = {}
    for task in kernel.tasks:
        copies |= copies_of(kernel, task)
    return _shared_bytes(kernel) + sum(copies.values()) <= gpu.shared_bytes


def lower_fused(module: ModuleText, kernel: ir.Kernel, rules: TargetRules) -> None:
    """Write the GPU kernel of all tasks."""
    s = task_scope(module, kernel, rules, arguments_of(kernel), "%scratch")
    block_dim = fused_block(kernel)
    _Writer(s, kernel, block_dim, GridBarrier.begin(s, _counter(kernel), block_dim)).steps(steps_of(kernel))
    finish_kernel(s, kernel, fused_name(kernel), block_dim, _written(kernel), scratch=True)


def _written(kernel: ir.Kernel) -> frozenset[str]:
    return frozenset(
        name for task in kernel.tasks for name, access in effects_of(task) if access != Access.READ
    )  # fmt: skip


class _Writer:
    """``base`` is the scope in which nothing but the kernel's parameters is known."""

    def __init__(self, base: Scope, kernel: ir.Kernel, block_dim: int, grid: GridBarrier) -> None:
        self.base, self.kernel, self.block_dim, self.grid = base, kernel, block_dim, grid
        assert base.rules.gpu is not None
        self.copies = _has_copies(kernel, base.rules.gpu)
        self.turns = [base.text.alloca("i64") for _ in loops_of(kernel.flow)]
        for turn in self.turns:
            base.text.do(f"store i64 0, {base.rules.private} {turn}")

    def steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Meet():
                    self.grid.meet(self.base)
                case Again():
                    self.again(step)
                case Phase():
                    self.phase(step)

    def again(self, loop: Again) -> None:
        """Iterations take turns with two cells for the answer: one is written while the other may still be read."""
        s, out = self.base, self.base.text
        begin, end = out.label("again"), out.label("enough")
        out.start(begin)
        self.steps(loop.body)
        turn = self.turns[loop.number]
        now = out.op(f"load i64, {s.rules.private} {turn}")
        cell = out.op(f"add i64 {now}, {_answers(self.kernel) + 2 * loop.number}")
        answer = out.op(f"getelementptr i64, {s.rules.pointer} {s.scratch}, i64 {cell}")
        self.first_thread(lambda: self.ask(loop.condition, answer))
        out.do(f"store i64 {out.op(f'xor i64 {now}, 1')}, {s.rules.private} {turn}")
        self.grid.meet(s)
        more = out.op(f"load atomic i32, {s.rules.pointer} {answer} {s.rules.scope}, align 4")
        out.branch(out.op(f"icmp ne i32 {more}, 0"), begin, end)
        out.start(end)

    def ask(self, condition: str, answer: str) -> None:
        s, out = self.base, self.base.text
        array = s.arrays[condition]
        held = load_at(s, array.pointer, array.type.elem)
        more = held if array.type.elem.bits == 1 else out.op(f"icmp ne i{array.type.elem.bits} {held}, 0")
        out.do(f"store i32 {out.op(f'zext i1 {more} to i32')}, {s.rules.pointer} {answer}, align 4")

    def phase(self, phase: Phase) -> None:
        task, s = self.kernel.tasks[phase.task], self.fresh()
        if isinstance(task, ir.SerialTask):
            self.first_thread(_iteration(s, task))
        elif phase.part == "chunks":
            lower_chunks(s, self.kernel, task)
        elif phase.part == "merge":
            self.only(block_number(s), lambda: lower_merge(s, self.kernel, task))
        else:
            self.loop(s, task)

    def fresh(self) -> Scope:
        """A scope for one task, in the same function."""
        base = self.base
        return replace(
            base, arrays=dict(base.arrays), values={}, wide={}, natural=set(), sums={}, cells={}, loops=[], regions={}
        )

    def first_thread(self, write: Callable[[], None]) -> None:
        """What ``write`` writes is done by the first thread of the first block."""
        self.only(self.grid.lane, lambda: self.only(block_number(self.base), write))

    def only(self, number: str, write: Callable[[], None]) -> None:
        """What ``write`` writes is done where ``number`` is 0."""
        out = self.base.text
        inside, done = out.label("only"), out.label("others")
        out.branch(out.op(f"icmp eq i32 {number}, 0"), inside, done)
        out.start(inside)
        write()
        out.start(done)

    def loop(self, s: Scope, task: ir.ParallelTask) -> None:
        iteration = _iteration(s, task)
        if uses_block(task):
            barrier(s)  # another task may have had the same shared memory
            lower_blocks(s, task, self.block_dim, iteration, grid_stride=True)
        elif self.copies and private_arrays(self.kernel, task):
            barrier(s)
            lower_private(s, self.kernel, task, self.block_dim, iteration)
        else:
            self.grid_loop(s, task, iteration)

    def grid_loop(self, s: Scope, task: ir.ParallelTask, iteration: Callable[[], None]) -> None:
        """In 32 bits where the host has counted the iterations of all tasks."""
        bits = 64 if strides_grid(task, self.kernel) else 32
        axes = lower_axes(s, task.axes, bits)
        first, total = thread_number(s, self.block_dim, bits), total_count(s, axes, f"i{bits}")
        stride = grid_size(s, self.block_dim)

        def one(k: str, following: str) -> None:
            bind_axes(s, axes, k, bits)
            s.iteration = following
            iteration()

        narrow = stride if bits == 64 else s.text.op(f"trunc i64 {stride} to i32")
        strided(s.text, first, total, narrow, one, bits=bits)


def _iteration(s: Scope, task: ir.Task) -> Callable[[], None]:
    variables = declare_variables(s, task.body)

    def write() -> None:
        zero_variables(s, variables)
        lower_block(s, task.body)

    return write
