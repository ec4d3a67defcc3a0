"""All tasks of a kernel in one GPU kernel, for a cooperative launch.

Every resident block takes part in every task: threads go through its iterations in steps of the whole grid, the first
block merges the chunks of reductions, and the grid's first thread runs serial tasks.  Tasks between two meetings begin on
different blocks.  Reductions have the same shape as in separate launches, and so the same bits.  Between tasks that depend on each other all blocks meet, see
``plans.phases``; no array that any task writes is ``noalias``, since LLVM would move its loads across a meeting.

At the barrier of all blocks, these wait for each other, so all of them must be resident at once: the launch is cooperative.  They count themselves in
one cell of scratch memory, and a meeting flips its top bit: the first block adds the amount that is then missing.
Therefore, each meeting leaves the cell ready for the next one, also for the next launch, whatever its number of blocks; the
cell is set to 0 once, when the memory is allocated.

If the launch has only one block, its waves meet as in any block: nothing has to reach the device's memory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from quadpy.codegen.frames import BlockCopies, Blocks, Reduced
from quadpy.codegen.lower.arguments import arguments_of, new_function
from quadpy.codegen.lower.gpu.entry import finish_kernel
from quadpy.codegen.lower.gpu.reduce import lower_chunks, lower_merge
from quadpy.codegen.lower.gpu.tasks import lower_loop
from quadpy.codegen.lower.gpu.threads import barrier, block_number, gpu_rules, grid_size, only_where, thread_in_block
from quadpy.codegen.lower.memory import is_open, load_at
from quadpy.codegen.lower.statements import lower_iteration
from quadpy.codegen.plans.phases import Again, Meet, Phase, Step
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from quadpy.codegen.lower.scope import Scope
    from quadpy.codegen.lower.text import ModuleText
    from quadpy.codegen.schedule import FusedSchedule, KernelSchedule


def lower_fused(module: ModuleText, schedule: KernelSchedule, fused: FusedSchedule) -> None:
    """Write the GPU kernel of all tasks."""
    s = new_function(module, schedule.kernel, schedule.rules, arguments_of(schedule))
    launch = fused.launch
    grid = GridBarrier.begin(s, fused.counter, launch.block_dim)
    _Writer(s, schedule, fused, grid).steps(fused.steps)
    finish_kernel(s, schedule, launch.symbol, launch.block_dim, fused.written)


class _Writer:
    """``base`` is the scope in which nothing but the kernel's parameters is known."""

    def __init__(self, base: Scope, schedule: KernelSchedule, fused: FusedSchedule, grid: GridBarrier) -> None:
        self.base, self.schedule, self.fused, self.grid = base, schedule, fused, grid
        self.turns = [base.text.alloca("i64") for _ in range(fused.loops)]
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
        """Iterations alternate between two cells for the answer: one is written while the other may still be read."""
        s, out = self.base, self.base.text
        begin, end = out.label("again"), out.label("enough")
        out.start(begin)
        self.steps(loop.body)
        turn = self.turns[loop.number]
        now = out.op(f"load i64, {s.rules.private} {turn}")
        cell = out.op(f"add i64 {now}, {self.fused.answers + 2 * loop.number}")
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
        gate = self.schedule.tasks[phase.task].task.gate
        if gate is None:
            self.run(phase)
        else:
            only_where(self.base, is_open(self.base, gate), lambda: self.run(phase))

    def run(self, phase: Phase) -> None:
        schedule, s = self.schedule.tasks[phase.task], self.base.fresh()
        match schedule.task, schedule.frame:
            case ir.SerialTask() as task, _:
                self.first_thread(lower_iteration(s, task.body))
            case ir.ParallelTask() as task, Reduced() as frame if phase.part == "chunks":
                lower_chunks(s, task, frame)
            case ir.ParallelTask() as task, Reduced() as frame:
                self.only(block_number(s), partial(lower_merge, s, task, frame))
            case ir.ParallelTask() as task, frame:
                if isinstance(frame, (Blocks, BlockCopies)):
                    barrier(s)  # another task may have used the same shared memory
                lower_loop(s, schedule, task, self.fused.launch.block_dim, self.fused.shares[phase.task])

    def first_thread(self, write: Callable[[], None]) -> None:
        """The first thread of the first block runs what ``write`` writes."""
        self.only(self.grid.thread, lambda: self.only(block_number(self.base), write))

    def only(self, number: str, write: Callable[[], None]) -> None:
        """Threads whose ``number`` is 0 run what ``write`` writes."""
        only_where(self.base, self.base.text.op(f"icmp eq i32 {number}, 0"), write)


_TOP: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class GridBarrier:
    """``counter`` is the cell's address; ``thread`` is this thread's number in its block, ``step`` its increment.

    ``several`` says whether the launch has more than one block.
    """

    counter: str
    thread: str
    step: str
    several: str

    @staticmethod
    def begin(s: Scope, cell: int, block_dim: int) -> GridBarrier:
        """Computes what each thread needs, at the start of the kernel; the counter is cell ``cell``."""
        out = s.text
        counter = out.op(f"getelementptr i64, {s.rules.pointer} {s.scratch}, i64 {cell}")
        blocks = out.op(f"trunc i64 {out.op(f'udiv i64 {grid_size(s, block_dim)}, {block_dim}')} to i32")
        rest = out.op(f"sub i32 {_TOP + 1}, {blocks}")
        first = out.op(f"icmp eq i32 {block_number(s)}, 0")
        several = out.op(f"icmp ne i32 {blocks}, 1")
        return GridBarrier(counter, thread_in_block(s), out.op(f"select i1 {first}, i32 {rest}, i32 1"), several)

    def meet(self, s: Scope) -> None:
        """All blocks arrive here before one goes on; all threads see what each of them wrote before."""
        out, scope = s.text, s.rules.scope.rpartition(" ")[0]
        each_thread = not gpu_rules(s).fences_for_block
        if each_thread:
            only_where(s, self.several, lambda: out.do(f"fence {scope} release"))
        barrier(s)
        only_where(s, self.several, partial(self._wait, s, scope, each_thread))

    def _wait(self, s: Scope, scope: str, each_thread: bool) -> None:
        """The threads of a block, which have met, wait for the other blocks."""
        out = s.text
        arrive, wait, seen, met = (out.label(x) for x in ("arrive", "wait", "seen", "met"))
        out.branch(out.op(f"icmp eq i32 {self.thread}, 0"), arrive, met)
        out.start(arrive)
        out.do(f"fence {scope} release")
        before = out.op(f"atomicrmw add {s.rules.pointer} {self.counter}, i32 {self.step} {s.rules.scope}")
        out.start(wait)
        gpu_rules(s).pause(out)
        now = out.op(f"load atomic i32, {s.rules.pointer} {self.counter} {s.rules.scope}, align 4")
        flipped = out.op(f"icmp slt i32 {out.op(f'xor i32 {before}, {now}')}, 0")
        out.branch(flipped, seen, wait)
        out.start(seen)
        out.do(f"fence {scope} acquire")
        out.start(met)
        barrier(s)
        if each_thread:
            out.do(f"fence {scope} acquire")
