"""A barrier for all blocks of a launch.

Blocks wait for each other, so all of them must be resident at once: the launch is cooperative.  They count themselves in
one cell of scratch memory, and a meeting flips its top bit: the first block adds the amount that is then missing.
Therefore, each meeting leaves the cell ready for the next one, also for the next launch, whatever its number of blocks; the
cell is set to 0 once, when the memory is allocated.

If the launch has only one block, its waves meet as in any block: nothing has to reach the device's memory.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from quadpy.codegen.lower.gpu.threads import (
    barrier,
    block_number,
    gpu_rules,
    grid_size,
    only_where,
    thread_in_block,
)
from quadpy.codegen.lower.scope import Scope
from quadpy.core.light import dataclass

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
